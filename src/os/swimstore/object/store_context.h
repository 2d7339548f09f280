// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of a mounted store, made by SwimStore::mount and handed to all who work on it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "common/hobject.h"
#include "common/perf_counters.h"

#include "swimstore/collection/callback_threads.h"
#include "swimstore/collection/collection.h"
#include "swimstore/compression/compression.h"
#include "swimstore/cube/cube_set.h"
#include "swimstore/object/parts_in_doubt.h"
#include "swimstore/object/store_cube.h"
#include "swimstore/object/witnessed_values.h"
#include "swimstore/ops/metadata_failure.h"
#include "swimstore/ops/option_watch.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/ops/slow_operations.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// Reads that fail on purpose: of the objects of ObjectStore::inject_*_error, and a part of all
// (swimstore_debug_random_read_err). Thread-safe; free when empty.
class InjectedErrors {
 public:
  InjectedErrors(CephContext* cct, vtkv::Env* env);

  bool fails_at_random(const ghobject_t& oid) const;
  void add_data_error(const ghobject_t& oid);
  void add_metadata_error(const ghobject_t& oid);
  bool has_data_error(const ghobject_t& oid) const;
  bool has_metadata_error(const ghobject_t& oid) const;
  // The object was written anew or removed: both kinds end.
  void forget(const ghobject_t& oid);

 private:
  CephContext* const m_cct;
  vtkv::Env* const m_env;
  std::atomic<double> m_random;
  const OptionWatch m_random_option;
  mutable vtkv::Mutex m_mutex;
  std::atomic<bool> m_any{false};  // changed under m_mutex
  std::set<ghobject_t> m_data GUARDED_BY(m_mutex), m_metadata GUARDED_BY(m_mutex);
};

// All cubes of a mounted store, but for those that are missing.
class StoreCubes {
 public:
  StoreCubes(CubeSet& cubes, size_t onode_cache_bytes, size_t data_cache_bytes);

  unsigned size() const { return m_set.size(); }  // missing ones, too
  bool has(unsigned cube) const { return m_set.has(cube); }
  // REQUIRES: has(cube).
  StoreCube& operator[](unsigned cube) { return *m_by_number[cube]; }
  // After this one, the next that is not missing; size() when there is none.
  unsigned next(unsigned cube) const {
    do {
      ++cube;
    } while (cube < size() && !has(cube));
    return cube;
  }
  auto begin() const { return m_cubes.begin(); }
  auto end() const { return m_cubes.end(); }
  CubeSet& set() { return m_set; }

  // Over all: sum(cube) of each.
  template <typename Sum>
  uint64_t sum(const Sum& sum) const {
    uint64_t all = 0;
    for (const auto& cube : m_cubes) {
      all += sum(*cube);
    }
    return all;
  }
  uint64_t onode_bytes() const {
    return sum([](const StoreCube& cube) { return cube.onodes.memory_bytes(); });
  }
  uint64_t data_bytes() const {
    return sum([](const StoreCube& cube) { return cube.data.memory_bytes(); });
  }
  uint64_t tree_bytes() const { return m_set.database_statistics().block_cache_bytes; }

  // A total: an eighth of it is divided evenly, the rest as what each holds now.
  void set_onode_capacity(uint64_t bytes);
  void set_data_capacity(uint64_t bytes);
  void set_tree_capacity(uint64_t bytes);

 private:
  template <typename Held, typename Set>
  void divide(uint64_t bytes, const Held& held, const Set& set);

  CubeSet& m_set;
  std::vector<std::unique_ptr<StoreCube>> m_cubes;
  std::vector<StoreCube*> m_by_number;  // null: missing
};

struct StoreContext {
  StoreContext(CephContext* cct, vtkv::Env* env, CubeSet& cube_set, CallbackThreads& callbacks, PerfCounters& counters,
               MetadataFailure metadata_failure, bool may_compress, size_t onode_cache_bytes, size_t data_cache_bytes)
      : cct(cct),
        env(env),
        cubes(cube_set, onode_cache_bytes, data_cache_bytes),
        callbacks(callbacks),
        counters(counters),
        slow(cct, env, counters),
        metadata_failure(std::move(metadata_failure)),
        collections(cct, env),
        injected(cct, env),
        compression(cct, may_compress) {}

  // The cube that the collection's objects lie in.
  StoreCube& home(const Collection& collection) REQUIRES_SHARED(collection.lock) {
    return cubes[collection.record.home()];
  }

  CephContext* const cct;
  vtkv::Env* const env;
  StoreCubes cubes;
  CallbackThreads& callbacks;
  PerfCounters& counters;  // indices: ops/perf_counters.h
  SlowOperations slow;
  const MetadataFailure metadata_failure;
  std::function<void(uint64_t bytes)> no_room;  // of a tool: ends it, where a write waits in vain; set by the mount
  CollectionTable collections;
  InjectedErrors injected;
  Compression compression;
  UnownedCopies unowned;
  vtkv::Mutex copy_in_one_go;  // of a collection to another cube: over I/O
  PartsInDoubt parts_in_doubt;  // used with several cubes alone
  bool keeps_witnesses = false;  // of placement groups, in cube 0; set by the mount
  WitnessedValues witnessed;

  // Counts the time of an operation on `object`, and tells of it if it was long.
  template <typename Object>
  void took(int counter, std::string_view operation, std::chrono::nanoseconds latency, const Object& object) {
    counters.tinc(counter, latency);
    if (slow.is_slow(latency)) {
      std::ostringstream text;
      text << object;
      slow.note(operation, text.str(), latency);
    }
  }
};

}  // namespace swimstore
