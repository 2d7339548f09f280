// SPDX-License-Identifier: LGPL-2.1-or-later
// The file `header` beside the containers: what was fixed when they were made. Written once, 4096 bytes.
//
// OFFSET SIZE FIELD
// 0      8    magic "SWIMCONT"
// 8      4    version (1)
// 12     4    number of size classes (11)
// 16     16   uuid of this set of containers
// 32     8    chunk bytes, a power of two from 4 KiB to 1 TiB
// 40     4    block bytes (4096)
// 44     4    0
// 48     88   per class, u64: slots from slot 0 on that were primed at creation; an allocation page in the
//             tree, where there is one, says more than this
// 136    4    crc32c of bytes 0 to 135
// 140    ..   0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "swimstore/format/size_class.h"
#include "vtkv/status.h"

namespace swimstore {

inline constexpr uint64_t kChunkBytesMax = uint64_t{1} << 40;
constexpr bool is_chunk_size(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kBlockBytes && bytes <= kChunkBytesMax;
}

struct ContainerHeader {
  std::array<uint8_t, 16> uuid{};
  uint64_t chunk_bytes = 0;
  std::array<uint64_t, kSizeClasses> primed_slots{};

  static constexpr size_t kBytes = 4096;
  // kBytes of it.
  std::string encode() const;
  // `name` is the file's, for the message.
  static vtkv::Status decode(std::string_view name, std::string_view bytes, ContainerHeader* header);
};

}  // namespace swimstore
