// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/group_flush.h"

#include <algorithm>

#include "vtkv/util/mutations.h"

namespace vtkv {

void GroupFlush::begin(const CommitGroups& groups, size_t count, size_t waiters) {
  collect_files(groups, count);
  m_syncs_left = m_files.size();
  if (waiters > 0) {
    m_pool->note_waited_flush();
  }
  m_is_slow = false;
  for (size_t i = 0; i < count; ++i) {
    m_is_slow |= !groups[i].sync_files.empty();
  }
}

bool GroupFlush::needs_own_sync(const CommitGroup& group) const {
  return !group.sync_files.empty() || log_needs_own_sync(group);
}

bool GroupFlush::log_needs_own_sync(const CommitGroup& group) const {
  const bool primed = group.record.segment->primed.load() || mutated(Mutation::unprimed_segment_not_synced);
  return !m_options.single_flush || !primed;
}

void GroupFlush::add(File* file) {
  if (std::find(m_files.begin(), m_files.end(), file) == m_files.end()) {
    m_files.push_back(file);
  }
}

void GroupFlush::collect_files(const CommitGroups& groups, size_t count) {
  m_files.clear();
  for (size_t i = 0; i < count; ++i) {
    const CommitGroup& group = groups[i];
    for (File* file : group.sync_files) {
      add(file);
    }
    if (log_needs_own_sync(group)) {
      add(group.record.segment->file.get());
    }
  }
  // One sync of any file reaches the device and covers what was written to primed segments.
  m_is_of_any_file = m_files.empty();
  if (m_is_of_any_file) {
    const LogSegment* any =
        mutated(Mutation::unprimed_segment_not_synced) ? m_pool->segments().front() : groups[count - 1].record.segment;
    add(any->file.get());
  }
}

Status GroupFlush::end() {
  const Status status = m_syncs.check();
  m_is_slow = m_is_slow && !status.ok();
  return status;
}

}  // namespace vtkv
