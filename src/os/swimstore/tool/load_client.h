// SPDX-License-Identifier: LGPL-2.1-or-later
// One thread of a load: builds operations of one PG as an OSD would, and has several of them in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/ceph_time.h"
#include "swimstore/tool/acked_objects.h"
#include "swimstore/tool/store_load.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// One thread, its PG and what it has in flight. Only readers share a PG.
class LoadClient {
 public:
  struct Outcome {
    std::vector<float> latencies_ms;
    std::vector<uint32_t> done_in_second;
    uint64_t listed_objects = 0, wrong_objects = 0;
    std::string first_wrong;
    int error = 0;  // the last
  };

  LoadClient(ObjectStore& store, const LoadOptions& options, unsigned number, unsigned pg, AckedObjects::Entry& objects,
             unsigned depth);

  int prepare();
  // One read and one write, right after a mount.
  int first_io(LoadResult* result);
  void run(ceph::mono_clock::time_point end, uint64_t operations);
  // Since run() began; once.
  Outcome take_outcome();
  // What the client itself keeps in memory.
  uint64_t own_bytes() const;

 private:
  // Told of an acknowledgement; or nullptr.
  using Count = std::atomic<uint64_t>;

  int make_pg();
  int open_pg();
  void fragment();
  ghobject_t object(uint64_t number) const;
  uint64_t any_object();
  uint64_t slices() const;
  ceph::bufferlist content(uint64_t number, uint64_t offset, uint64_t bytes) const;
  ceph::bufferlist filler(size_t bytes) const;
  bool step();
  bool add_operation(ObjectStore::Transaction* txn);
  Count* changed_count();
  void add_pg_log(const ghobject_t& oid, ObjectStore::Transaction* txn);
  void submit(ObjectStore::Transaction&& txn, Count* changed);
  void finished(ceph::mono_clock::time_point began, int r, Count* changed) EXCLUDES(m_mutex);
  // How long it took, and when it ended.
  void note(ceph::mono_clock::time_point began, ceph::mono_clock::time_point now, int r) REQUIRES(m_mutex);
  void drain();
  void read_one();
  bool list_some();
  bool check_one();
  int error() const;

  ObjectStore& m_store;
  const LoadOptions& m_options;
  const unsigned m_depth;
  const coll_t m_cid;
  const ghobject_t m_pgmeta;
  ObjectStore::CollectionHandle m_collection;
  std::mt19937_64 m_random;
  ceph::bufferptr m_pattern;
  uint64_t m_operations = 0;  // in a PG that exists, those of earlier runs too: versions of its log
  AckedObjects::Entry& m_objects;
  uint64_t m_next = 0;        // number of the object that is written, removed or, plus 1, checked next
  ghobject_t m_listed_to;

  // Who commits reports here; all else is of the client's thread alone.
  mutable vtkv::Mutex m_mutex;
  vtkv::ConditionVariable m_changed;
  unsigned m_in_flight GUARDED_BY(m_mutex) = 0;
  ceph::mono_clock::time_point m_start GUARDED_BY(m_mutex);
  Outcome m_outcome GUARDED_BY(m_mutex);
};

}  // namespace swimstore
