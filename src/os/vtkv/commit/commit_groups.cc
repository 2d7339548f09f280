// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_groups.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr size_t kKeptBufferBytes = 4u << 20;  // of a spare group
constexpr size_t kSparesMost = 16;             // relaxed writes may have had hundreds of groups under way

}  // namespace

void CommitGroup::begin(const DequeuedWrite& first, size_t count) {
  submissions = count;
  waiters = 0;
  relaxed = true;
  bytes = 0;
  writes_left = 1;
  logged = false;
  continues = first.continues();
  sync_files.clear();
  primed_elsewhere = nullptr;
}

void CommitGroup::add(DequeuedWrite& write) {
  write.group = this;
  waiters += write.has_waiter() ? 1 : 0;
  relaxed &= write.is_relaxed();
  bytes += write.data_bytes;
  writes_left += write.data_left > 0 ? 1 : 0;
  primed_elsewhere = write.primed_elsewhere ? write.primed_elsewhere : primed_elsewhere;
  for (File* file : write.sync_files) {
    if (std::find(sync_files.begin(), sync_files.end(), file) == sync_files.end()) {
      sync_files.push_back(file);
    }
  }
}

CommitGroup& CommitGroups::open() {
  if (m_spare.empty()) {
    m_spare.push_back(std::make_unique<CommitGroup>());
  }
  CommitGroup& group = *m_groups.emplace_back(std::move(m_spare.back()));
  m_spare.pop_back();
  return group;
}

void CommitGroups::log_write_ended(CommitGroup* group) {
  VTKV_ASSERT(m_log_writes > 0 && !group->logged);
  --m_log_writes;
  --group->writes_left;
  group->logged = true;
  if (group->record.buffer.capacity() > kKeptBufferBytes) {
    group->record.buffer = AlignedBuffer();
  }
}

size_t CommitGroups::written() {
  for (; m_written < m_groups.size() && m_groups[m_written]->writes_left == 0; ++m_written) {
    m_written_strict += m_groups[m_written]->relaxed ? 0 : 1;
    m_written_bytes += m_groups[m_written]->bytes;
  }
  return m_written;
}

void CommitGroups::begin_flush() {
  VTKV_ASSERT(m_flushing == 0 && m_written > 0);
  m_flushing = m_written;
  m_unflushed_strict -= m_written_strict;
  m_written_strict = 0;
  m_written_bytes = 0;
}

const CommitGroup& CommitGroups::end_first() {
  VTKV_ASSERT(m_flushing > 0 && m_written > 0);
  --m_flushing;
  --m_written;
  m_spare.push_back(std::move(m_groups.front()));
  m_groups.pop_front();
  if (m_spare.size() > kSparesMost) {
    m_spare.erase(m_spare.begin());
  }
  return *m_spare.back();
}

void CommitGroups::clear() {
  m_groups.clear();
  m_flushing = m_written = m_written_strict = m_unflushed_strict = 0;
  m_written_bytes = 0;
}

}  // namespace vtkv
