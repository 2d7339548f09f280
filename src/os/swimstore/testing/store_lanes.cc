#include "swimstore/testing/store_lanes.h"

#include <fmt/format.h>

#include "include/Context.h"
#include "swimstore/swimstore.h"

namespace swimstore {

namespace {

constexpr unsigned kLanes = 2;
constexpr unsigned kPgBits = 4;

uint64_t mark_of(size_t lane, size_t transaction) { return uint64_t{lane} << 32 | transaction; }

}  // namespace

std::vector<uint64_t> marks_of(const std::vector<size_t>& transactions) {
  std::vector<uint64_t> marks;
  for (size_t i = 0; i < transactions.size(); ++i) {
    marks.push_back(mark_of(i, transactions[i]));
  }
  return marks;
}

StoreLanes::StoreLanes() {
  for (unsigned i = 0; i < kLanes; ++i) {
    m_lanes.push_back({coll_t(spg_t(pg_t(i, 1))), std::vector<ModelCollection>(1)});
  }
}

std::vector<size_t> StoreLanes::acknowledged(std::span<const uint64_t> marks) const {
  std::vector<size_t> result;
  for (const Lane& lane : m_lanes) {
    result.push_back(lane.acknowledged);
  }
  for (const uint64_t mark : marks) {
    size_t& last = result[mark >> 32];
    last = std::max<size_t>(last, mark & UINT32_MAX);
  }
  return result;
}

void StoreLanes::promise(const std::vector<size_t>& transactions) {
  for (size_t i = 0; i < m_lanes.size(); ++i) {
    m_lanes[i].acknowledged = transactions[i];
  }
}

void StoreLanes::forget_after(const std::vector<size_t>& transactions) {
  for (size_t i = 0; i < m_lanes.size(); ++i) {
    m_lanes[i].history.resize(transactions[i] + 1);
  }
}

std::string StoreLanes::check(SwimStore& store, const std::vector<size_t>& acknowledged,
                              std::vector<size_t>* found) const {
  for (size_t i = 0; i < m_lanes.size(); ++i) {
    const Lane& lane = m_lanes[i];
    auto handle = store.open_collection(lane.cid);
    if (!handle) {
      return fmt::format("collection {} is gone", i);
    }
    std::string error;
    const ModelCollection objects = read_collection(store, handle, &error);
    if (!error.empty()) {
      return error;
    }
    size_t n = acknowledged[i];
    while (n < lane.history.size() && lane.history[n] != objects) {
      ++n;
    }
    if (n == lane.history.size()) {
      return fmt::format("collection {} holds no prefix of at least {} transactions: compared with that one, {}", i,
                         acknowledged[i], difference(lane.history[acknowledged[i]], objects));
    }
    found->push_back(n);
  }
  return {};
}

StoreLoad::StoreLoad(SwimStore& store, StoreLanes& lanes, uint64_t seed, const WorkloadOptions& options,
                     ContextQueue* queue, Acknowledge acknowledge)
    : m_store(store), m_lanes(lanes), m_acknowledge(std::move(acknowledge)) {
  for (size_t i = 0; i < kLanes; ++i) {
    const StoreLanes::Lane& lane = lanes.m_lanes[i];
    const bool is_new = !store.collection_exists(lane.cid);
    m_handles.push_back(is_new ? store.create_new_collection(lane.cid) : store.open_collection(lane.cid));
    store.set_collection_commit_queue(lane.cid, queue);
    if (is_new) {
      ObjectStore::Transaction create;
      create.create_collection(lane.cid, kPgBits);
      this->queue(i, 0, std::move(create));
    }
    WorkloadOptions own = options;
    own.seed = seed * kLanes + i;
    m_workloads.emplace_back(lane.cid, own, lane.history.back());
  }
}

void StoreLoad::queue(size_t lane, size_t number, ObjectStore::Transaction txn) {
  const uint64_t mark = mark_of(lane, number);
  ++m_queued;
  txn.register_on_commit(new LambdaContext([acknowledge = m_acknowledge, mark](int) { acknowledge(mark); }));
  m_store.queue_transaction(m_handles[lane], std::move(txn));
}

void StoreLoad::queue_one(std::mt19937_64& random) {
  const size_t i = random() % kLanes;
  ObjectStore::Transaction txn = m_workloads[i].next();
  std::vector<ModelCollection>& history = m_lanes.m_lanes[i].history;
  history.push_back(m_workloads[i].model());
  queue(i, history.size() - 1, std::move(txn));
}

}  // namespace swimstore
