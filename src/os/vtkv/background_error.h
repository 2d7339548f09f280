// SPDX-License-Identifier: LGPL-2.1-or-later
// Work that goes on beside writes and reads, and fails without harm to either: it is tried again until it succeeds.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

// One kind of it. Each is one constant, known by its address.
struct BackgroundWork {
  std::string_view name;         // as in "... has failed"
  std::string_view consequence;  // of a failure
};

// The database's own.
inline constexpr BackgroundWork kFlushWork{"writing a memtable to the tree",
                                           "memory and log grow and writes slow down until it succeeds"};
inline constexpr BackgroundWork kCompactionWork{"compacting the tree's runs",
                                                "reads slow down and space does not come back until it succeeds"};
inline constexpr BackgroundWork kCollectWork{"collecting the log's garbage", "the log grows until it succeeds"};
inline constexpr BackgroundWork kSegmentsWork{"making log segments ahead", "writes end when the log has no room left"};

// Of a status that says no_space: not the file system is full but a list of the database's own, which has a fixed size.
inline constexpr int kListIsFull = EFBIG;
inline bool is_list_full(const Status& status) { return status.is_no_space() && status.error_number() == kListIsFull; }

struct BackgroundError {
  const BackgroundWork* work = nullptr;
  Status status;  // of the newest attempt; ok: it is over
  uint64_t attempts = 0;  // that failed in a row
};

}  // namespace vtkv
