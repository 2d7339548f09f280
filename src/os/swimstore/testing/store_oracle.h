// SPDX-License-Identifier: LGPL-2.1-or-later
// Two collections of a store, a seeded load on them, and the oracle of a crash: each collection holds the effect of a
// prefix of its transactions, with everything that was acknowledged in it.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "swimstore/testing/store_workload.h"

class SwimStore;

namespace swimstore {

// What was queued, and what was promised. Not thread-safe.
class StoreOracle {
 public:
  StoreOracle();

  // The state after `acknowledged` transactions of each collection must be there, or that after more; *found: which.
  std::string check(SwimStore& store, const std::vector<size_t>& acknowledged, std::vector<size_t>* found) const;
  // What these marks promise beside what was acknowledged before.
  std::vector<size_t> acknowledged(std::span<const uint64_t> marks) const;
  // So many transactions of each collection are acknowledged.
  void promise(const std::vector<size_t>& transactions);
  // What came after so many transactions of each collection never happened.
  void forget_after(const std::vector<size_t>& transactions);

 private:
  friend class StoreLoad;
  struct Collection {
    coll_t cid;
    std::vector<ModelCollection> history;  // after 0, 1, 2, … transactions
    size_t acknowledged = 0;
  };
  std::vector<Collection> m_collections;
};

// The load. Nothing of it may be left when the store is unmounted. Not thread-safe.
class StoreLoad {
 public:
  // Called with the mark of a transaction, when it is acknowledged and wherever the store does so.
  using Acknowledge = std::function<void(uint64_t mark)>;

  // Makes the collections that are not there yet; their marks are those of 0 transactions. `queue`: where commits
  // complete; null: in the store's finisher.
  StoreLoad(SwimStore& store, StoreOracle& oracle, uint64_t seed, const WorkloadOptions& options, ContextQueue* queue,
            Acknowledge acknowledge);
  // One transaction more, in either collection. Where collections move, it may name an object of a third or a fourth
  // one, which lie in two cubes and stay there: it commits where that lies, so that the collection has to go there
  // first.
  void queue_one(std::mt19937_64& random);
  // Either collection goes to another cube while it is in use, perhaps and back: transactions of both come in between.
  void move_one(std::mt19937_64& random);
  // Puts the data of all objects together, with transactions in between.
  void defragment(std::mt19937_64& random);
  uint64_t defragmented_bytes() const { return m_defragmented_bytes; }  // moved by that, so far
  // Transactions so far; each is acknowledged once.
  uint64_t queued() const { return m_queued; }

 private:
  void queue(size_t collection, size_t number, ObjectStore::Transaction txn);
  void queue(size_t collection, size_t number, ObjectStore::Transaction txn, ObjectStore::CollectionHandle& handle);

  SwimStore& m_store;
  StoreOracle& m_oracle;
  const Acknowledge m_acknowledge;
  uint64_t m_queued = 0;
  uint64_t m_defragmented_bytes = 0;
  std::vector<ObjectStore::CollectionHandle> m_handles;
  std::vector<StoreWorkload> m_workloads;
  std::vector<ObjectStore::CollectionHandle> m_anchors;  // in each cube that collections move between
};

// The mark that so many transactions of each collection were found, or acknowledged.
std::vector<uint64_t> marks_of(const std::vector<size_t>& transactions);

}  // namespace swimstore
