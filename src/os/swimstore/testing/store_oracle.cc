// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/store_oracle.h"

#include <fmt/format.h>

#include "include/Context.h"
#include "include/ceph_assert.h"
#include "swimstore/defragment/data_defragmenter.h"
#include "swimstore/move/online_move.h"
#include "swimstore/swimstore.h"

namespace swimstore {

namespace {

constexpr unsigned kCollections = 2;
constexpr unsigned kAnchors = 2;
constexpr unsigned kPgBits = 4;

uint64_t mark_of(size_t collection, size_t transaction) { return uint64_t{collection} << 32 | transaction; }

}  // namespace

std::vector<uint64_t> marks_of(const std::vector<size_t>& transactions) {
  std::vector<uint64_t> marks;
  for (size_t i = 0; i < transactions.size(); ++i) {
    marks.push_back(mark_of(i, transactions[i]));
  }
  return marks;
}

StoreOracle::StoreOracle() {
  for (unsigned i = 0; i < kCollections; ++i) {
    m_collections.push_back({coll_t(spg_t(pg_t(i, 1))), std::vector<ModelCollection>(1)});
  }
}

std::vector<size_t> StoreOracle::acknowledged(std::span<const uint64_t> marks) const {
  std::vector<size_t> result;
  for (const Collection& collection : m_collections) {
    result.push_back(collection.acknowledged);
  }
  for (const uint64_t mark : marks) {
    size_t& last = result[mark >> 32];
    last = std::max<size_t>(last, mark & UINT32_MAX);
  }
  return result;
}

void StoreOracle::promise(const std::vector<size_t>& transactions) {
  for (size_t i = 0; i < m_collections.size(); ++i) {
    m_collections[i].acknowledged = transactions[i];
  }
}

void StoreOracle::forget_after(const std::vector<size_t>& transactions) {
  for (size_t i = 0; i < m_collections.size(); ++i) {
    m_collections[i].history.resize(transactions[i] + 1);
  }
}

std::string StoreOracle::check(SwimStore& store, const std::vector<size_t>& acknowledged,
                               std::vector<size_t>* found) const {
  for (size_t i = 0; i < m_collections.size(); ++i) {
    const Collection& collection = m_collections[i];
    auto handle = store.open_collection(collection.cid);
    if (!handle) {
      return fmt::format("collection {} is gone", i);
    }
    std::string error;
    const ModelCollection objects = read_collection(store, handle, &error);
    if (!error.empty()) {
      return error;
    }
    size_t n = acknowledged[i];
    while (n < collection.history.size() && collection.history[n] != objects) {
      ++n;
    }
    if (n == collection.history.size()) {
      return fmt::format("collection {} holds no prefix of at least {} transactions: compared with that one, {}", i,
                         acknowledged[i], difference(collection.history[acknowledged[i]], objects));
    }
    found->push_back(n);
  }
  return {};
}

StoreLoad::StoreLoad(SwimStore& store, StoreOracle& oracle, uint64_t seed, const WorkloadOptions& options,
                     ContextQueue* queue, Acknowledge acknowledge)
    : m_store(store), m_oracle(oracle), m_acknowledge(std::move(acknowledge)) {
  for (size_t i = 0; i < kCollections; ++i) {
    const StoreOracle::Collection& collection = oracle.m_collections[i];
    const bool is_new = !store.collection_exists(collection.cid);
    m_handles.push_back(is_new ? store.create_new_collection(collection.cid) : store.open_collection(collection.cid));
    store.set_collection_commit_queue(collection.cid, queue);
    if (is_new) {
      ObjectStore::Transaction create;
      create.create_collection(collection.cid, kPgBits);
      this->queue(i, 0, std::move(create));
    }
    WorkloadOptions own = options;
    own.seed = seed * kCollections + i;
    m_workloads.emplace_back(collection.cid, own, collection.history.back());
  }
  for (unsigned i = 0; i < kAnchors && options.moves; ++i) {
    const coll_t cid(spg_t(pg_t(kCollections + i, 1)));
    const bool is_new = !store.collection_exists(cid);
    m_anchors.push_back(is_new ? store.create_new_collection(cid) : store.open_collection(cid));
    store.set_collection_commit_queue(cid, queue);
    if (is_new) {
      ObjectStore::Transaction create;
      create.create_collection(cid, kPgBits);
      store.queue_transaction(m_anchors.back(), std::move(create));
    }
  }
}

void StoreLoad::queue(size_t collection, size_t number, ObjectStore::Transaction txn) {
  queue(collection, number, std::move(txn), m_handles[collection]);
}

void StoreLoad::queue(size_t collection, size_t number, ObjectStore::Transaction txn,
                      ObjectStore::CollectionHandle& handle) {
  const uint64_t mark = mark_of(collection, number);
  ++m_queued;
  txn.register_on_commit(new LambdaContext([acknowledge = m_acknowledge, mark](int) { acknowledge(mark); }));
  m_store.queue_transaction(handle, std::move(txn));
}

void StoreLoad::queue_one(std::mt19937_64& random) {
  const size_t i = random() % kCollections;
  ObjectStore::Transaction txn = m_workloads[i].next();
  std::vector<ModelCollection>& history = m_oracle.m_collections[i].history;
  history.push_back(m_workloads[i].model());
  if (m_anchors.empty() || random() % 3 != 0) {
    queue(i, history.size() - 1, std::move(txn));
    return;
  }
  ObjectStore::CollectionHandle& anchor = m_anchors[random() % kAnchors];
  spg_t pg;
  anchor->cid.is_pg(&pg);
  ObjectStore::Transaction with_anchor;
  with_anchor.touch(anchor->cid, ghobject_t(hobject_t(object_t("anchor"), "", CEPH_NOSNAP, pg.ps(), pg.pool(), "")));
  with_anchor.append(txn);
  queue(i, history.size() - 1, std::move(with_anchor), anchor);
}

void StoreLoad::move_one(std::mt19937_64& random) {
  const coll_t& cid = m_oracle.m_collections[random() % kCollections].cid;
  const uint64_t first = random();
  for (unsigned i = 0; i < kAnchors; ++i) {  // in one of the cubes it lies already
    const MoveLimits limits{.batch_bytes = 1 + random() % 50'000, .last_bytes = 500'000};
    uint64_t transactions = random() % 8;
    const vtkv::Status status = m_store.move_in_use(cid, 1 + (first + i) % kAnchors, limits, [&] {
      if (transactions > 0 && random() % 3 == 0) {
        --transactions;
        queue_one(random);
      }
    });
    ceph_assert(status.ok() || status.error_number() == ECANCELED);
  }
}

void StoreLoad::defragment(std::mt19937_64& random) {
  uint64_t transactions = random() % 8;
  DefragmentCounts counts;
  const vtkv::Status status = m_store.defragment_in_use(
      false,
      [&] {
        if (transactions > 0 && random() % 3 == 0) {
          --transactions;
          queue_one(random);
        }
      },
      &counts);
  ceph_assert(status.ok());
  m_defragmented_bytes += counts.moved_bytes;
}

}  // namespace swimstore
