// Lets a cube that falls idle note in its log that everything is durable.
//
// Two things wait for a durable record that knows the one before it was durable (doc/crash_consistency.md, What it
// asks in return): freed slots, until they are free, and the last transactions, until a crash does not make recovery
// ask whether their data arrived. Under load the next transaction brings that record. When none comes, an empty one
// is asked for: once, and while slots wait a few times more, since it frees nothing by itself.
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

  // A transaction was sequenced. In the order that step() relies on: counted, then looked whether it sleeps.
  void note_activity() {
    m_activity.fetch_add(1);
    if (m_asleep.load() && m_asleep.exchange(false)) {
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
