// SPDX-License-Identifier: LGPL-2.1-or-later
// How much memory a check of a cube takes, and in how many passes over the tree it keeps within a limit.
//
// An estimate: split and shared slots take more, which only the check itself shows (Fsck::memory_bytes()).
#pragma once

#include <algorithm>
#include <cstdint>

#include "swimstore/fsck/fsck.h"

namespace swimstore {

inline constexpr uint64_t kFsckPassesMax = 64;  // more are not sensible

struct CheckMemory {
  uint64_t objects = 0, slots = 0;
  uint64_t bytes = 0;  // for all of them

  // No two passes take quite the same: each is given an eighth more than they take on average.
  uint64_t passes_for(uint64_t limit_bytes) const { return std::max<uint64_t>(1, divided_by(limit_bytes)); }
  uint64_t limit_for(uint64_t passes) const { return divided_by(passes); }

 private:
  uint64_t divided_by(uint64_t number) const { return (bytes + bytes / 8 + number - 1) / number; }
};

CheckMemory memory_of_check(Cube& cube);

// Bytes: what the option says, or if that is 0 this part of osd_memory_target.
uint64_t check_memory_limit(const CephContext& cct, const char* option, uint64_t target_divisor);

// What a check does that takes too much in so many passes: it begins anew with this many. The same: there are no more.
inline uint64_t more_passes(uint64_t passes) { return std::min(passes * 2, std::max(passes, kFsckPassesMax)); }

}  // namespace swimstore
