// Work that goes on beside writes and reads, and fails without harm to either: it is tried again until it succeeds.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

enum class BackgroundWork : uint8_t {
  flush,     // of memtables to the tree: until it succeeds, memory and log grow
  merge,     // of runs, and defragmenting: until it succeeds, reads and scans get slower
  collect,   // garbage of the log: until it succeeds, the log grows
  segments,  // of the log, made ahead of need
};
inline constexpr size_t kBackgroundWorks = 4;

// As in "... has failed".
constexpr std::string_view to_string(BackgroundWork work) {
  constexpr std::string_view kNames[kBackgroundWorks] = {"writing a memtable to the tree", "merging the tree's runs",
                                                         "collecting the log's garbage", "making log segments ahead"};
  return kNames[static_cast<size_t>(work)];
}

// Of a status that says no_space: not the file system is full but a list of the database's own, which has a fixed size.
inline constexpr int kListIsFull = EFBIG;
inline bool is_list_full(const Status& status) { return status.is_no_space() && status.error_number() == kListIsFull; }

struct BackgroundError {
  BackgroundWork work = BackgroundWork::flush;
  Status status;          // of the newest attempt; ok: it is over
  uint64_t attempts = 0;  // that failed in a row
};

}  // namespace vtkv
