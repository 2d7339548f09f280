// SPDX-License-Identifier: LGPL-2.1-or-later
// The log's files while the database is open: segments that no checkpoint and no reader needs any more are given back,
// and what the log needs next is made and primed ahead.
//
// Two workers: the flush worker tells of checkpoints and gives segments back, the log worker works ahead. The lock is
// the log's files': held over I/O, while all of them are read, or one is made, recycled or removed. The workers only
// try it, so that only who reads all of them waits.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>

#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/env/workers.h"
#include "vtkv/iter/read_states.h"
#include "vtkv/util/mutex.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class LogMaintenance {
 public:
  LogMaintenance(const Options& options, Tree* tree, SegmentPool* pool, ReadStates* states, CommitPipeline* pipeline,
                 BackgroundErrors* errors, Workers* workers);

  // The flush worker's. Tells the participant of a checkpoint that is the older copy's now, and gives back what it
  // does not need. After each flush, compaction and wake.
  void tell_checkpoint() EXCLUDES(m_files_lock);
  // Are there segments that could not be given back yet? Readers, which end unseen, may need them.
  bool awaits_readers() const { return !m_releases.empty() || m_release_is_due || m_segments_freed.load(); }

  // The log worker's step.
  NextStep step() EXCLUDES(m_files_lock);

  // Thread-safe: asks for what may go to be given back at once, and for files of spares to be removed but for the few
  // that are needed. Returns the number that removed() will have reached when that was tried.
  uint64_t request_removal();
  uint64_t removed() const { return m_removed.load(); }

  // Thread-safe: neither copy of the manifest lists a segment any more that was listed.
  void segments_freed();
  // Thread-safe: `read` reads all of the log; no file of it is made, recycled or removed meanwhile.
  void while_files_stay(const std::function<void()>& read) EXCLUDES(m_files_lock);

 private:
  // Segments below an epoch that no checkpoint needs, once the readers of an epoch have gone.
  struct Release {
    uint64_t below_epoch = 0;
    std::optional<uint64_t> reader_epoch;  // none: no memtable leads into the log
  };

  void release_unread() EXCLUDES(m_files_lock);

  const Options& m_options;
  Tree* const m_tree;
  SegmentPool* const m_pool;
  ReadStates* const m_states;
  CommitPipeline* const m_pipeline;
  BackgroundErrors* const m_errors;
  Workers* const m_workers;

  // The flush worker's.
  SequenceNumber m_told_checkpoint;
  std::deque<Release> m_releases;
  uint64_t m_release_below;
  bool m_release_is_due = false;

  std::atomic<bool> m_segments_freed{false};  // and not told to the pool yet
  // Requests: so many were made, the flush worker has released what it could, the log worker has removed files.
  std::atomic<uint64_t> m_removals_requested{0};
  std::atomic<uint64_t> m_released{0};
  std::atomic<uint64_t> m_removed{0};
  Mutex m_files_lock;  // guards no member, but the log's files
};

}  // namespace vtkv
