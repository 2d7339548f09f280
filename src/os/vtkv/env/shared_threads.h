// SPDX-License-Identifier: LGPL-2.1-or-later
// An Env whose workers of one name share a thread and, where one flush covers all files, flushes: for several databases
// on one file system, such as the cubes of a store.
//
// Each database has the same workers: one commits, one flushes memtables, one compacts ... With an Env of its own each
// of them would be a thread, and each group commit a flush of the device. Here the commit workers of all databases are
// steps of one thread, over one I/O queue, and a flush that one of them asks for serves all that wait for one by then
// (shared_flush.h). While one is in its step, the others of its name wait; where steps take too long for that, workers
// keep threads of their own. No worker waits for another one (env.h), so sharing a thread cannot stop them.
//
// Gain: a store of four data cubes has four threads more than one of one cube, instead of some thirty
// (doc/benchmarks.md, Cubes).
//
// What else it does, the Env below does. Thread-safe, as that is. It outlives the workers that it made.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "vtkv/env/env_wrapper.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class SharedThread;

class SharedThreads final : public EnvWrapper {
 public:
  // Workers of one name and I/O depth share a thread, but for those names. `base` outlives it.
  explicit SharedThreads(Env* base, std::set<std::string> with_own_threads = {});
  // REQUIRES: all its workers have ended.
  ~SharedThreads() override;

  std::unique_ptr<Worker> start_worker(std::string name, unsigned io_depth, Worker::Step step) override
      EXCLUDES(m_mutex);

 private:
  const std::set<std::string> m_with_own_threads;
  Mutex m_mutex;
  std::map<std::pair<std::string, unsigned>, std::unique_ptr<SharedThread>> m_threads GUARDED_BY(m_mutex);
};

}  // namespace vtkv
