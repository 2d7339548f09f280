// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of a mounted store, made by SwimStore::mount and handed to all who work on it.
#pragma once

#include <atomic>
#include <chrono>
#include <set>
#include <sstream>
#include <string_view>

#include "common/Finisher.h"
#include "common/hobject.h"
#include "common/perf_counters.h"

#include "swimstore/cube/cube.h"
#include "swimstore/object/collection.h"
#include "swimstore/object/data_cache.h"
#include "swimstore/object/onode_cache.h"
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

struct StoreContext {
  StoreContext(CephContext* cct, vtkv::Env* env, Cube& cube, Finisher& finisher, PerfCounters& counters,
               MetadataFailure metadata_failure, size_t onode_cache_bytes, size_t data_cache_bytes)
      : cct(cct),
        env(env),
        cube(cube),
        finisher(finisher),
        counters(counters),
        slow(cct, env, counters),
        metadata_failure(std::move(metadata_failure)),
        collections(cct),
        onodes(cube.database(), onode_cache_bytes),
        data(data_cache_bytes),
        injected(cct, env) {}

  CephContext* const cct;
  vtkv::Env* const env;
  Cube& cube;
  Finisher& finisher;      // for contexts of collections without a commit queue
  PerfCounters& counters;  // indices: ops/perf_counters.h
  SlowOperations slow;
  const MetadataFailure metadata_failure;
  CollectionTable collections;
  OnodeCache onodes;
  DataCache data;
  InFlightData in_flight;
  InjectedErrors injected;

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
