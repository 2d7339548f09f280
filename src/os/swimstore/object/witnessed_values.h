// SPDX-License-Identifier: LGPL-2.1-or-later
// What cube 0 was told last of each placement group (format/witness.h), so that it is told what is new alone.
//
// Thread-safe. Of one group the caller holds the collection's unique lock.
#pragma once

#include <map>
#include <string>

#include "osd/osd_types.h"

#include "vtkv/util/mutex.h"

namespace swimstore {

class WitnessedValues {
 public:
  bool has(const coll_t& cid, const std::string& item, const std::string& value) const {
    vtkv::MutexLock lock(m_mutex);
    const auto group = m_groups.find(cid);
    if (group == m_groups.end()) {
      return false;
    }
    const auto known = group->second.find(item);
    return known != group->second.end() && known->second == value;
  }
  void set(const coll_t& cid, const std::string& item, std::string value) {
    vtkv::MutexLock lock(m_mutex);
    m_groups[cid][item] = std::move(value);
  }
  void forget(const coll_t& cid) {
    vtkv::MutexLock lock(m_mutex);
    m_groups.erase(cid);
  }

 private:
  mutable vtkv::Mutex m_mutex;
  std::map<coll_t, std::map<std::string, std::string>> m_groups GUARDED_BY(m_mutex);
};

}  // namespace swimstore
