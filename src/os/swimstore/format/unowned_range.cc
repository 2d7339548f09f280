// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/unowned_range.h"

#include "swimstore/format/collection_record.h"
#include "vtkv/util/coding.h"

namespace swimstore {

std::string encode_unowned_range(const UnownedRange& range) {
  std::string out(1, static_cast<char>(kUnownedRangeVersion));
  vtkv::put_varint32(&out, range.bits);
  return out;
}

bool decode_unowned_range(std::string_view bytes, UnownedRange* range) {
  if (bytes.empty() || bytes[0] != static_cast<char>(kUnownedRangeVersion)) {
    return false;
  }
  bytes.remove_prefix(1);
  return vtkv::get_varint32(&bytes, &range->bits) && range->bits <= kHashBits && bytes.empty();
}

}  // namespace swimstore
