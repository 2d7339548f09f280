// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/onode.h"

namespace swimstore {

size_t Onode::memory_bytes() const {
  constexpr size_t kAttrOverheadBytes = 160;  // a map node, a string, a bufferptr and its raw
  size_t bytes = sizeof(Onode) + key.capacity() + oid.hobj.oid.name.capacity() + oid.hobj.nspace.capacity();
  for (const auto& [name, value] : record.attrs) {
    bytes += kAttrOverheadBytes + name.capacity() + value.raw_length();
  }
  return bytes + extents.memory_bytes();
}

}  // namespace swimstore
