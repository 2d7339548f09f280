// SPDX-License-Identifier: LGPL-2.1-or-later
// The flush of commit groups: which files have to be synced, how many of these syncs are under way, and whether what
// they say can be believed (env/sync_failures.h). One at a time.
//
// Of each file system that the groups wrote primed space of, one file is synced, however many were written: on a disk
// that spins, each sync is a turn of it.
//
// Not thread-safe: the commit worker's. Never waits, and syncs nothing itself.
#pragma once

#include <vector>

#include "vtkv/commit/commit_groups.h"
#include "vtkv/env/sync_failures.h"
#include "vtkv/options.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class GroupFlush {
 public:
  GroupFlush(const Options& options, SegmentPool* pool) : m_options(options), m_pool(pool) {}

  // No flush of another file covers what it writes.
  bool needs_own_sync(const CommitGroup& group) const;
  // Of the first `count` groups, in which `waiters` submissions are; files() are to be synced, each of them.
  void begin(const CommitGroups& groups, size_t count, size_t waiters);
  const std::vector<File*>& files() const { return m_files; }
  // It is one sync, and that of any of the database's files will do.
  bool is_of_any_file() const { return m_is_of_any_file; }
  // A file of one of the groups has extents to convert.
  bool is_slow() const { return m_is_slow; }
  // True: that was the last one.
  bool sync_ended() { return --m_syncs_left == 0; }
  // All syncs have succeeded. An error: no promise can be made.
  Status end();

 private:
  bool log_needs_own_sync(const CommitGroup& group) const;
  void collect_files(const CommitGroups& groups, size_t count);
  void add(File* file);

  const Options& m_options;
  SegmentPool* const m_pool;
  const SyncWatch m_syncs;
  std::vector<File*> m_files;
  size_t m_syncs_left = 0;
  bool m_is_of_any_file = false;
  bool m_is_slow = false;
};

}  // namespace vtkv
