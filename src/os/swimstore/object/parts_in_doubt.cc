// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/parts_in_doubt.h"

#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::MutexLock;

void PartsInDoubt::removed(unsigned cube, std::span<const std::string> row_keys) {
  MutexLock lock(m_mutex);
  for (const std::string& key : row_keys) {
    m_removed.emplace(key, cube);
  }
}

void PartsInDoubt::removals_durable(unsigned cube, std::span<const std::string> row_keys) {
  MutexLock lock(m_mutex);
  for (const std::string& key : row_keys) {
    const auto at = m_removed.find({key, cube});
    VTKV_ASSERT(at != m_removed.end());
    m_removed.erase(at);  // one: a later removal of the same row may be under way, too
  }
}

bool PartsInDoubt::is_removed_elsewhere(unsigned cube, const std::string& row_key) const {
  MutexLock lock(m_mutex);
  for (auto at = m_removed.lower_bound({row_key, 0}); at != m_removed.end() && at->first == row_key; ++at) {
    if (at->second != cube) {
      return true;
    }
  }
  return false;
}

void PartsInDoubt::list_removed(const std::string& begin, const std::string& end,
                                std::set<std::string>* row_keys) const {
  MutexLock lock(m_mutex);
  for (auto at = m_removed.lower_bound({begin, 0}); at != m_removed.end() && at->first < end; ++at) {
    row_keys->insert(at->first);
  }
}

bool PartsInDoubt::is_durable(uint64_t nid) const {
  MutexLock lock(m_mutex);
  return m_durable.contains(nid);
}

void PartsInDoubt::object_durable(uint64_t nid) {
  MutexLock lock(m_mutex);
  m_durable.insert(nid);
}

void PartsInDoubt::object_changes(uint64_t nid) {
  MutexLock lock(m_mutex);
  m_durable.erase(nid);
}

}  // namespace swimstore
