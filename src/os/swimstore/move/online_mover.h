// SPDX-License-Identifier: LGPL-2.1-or-later
// Moves of placement groups between cubes while the store is in use, as an operator asks for them: one after the other,
// in a thread of their own that begins with the first (online_move.h).
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "swimstore/move/group_balance.h"
#include "swimstore/move/online_move.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class OnlineMover {
 public:
  // What was asked for last.
  struct Report {
    const char* state = "idle";  // then measuring (all groups), moving, and: done, planned, stopped, failed
    std::string error;  // why it failed, or what a balance passed over
    std::vector<GroupMove> plan;
    size_t done = 0, failed = 0;  // moves of it
    // Of the one under way, or the last one.
    const char* phase = "";
    uint64_t slot_bytes = 0, objects = 0, bytes = 0, hashes_left = 0, blocked_us = 0;
    unsigned passes = 0;
    bool is_under_way() const;
  };

  OnlineMover(StoreContext& store, TransactionPipeline& pipeline);
  ~OnlineMover();
  OnlineMover(const OnlineMover&) = delete;
  OnlineMover& operator=(const OnlineMover&) = delete;

  // Begins; what becomes of it, report() says. Code::busy: something else is under way. Code::invalid_argument,
  // Code::not_found, Code::failed: it cannot be.
  vtkv::Status move(const coll_t& cid, unsigned cube);
  // Measures all groups, plans (group_balance.h), and unless `only_plan`, moves.
  vtkv::Status balance(bool only_plan);
  // It ends soon, and what it has copied is removed.
  void cancel();
  // For an unmount: it ends, and what it has copied is removed by the next mount. Waits for that. Nothing begins any
  // more.
  void stop();
  Report report() const;

  // The collection is about to move to that cube, and the caller holds its lock: a move of it in the background is
  // given up, and what one has left in the cube is removed.
  void make_way(Collection& collection, unsigned cube) REQUIRES(collection.lock);
  // A collection of this name is about to be made in that cube, or to get so few bits there, and with them whatever
  // lies there in its range: what a move has there of it is removed. The caller holds the collection's lock.
  // -ESHUTDOWN: the store is being unmounted. -EIO: it cannot be removed.
  int make_way(unsigned cube, const coll_t& cid, uint32_t bits);

  // The whole move by the caller's thread. `between`: called whenever clients come in. For tests.
  vtkv::Status move_now(const coll_t& cid, unsigned cube, const MoveLimits& limits,
                        const std::function<void()>& between);

  // No group can be moved there: why.
  vtkv::Status check_target(unsigned cube) const;
  // Where groups can be moved to.
  std::vector<unsigned> targets() const;

 private:
  struct Task {
    bool is_balance = false;
    bool only_plan = false;
    CollectionRef group;
    unsigned to = 0;
  };

  vtkv::Status check_divided() const;
  vtkv::Status find(const coll_t& cid, unsigned cube, CollectionRef* group) const;
  vtkv::Status begin(Task task);
  vtkv::NextStep step();
  vtkv::Status run(const Task& task, const std::function<void(uint64_t)>& between);
  vtkv::Status balance_all(bool only_plan, const std::function<void(uint64_t)>& between);
  vtkv::Status move_one(const CollectionRef& group, unsigned to, const MoveLimits& limits,
                        const std::function<void(uint64_t)>& between);
  vtkv::Status measure(const CollectionRef& group, const std::function<void(uint64_t)>& between, GroupSize* size);
  void end(const Task& task, const vtkv::Status& status);
  // That a move has in the cube, and that a group of this name and so many bits would take for its own.
  void remove_copies(unsigned cube, const coll_t& cid, uint32_t bits);
  // As long as the lock was held for, so that clients have at least half of the time.
  void rest(uint64_t us);

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  MoveStop m_stop;

  vtkv::Mutex m_worker_lock ACQUIRED_BEFORE(m_lock);
  std::unique_ptr<vtkv::Worker> m_worker GUARDED_BY(m_worker_lock);
  bool m_ended GUARDED_BY(m_worker_lock) = false;

  mutable vtkv::Mutex m_lock;
  vtkv::ConditionVariable m_woken;
  Report m_report GUARDED_BY(m_lock);
  std::optional<Task> m_task GUARDED_BY(m_lock);  // begun, and not yet taken by the thread
  std::shared_ptr<OnlineMove> m_move GUARDED_BY(m_lock);  // under way
  std::shared_ptr<MoveProgress> m_progress GUARDED_BY(m_lock);
};

}  // namespace swimstore
