// SPDX-License-Identifier: LGPL-2.1-or-later
// Lets a cube that falls idle note in its log that everything is durable.
//
// Two things wait for a durable record that knows the one before it was durable (doc/crash_consistency.md, What it
// asks in return): freed slots, until they are free, and the last transactions, until a crash does not make recovery
// ask whether their data arrived. Under load the next transaction brings that record. When none comes, an empty one
// is asked for: once, and while slots wait a few times more, since it frees nothing by itself.
//
// Threads: note_activity() from any.
#pragma once

#include <memory>

#include "swimstore/container/activity.h"
#include "swimstore/container/container_set.h"
#include "vtkv/db.h"

namespace swimstore {

class IdleCommitter {
 public:
  IdleCommitter(vtkv::Env* env, ContainerSet& containers, vtkv::DB& database);

  // A transaction was sequenced.
  void note_activity() {
    if (m_activity.note()) {
      m_worker->wake();
    }
  }

 private:
  vtkv::NextStep step();

  ContainerSet& m_containers;
  vtkv::DB& m_database;
  Activity m_activity;
  // Of the worker alone.
  unsigned m_commits = 0;  // since the last activity
  std::unique_ptr<vtkv::Worker> m_worker;
};

}  // namespace swimstore
