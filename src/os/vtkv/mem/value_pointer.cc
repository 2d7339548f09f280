// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/value_pointer.h"

#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {

void ValuePointer::encode(std::string* out) const {
  put_varint64(out, segment_id);
  put_varint64(out, epoch);
  put_varint64(out, offset);
  put_varint32(out, length);
  put_fixed32(out, crc32c);
}

bool ValuePointer::decode(std::string_view encoded) {
  return get_varint64(&encoded, &segment_id) && get_varint64(&encoded, &epoch) && get_varint64(&encoded, &offset) &&
         get_varint32(&encoded, &length) && get_fixed32(&encoded, &crc32c) && encoded.empty();
}

uint32_t value_checksum(std::string_view key, std::string_view value) {
  return crc32c_extend(crc32c(key), value.data(), value.size());
}

}  // namespace vtkv
