// SPDX-License-Identifier: LGPL-2.1-or-later
// The whole life of a small store, as a script: mkfs, mount, transactions of every kind, a collection split, umount,
// mount, the collections merged again, umount. A host that fails may cut it short anywhere. In a store of three cubes
// one of them lies elsewhere before they are merged.
//
// What no store may do then: abort, acknowledge what it loses, give wrong bytes for right ones, lose a store that
// mkfs had made. What it may do: fail an operation with an error; end (SwimStore::set_fatal_handler).
//
// Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "include/Context.h"
#include "include/common_fwd.h"

#include "swimstore/testing/store_workload.h"
#include "vtkv/testing/sim_env.h"

class SwimStore;

namespace swimstore {

// What the script did, and what it was promised.
struct StoreHistory {
  bool made = false;                                    // mkfs said so
  std::vector<ModelState> states = std::vector<ModelState>(1);    // after 0, 1, 2, … transactions
  size_t acknowledged = 0;                              // of them
  // A block that could not be read when a part of it was written gives errors from then on: the store must not make
  // good data of bad, and does not end for it.
  bool may_have_lost_blocks = false;
};

class StoreScript {
 public:
  static constexpr const char* kPath = "/store";

  // Options of the context are set for small stores, and stay so. The directory is there. `before_move`: given, the
  // store has three cubes, and it is called before the collection that is merged later moves away.
  StoreScript(CephContext* cct, vtkv::SimEnv* env, uint64_t seed, std::function<void()> before_move = {});

  // Until the end or the first error. "" or what no store may do. `lives`: 1 stops at the first umount.
  std::string run(unsigned lives = 2);
  const StoreHistory& history() const { return m_history; }

  // Opens what is there once more, on a host that works: "" or how it breaks a promise.
  static std::string check(CephContext* cct, vtkv::SimEnv* env, const StoreHistory& history);
  static std::unique_ptr<SwimStore> open_store(CephContext* cct, vtkv::SimEnv* env);

 private:
  using Transaction = ObjectStore::Transaction;

  std::string first_life(SwimStore& store);
  std::string second_life(SwimStore& store);
  // False: the store reported an error, and the script ends.
  bool queue(SwimStore& store, const coll_t& cid, Transaction txn, bool wait);
  bool work(SwimStore& store, unsigned transactions);
  bool split(SwimStore& store);
  bool merge(SwimStore& store);
  bool move_child(SwimStore& store);
  std::string compare(SwimStore& store) const;
  ModelState expected() const;

  CephContext* const m_cct;
  vtkv::SimEnv* const m_env;
  StoreWorkload m_workload;  // on the collection that is there from the beginning
  std::optional<ModelObject> m_odd;  // the object that goes to the other collection when that is split off
  bool m_is_split = false;
  const std::function<void()> m_before_move;
  bool m_has_anchor = false;
  StoreHistory m_history;
  ContextQueue* m_commits = nullptr;
  std::vector<std::unique_ptr<Context>> m_acknowledgements;
  bool m_stopped = false;    // by an error
};

}  // namespace swimstore
