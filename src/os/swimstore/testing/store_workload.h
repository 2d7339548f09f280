// SPDX-License-Identifier: LGPL-2.1-or-later
// A seeded stream of valid transactions over the whole alphabet of operations, each applied to the model
// as it is made.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "swimstore/testing/model_store.h"

namespace swimstore {

struct WorkloadOptions {
  uint64_t seed = 1;
  unsigned objects = 6;            // names to choose from
  unsigned hashes = 2;             // of these names: an object can be cloned only to one of the same hash
  unsigned operations_max = 4;     // per transaction
  uint64_t object_bytes_max = 256 * 1024;
  bool compressible = false;  // the bytes that are written; the store compresses them
  bool moves = false;  // now and then a collection moves to another cube, of a store that has three
  bool defragments = false;  // after each few transactions data is put together, while others come in
  bool two_file_systems = false;  // log and tree of the store lie on another one than the data
};

class StoreWorkload {
 public:
  // All objects lie in one collection, a PG's, which holds the model by now.
  StoreWorkload(const coll_t& cid, const WorkloadOptions& options, ModelCollection model = {});

  // The next transaction; the model has it from now on.
  ObjectStore::Transaction next();
  const ModelCollection& model() const { return m_model; }

 private:
  using Transaction = ObjectStore::Transaction;

  uint64_t pick(uint64_t below) { return m_random() % below; }
  ghobject_t any_name();
  ghobject_t existing();  // REQUIRES: the model is not empty
  std::string bytes(uint64_t count);
  uint64_t any_offset();
  uint64_t any_length();
  static std::string key_of(uint64_t number) { return "key_" + std::to_string(number); }
  std::string any_key() { return key_of(pick(kKeys)); }

  void add_operation(Transaction* txn);
  void add_data_operation(Transaction* txn);
  void add_attr_operation(Transaction* txn);
  void add_omap_operation(Transaction* txn);
  void add_copy_operation(Transaction* txn);
  void write(Transaction* txn);
  void zero(Transaction* txn, const ghobject_t& oid);
  void truncate(Transaction* txn, const ghobject_t& oid);
  void clone_range(Transaction* txn, const ghobject_t& from);

  static constexpr uint64_t kKeys = 12;  // of an object's omap, to choose from

  const coll_t m_cid;
  const WorkloadOptions m_options;
  std::mt19937_64 m_random;
  ModelCollection m_model;
};

}  // namespace swimstore
