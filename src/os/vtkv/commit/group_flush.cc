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
  return !group.sync_files.empty() || group.primed_elsewhere || log_needs_own_sync(group);
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
  File* primed_elsewhere = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const CommitGroup& group = groups[i];
    for (File* file : group.sync_files) {
      add(file);
    }
    primed_elsewhere = group.primed_elsewhere ? group.primed_elsewhere : primed_elsewhere;
  }
  // One sync of any file reaches its device and covers what was written to primed space there.
  if (primed_elsewhere && m_files.empty() && !mutated(Mutation::data_elsewhere_not_synced)) {
    add(primed_elsewhere);
  }
  const size_t of_data = m_files.size();
  for (size_t i = 0; i < count; ++i) {
    if (log_needs_own_sync(groups[i])) {
      add(groups[i].record.segment->file.get());
    }
  }
  const bool is_apart = m_options.data_elsewhere && !mutated(Mutation::log_elsewhere_not_synced);
  const bool log_is_covered = is_apart ? m_files.size() > of_data : !m_files.empty();
  m_is_of_any_file = m_files.empty();
  if (!log_is_covered) {
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
