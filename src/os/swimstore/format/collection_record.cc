// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/collection_record.h"

#include "vtkv/util/coding.h"

namespace swimstore {

std::string encode_collection(const CollectionRecord& record) {
  std::string out(1, static_cast<char>(record.generation == 0 ? 1 : kCollectionRecordVersion));
  vtkv::put_varint32(&out, record.bits);
  vtkv::put_varint32(&out, static_cast<uint32_t>(record.hash_ranges.size()));
  for (const CollectionRecord::HashRange& range : record.hash_ranges) {
    vtkv::put_fixed32(&out, range.hash_prefix);
    vtkv::put_varint32(&out, range.bits);
    vtkv::put_varint32(&out, range.cube);
  }
  if (record.generation > 0) {
    vtkv::put_varint64(&out, record.generation);
  }
  return out;
}

bool decode_collection(std::string_view bytes, CollectionRecord* record) {
  *record = CollectionRecord();
  if (bytes.empty() || bytes[0] < 1 || bytes[0] > static_cast<char>(kCollectionRecordVersion)) {
    return false;
  }
  const bool has_generation = bytes[0] > 1;
  bytes.remove_prefix(1);
  uint32_t count = 0;
  if (!vtkv::get_varint32(&bytes, &record->bits) || record->bits > kHashBits || !vtkv::get_varint32(&bytes, &count) ||
      count != 1) {  // it lies in one cube, as a whole
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    CollectionRecord::HashRange range;
    if (!vtkv::get_fixed32(&bytes, &range.hash_prefix) || !vtkv::get_varint32(&bytes, &range.bits) ||
        range.bits > kHashBits || !vtkv::get_varint32(&bytes, &range.cube)) {
      return false;
    }
    record->hash_ranges.push_back(range);
  }
  if (has_generation && (!vtkv::get_varint64(&bytes, &record->generation) || record->generation == 0)) {
    return false;
  }
  return bytes.empty();
}

}  // namespace swimstore
