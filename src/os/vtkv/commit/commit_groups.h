// SPDX-License-Identifier: LGPL-2.1-or-later
// The commit groups under way, in the order of their records: first those that are being flushed.
//
// Not thread-safe: the commit worker's. Never waits.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "vtkv/commit/dequeued_writes.h"
#include "vtkv/env.h"
#include "vtkv/wal/log_writer.h"

namespace vtkv {

struct CommitGroup {
  // Of `count` writes, which begin with `first`; they are added when its record is formed.
  void begin(const DequeuedWrite& first, size_t count);
  void add(DequeuedWrite& write);

  size_t submissions = 0;  // and write buffers and fragments
  size_t waiters = 0;      // of these, submissions
  size_t writes_left = 0;
  bool logged = false;     // its record is in the file
  bool continues = false;  // its record ends inside a batch
  FormedRecord record;
  std::vector<File*> sync_files;  // of its data; besides the log's
};

class CommitGroups {
 public:
  // The newest group; those that ended lend it their memory.
  CommitGroup& open();

  size_t size() const { return m_groups.size(); }
  const CommitGroup& operator[](size_t i) const { return *m_groups[i]; }
  size_t unflushed() const { return m_groups.size() - m_flushing; }

  // Records that are being written.
  size_t log_writes() const { return m_log_writes; }
  void log_write_began() { ++m_log_writes; }
  void log_write_ended(CommitGroup* group);

  // So many groups, the first ones, are written and not being flushed.
  size_t written() const;
  bool flushing() const { return m_flushing > 0; }
  void begin_flush(size_t count);
  // The first group is durable: ends it. REQUIRES: flushing(). What it returns is good until the next open().
  const CommitGroup& end_first();
  // Nothing is written any more.
  void clear();

 private:
  std::deque<std::unique_ptr<CommitGroup>> m_groups;
  std::vector<std::unique_ptr<CommitGroup>> m_spare;
  size_t m_log_writes = 0;
  size_t m_flushing = 0;  // the first ones
};

}  // namespace vtkv
