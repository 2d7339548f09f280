// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_groups.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr size_t kKeptBufferBytes = 4u << 20;  // of a spare group

}  // namespace

void CommitGroup::begin(const DequeuedWrite& first, size_t count) {
  submissions = count;
  waiters = 0;
  writes_left = 1;
  logged = false;
  continues = first.continues();
  sync_files.clear();
}

void CommitGroup::add(DequeuedWrite& write) {
  write.group = this;
  waiters += write.submission ? 1 : 0;
  writes_left += write.data_left > 0 ? 1 : 0;
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

size_t CommitGroups::written() const {
  VTKV_ASSERT(m_flushing == 0);
  size_t count = 0;
  while (count < m_groups.size() && m_groups[count]->writes_left == 0) {
    ++count;
  }
  return count;
}

void CommitGroups::begin_flush(size_t count) {
  VTKV_ASSERT(m_flushing == 0 && count > 0 && count <= m_groups.size());
  m_flushing = count;
}

const CommitGroup& CommitGroups::end_first() {
  VTKV_ASSERT(m_flushing > 0);
  --m_flushing;
  m_spare.push_back(std::move(m_groups.front()));
  m_groups.pop_front();
  return *m_spare.back();
}

void CommitGroups::clear() {
  m_groups.clear();
  m_flushing = 0;
}

}  // namespace vtkv
