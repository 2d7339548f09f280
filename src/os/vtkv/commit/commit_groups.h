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
  size_t waiters = 0;      // of these, somebody waits until they are durable
  bool relaxed = true;     // all of them are
  uint64_t formed_us = 0;
  uint64_t bytes = 0;      // of record and data
  size_t writes_left = 0;
  bool logged = false;     // its record is in the file
  bool continues = false;  // its record ends inside a batch
  FormedRecord record;
  std::vector<File*> sync_files;  // of its data; besides the log's
  File* primed_elsewhere = nullptr;  // one of those that DequeuedWrite calls so
};

// How far something went over the groups: so many of the first ones, with the writes in them.
struct GroupFront {
  size_t groups = 0, writes = 0;
  void pass(const CommitGroup& group) {
    ++groups;
    writes += group.submissions;
  }
  // The first ones have ended.
  void ended(const GroupFront& gone) {
    groups -= gone.groups;
    writes -= gone.writes;
  }
};

class CommitGroups {
 public:
  // The newest group; those that ended lend it their memory.
  CommitGroup& open();

  size_t size() const { return m_groups.size(); }
  const CommitGroup& operator[](size_t i) const { return *m_groups[i]; }
  size_t unflushed() const { return m_groups.size() - m_flushing; }
  // Of these, those that are not relaxed.
  size_t unflushed_strict() const { return m_unflushed_strict; }
  // All of its members are known: a group that open() gave.
  void formed(const CommitGroup& group) { m_unflushed_strict += group.relaxed ? 0 : 1; }

  // Records that are being written.
  size_t log_writes() const { return m_log_writes; }
  void log_write_began() { ++m_log_writes; }
  void log_write_ended(CommitGroup* group);

  // So many groups, the first ones, are written; those that are being flushed are among them.
  size_t written();
  // Of these, those that are not being flushed: how many, were all their members relaxed, bytes of records and data.
  size_t written_unflushed() { return written() - m_flushing; }
  bool written_are_relaxed() const { return m_written_strict == 0; }
  uint64_t written_bytes() const { return m_written_bytes; }
  bool flushing() const { return m_flushing > 0; }
  // Of all that are written. REQUIRES: there are some, and none is being flushed.
  void begin_flush();
  // The first group is durable: ends it. REQUIRES: flushing(). What it returns is good until the next open().
  const CommitGroup& end_first();
  // Nothing is written any more.
  void clear();

 private:
  std::deque<std::unique_ptr<CommitGroup>> m_groups;
  std::vector<std::unique_ptr<CommitGroup>> m_spare;
  size_t m_log_writes = 0;
  size_t m_flushing = 0;  // the first ones
  size_t m_unflushed_strict = 0;
  size_t m_written = 0;   // the first ones
  size_t m_written_strict = 0;   // of these, those that are not relaxed and not being flushed
  uint64_t m_written_bytes = 0;  // of these, those that are not being flushed
};

}  // namespace vtkv
