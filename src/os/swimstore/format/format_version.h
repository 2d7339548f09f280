// The named versions of everything SwimStore keeps on disk, and their history.
//
//   what               version  since  change
//   superblock               1    0.1  first
//   container header         1    0.1  first
//   allocation page          1    0.1  first
//   note                     1    0.1  first
//   counter                  1    0.1  first
//
// Onodes, extent chunks and collections carry a version byte, too, by which a damaged one is told. Whoever
// changes their form raises the superblock's version as well: an older program then refuses the store,
// instead of calling its objects damaged.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "vtkv/status.h"

namespace swimstore {

static_assert(std::endian::native == std::endian::little, "durable structs are little-endian");

inline constexpr uint32_t kSuperblockVersion = 1;
inline constexpr uint32_t kContainerHeaderVersion = 1;
inline constexpr uint8_t kAllocationPageVersion = 1;
inline constexpr uint8_t kNoteVersion = 1;
inline constexpr uint8_t kCounterVersion = 1;

// Ok when `found` is at most `known` and not 0. Otherwise one sentence that names both.
vtkv::Status check_version(std::string_view what, uint32_t found, uint32_t known);

}  // namespace swimstore
