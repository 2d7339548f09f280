// Lets freed slots become free on an idle cube.
//
// A freed slot waits for a durable record that knows the freeing one was durable (doc/crash_consistency.md, What it
// asks in return).
// Under load the next transaction brings it. When none comes while slots wait, an empty record is asked for:
// a few times at most per pause, since an empty record frees nothing by itself.
//
// Threads: note_freed() from any.
#pragma once

#include <atomic>
#include <memory>

#include "swimstore/container/container_set.h"
#include "vtkv/db.h"

namespace swimstore {

class HorizonKeeper {
 public:
  HorizonKeeper(vtkv::Env* env, ContainerSet& containers, vtkv::DB& database);

  // A transaction was sequenced.
  void note_activity() {
    m_activity.fetch_add(1, std::memory_order_relaxed);
    if (m_asleep.load(std::memory_order_relaxed) && m_asleep.exchange(false)) {
      m_worker->wake();
    }
  }

 private:
  vtkv::NextStep step();

  ContainerSet& m_containers;
  vtkv::DB& m_database;
  std::atomic<uint64_t> m_activity{0};
  std::atomic<bool> m_asleep{false};
  uint64_t m_activity_seen = 0;
  unsigned m_asked = 0;  // since the last activity
  std::unique_ptr<vtkv::Worker> m_worker;
};

}  // namespace swimstore
