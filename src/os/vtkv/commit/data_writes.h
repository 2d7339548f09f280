// SPDX-License-Identifier: LGPL-2.1-or-later
// Starts the writes of submissions' data to its files: of neighbours as one request, in the order of the files' first
// appearance and of the offsets in them.
//
// Not thread-safe: the commit worker's. Never waits: requests end by the I/O queue.
#pragma once

#include <vector>

#include "vtkv/commit/commit_counters.h"
#include "vtkv/commit/commit_requests.h"
#include "vtkv/commit/dequeued_writes.h"
#include "vtkv/options.h"

namespace vtkv {

class DataWrites {
 public:
  DataWrites(const Options& options, CommitRequests* requests, CommitCounters* counters)
      : m_options(options), m_requests(requests), m_counters(counters) {}

  // Of those from `first` on. Says in each how many requests it has, and which files need a sync of their own.
  void start(IoQueue& io, DequeuedWrites& writes, size_t first);

 private:
  struct Slice {
    const ExternalData* data;
    DequeuedWrite* dequeued;
    size_t file_rank;  // by first appearance
  };

  void add_slices(DequeuedWrite& dequeued);
  static bool joins(const CommitRequest& request, const ExternalData& data);

  const Options& m_options;
  CommitRequests* const m_requests;
  CommitCounters* const m_counters;
  std::vector<Slice> m_slices;       // scratch
  std::vector<File*> m_files_seen;  // scratch
};

}  // namespace vtkv
