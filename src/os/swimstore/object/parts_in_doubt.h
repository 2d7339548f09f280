// SPDX-License-Identifier: LGPL-2.1-or-later
// What a crash could still take back of omaps in parts, where other cubes' transactions rely on it
// (omap/part_writer.h). Holds what is on its way to be durable, which the commit throttle bounds.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "vtkv/util/mutex.h"

namespace swimstore {

class PartsInDoubt {
 public:
  // A transaction of this cube removed these rows and leaves no trace of them. Until it is durable, a crash would bring
  // them back.
  void removed(unsigned cube, std::span<const std::string> row_keys);
  void removals_durable(unsigned cube, std::span<const std::string> row_keys);
  // Is there one in another cube than this?
  bool is_removed_elsewhere(unsigned cube, const std::string& row_key) const;
  // Adds those in [begin, end), of any cube.
  void list_removed(const std::string& begin, const std::string& end, std::set<std::string>* row_keys) const;

  // Objects that are known to outlive any crash, under the name that they have now.
  bool is_durable(uint64_t nid) const;
  void object_durable(uint64_t nid);
  void object_changes(uint64_t nid);  // gets another name, or is removed

 private:
  mutable vtkv::Mutex m_mutex;
  std::multiset<std::pair<std::string, unsigned>> m_removed GUARDED_BY(m_mutex);
  std::unordered_set<uint64_t> m_durable GUARDED_BY(m_mutex);
};

}  // namespace swimstore
