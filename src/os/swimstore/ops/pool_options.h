// SPDX-License-Identifier: LGPL-2.1-or-later
// Options of a pool that this store accepts and does not obey: compression, and checksums other than its own.
#pragma once

#include <map>
#include <string>

#include "osd/osd_types.h"

#include "vtkv/util/mutex.h"

namespace swimstore {

// In words; empty: all are obeyed.
std::string describe_ignored(const pool_opts_t& options);

// What was asked for in vain, by pool. Thread-safe.
class IgnoredPoolOptions {
 public:
  // Returns what is new of it, in words, once.
  std::string note(int64_t pool, const pool_opts_t& options);
  // For pools of which there is a collection.
  void add_alert(const std::string& path, const std::vector<coll_t>& collections, osd_alert_list_t* alerts);

 private:
  vtkv::Mutex m_mutex;
  std::map<int64_t, std::string> m_texts GUARDED_BY(m_mutex);
};

}  // namespace swimstore
