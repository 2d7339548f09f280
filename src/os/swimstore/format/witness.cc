// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/witness.h"

#include <algorithm>

#include "swimstore/format/collection_record.h"
#include "vtkv/util/coding.h"

namespace swimstore {

bool is_witnessed(std::string_view omap_key) {
  return omap_key.starts_with('_') && std::ranges::find(kWitnessedKeys, omap_key) != kWitnessedKeys.end();
}

std::string encode_witnessed_group(const WitnessedGroup& group) {
  std::string out(1, static_cast<char>(kWitnessVersion));
  vtkv::put_varint32(&out, group.bits);
  vtkv::put_varint32(&out, group.home);
  return out;
}

bool decode_witnessed_group(std::string_view bytes, WitnessedGroup* group) {
  if (bytes.empty() || bytes[0] != static_cast<char>(kWitnessVersion)) {
    return false;
  }
  bytes.remove_prefix(1);
  return vtkv::get_varint32(&bytes, &group->bits) && group->bits <= kHashBits &&
         vtkv::get_varint32(&bytes, &group->home) && bytes.empty();
}

}  // namespace swimstore
