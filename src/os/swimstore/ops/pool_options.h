// SPDX-License-Identifier: LGPL-2.1-or-later
// What is asked for by pool: options of Ceph's that this store accepts and does not obey, such as checksums other than
// its own; and pools whose writes need not be durable at once.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "osd/osd_types.h"

#include "swimstore/ops/option_watch.h"
#include "vtkv/status.h"
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

inline constexpr const char* kRelaxedPoolsOption = "swimstore_relaxed_pools";

// Numbers of pools, with commas or spaces between them. Otherwise one sentence, which names the option.
vtkv::Status parse_relaxed_pools(const std::string& text, std::set<int64_t>* pools);

// Pools whose transactions are acknowledged when they are written, before they are durable (doc/
// swimstore-config-ref.rst). IceFS fits the journaling of a cube to what its user needs (OSDI '14, section 3.3); here
// it is that of a pool. Erasure-coded pools are never among them: peering goes back to the oldest of their shards, and
// one that lost its last second would take acknowledged writes from all. Thread-safe.
class RelaxedPools {
 public:
  // Follows the option. What cannot be parsed is said in the log and changes nothing.
  explicit RelaxedPools(CephContext* cct);

  bool any() const { return m_any; }
  bool contains(const coll_t& cid) const;
  // SWIMSTORE_RELAXED_POOLS while there are any.
  void add_alert(const std::string& path, const std::vector<coll_t>& collections, osd_alert_list_t* alerts) const;

 private:
  void set(const std::string& text);

  CephContext* const m_cct;
  std::atomic<bool> m_any{false};
  mutable vtkv::Mutex m_mutex;
  std::set<int64_t> m_pools GUARDED_BY(m_mutex);
  const OptionWatch m_watch;
};

}  // namespace swimstore
