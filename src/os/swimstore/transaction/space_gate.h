// SPDX-License-Identifier: LGPL-2.1-or-later
// Lets a transaction in when there is room for it: what was accepted cannot be refused any more.
//
// In three steps, so that what clients send stops before deletes have to:
//   1. statfs() tells of the store as full while there is room for what is on its way (ops/space_report.h).
//   2. A throttle slows clients' writes when little is left (transaction/space_throttle.h).
//   3. A write that finds no room waits here, before the commit throttle and before any lock of the store, so that
//      deletes pass, and smaller writes that find some. The OSD's thread that brought it waits with it, and holds its
//      PG; who tells the PG of a commit waits, too, and others have to tell other PGs (collection/callback_threads.h).
//      So after swimstore_space_wait_time it may draw on half of the reserve, which is about what an OSD's threads
//      bring at once; and the OSD's map, which by then says that the OSD is full, stops what is behind them. The time
//      in the space throttle counts as waited.
//
// When that half is used up as well it goes on waiting, and the alert SWIMSTORE_NO_SPACE says who can end it. A tool,
// beside which nobody removes anything, gives up after a while. What a transaction frees is free when it is durable:
// one that removes and writes waits as any other write does.
//
// What needs room and must not wait (SpaceNeed::may_wait) takes what is kept for it, and waits only when that is
// gone, too.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>

#include "common/HBHandle.h"
#include "include/common_fwd.h"

#include "swimstore/container/container_set.h"
#include "swimstore/transaction/space_need.h"
#include "swimstore/transaction/space_throttle.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class SpaceGate {
 public:
  static constexpr uint64_t kGiveUp_us = 60 * 1000 * 1000;

  // `give_up`: told once of each write, by its bytes, that has waited so long beyond its patience, and waits on.
  SpaceGate(CephContext* cct, vtkv::Env* env, std::function<ContainerStatistics()> statistics,
            std::function<void(uint64_t bytes)> give_up);

  // Both return the time waited; handle: as CommitThrottle's. First the throttle, for a transaction of so many bytes.
  uint64_t throttle_us(const SpaceNeed& need, uint64_t bytes, HBHandle* handle);
  // Waits for room in these containers, and has it promised.
  uint64_t enter_us(ContainerSet& containers, const SpaceNeed& need, uint64_t throttled_us, HBHandle* handle);
  // It was planned, or cannot be.
  static void leave(ContainerSet& containers, const SpaceNeed& need);

  uint64_t waiting() const { return m_waiting.load(); }  // threads
  // Since when the one that waits longest does; 0: nobody waits.
  uint64_t oldest_us() const;
  // How long a write waits for room before it may draw on the reserve.
  uint64_t patience_us() const { return m_patience_us; }

 private:
  // Asks the host.
  bool promise(ContainerSet& containers, const SpaceNeed& need, uint64_t waited_us) EXCLUDES(m_mutex);
  uint64_t wait_us(ContainerSet& containers, const SpaceNeed& need, uint64_t throttled_us);
  vtkv::NextStep look_again();

  CephContext* const m_cct;
  vtkv::Env* const m_env;
  SpaceThrottle m_throttle;
  const std::function<void(uint64_t bytes)> m_give_up;
  const uint64_t m_patience_us;
  std::atomic<uint64_t> m_waiting{0};
  mutable vtkv::Mutex m_mutex;
  std::multiset<uint64_t> m_began_us GUARDED_BY(m_mutex);  // of those who wait
  uint64_t m_looks GUARDED_BY(m_mutex) = 0;  // times to look for room
  uint64_t m_said_us GUARDED_BY(m_mutex) = 0;  // when the log was told last
  std::unique_ptr<vtkv::Signal> m_look;
  // Room comes from many sides, the host among them: so it is looked for again and again. Uses all of the above.
  std::unique_ptr<vtkv::Worker> m_worker;
};

}  // namespace swimstore
