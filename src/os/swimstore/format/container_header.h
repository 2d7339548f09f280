// SPDX-License-Identifier: LGPL-2.1-or-later
// The file `header` beside the containers: what was fixed when they were made. Written once, 4096 bytes.
// doc/on_disk_format.md, "Container header". An allocation page in the tree, where there is one, says more than its
// counts of primed slots.
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
