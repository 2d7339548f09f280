// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/onode_record.h"

#include "swimstore/format/newer_entry.h"
#include "vtkv/util/coding.h"

namespace swimstore {

namespace {

constexpr uint8_t kKnownFlags =
    OnodeRecord::has_omap | OnodeRecord::shard_inline | OnodeRecord::has_hints | OnodeRecord::omap_in_parts;

bool decode_attrs(std::string_view* cursor, OnodeRecord* record) {
  uint32_t count = 0;
  if (!vtkv::get_varint32(cursor, &count)) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view name, value;
    if (!vtkv::get_length_prefixed(cursor, &name) || !vtkv::get_length_prefixed(cursor, &value)) {
      return false;
    }
    // The encoder writes them in order, each once.
    const auto at = record->attrs.end();
    const size_t before = record->attrs.size();
    record->attrs.emplace_hint(at, name, ceph::buffer::copy(value.data(), value.size()));
    if (record->attrs.size() == before) {
      return false;
    }
  }
  return true;
}

bool decode_hints(std::string_view* cursor, OnodeRecord* record) {
  return !record->test(OnodeRecord::has_hints) || (vtkv::get_varint64(cursor, &record->expected_object_size) &&
                                                   vtkv::get_varint64(cursor, &record->expected_write_size) &&
                                                   vtkv::get_varint32(cursor, &record->alloc_hint_flags));
}

// All but the shard.
bool decode_fields(std::string_view* bytes, OnodeRecord* record) {
  if (bytes->size() < 2 || bytes->front() != static_cast<char>(kOnodeRecordVersion)) {
    return false;
  }
  record->flags = static_cast<uint8_t>((*bytes)[1]);
  bytes->remove_prefix(2);
  return (record->flags & ~kKnownFlags) == 0 && vtkv::get_varint64(bytes, &record->nid) &&
         vtkv::get_varint64(bytes, &record->size) && record->nid <= kObjectIdMax && record->size <= kObjectBytesMax &&
         decode_hints(bytes, record) && decode_attrs(bytes, record);
}

}  // namespace

void encode_onode(const OnodeRecord& record, const ExtentShard& shard, std::string* out) {
  out->push_back(static_cast<char>(kOnodeRecordVersion));
  out->push_back(static_cast<char>(record.flags));
  vtkv::put_varint64(out, record.nid);
  vtkv::put_varint64(out, record.size);
  if (record.test(OnodeRecord::has_hints)) {
    vtkv::put_varint64(out, record.expected_object_size);
    vtkv::put_varint64(out, record.expected_write_size);
    vtkv::put_varint32(out, record.alloc_hint_flags);
  }
  vtkv::put_varint32(out, static_cast<uint32_t>(record.attrs.size()));
  for (const auto& [name, value] : record.attrs) {
    vtkv::put_length_prefixed(out, name);
    vtkv::put_length_prefixed(out, std::string_view(value.c_str(), value.length()));
  }
  if (record.test(OnodeRecord::shard_inline)) {
    encode_extent_shard(shard, out);
  }
}

bool decode_onode(std::string_view bytes, OnodeRecord* record, ExtentShard* shard) {
  *record = OnodeRecord();
  *shard = ExtentShard();
  if (!decode_fields(&bytes, record)) {
    return false;
  }
  if (!record->test(OnodeRecord::shard_inline)) {
    return bytes.empty();
  }
  return record->size <= kShardBytes && decode_extent_shard(bytes, shard);
}

bool is_newer_onode(std::string_view bytes) {
  if (is_newer_entry(bytes, kOnodeRecordVersion)) {
    return true;
  }
  OnodeRecord record;
  return decode_fields(&bytes, &record) && record.test(OnodeRecord::shard_inline) &&
         is_newer_entry(bytes, kExtentRecordVersion);
}

}  // namespace swimstore
