#include "swimstore/commit/commit_pipeline.h"

#include <algorithm>

#include <boost/container/small_vector.hpp>

#include "common/Formatter.h"
#include "common/debug.h"
#include "common/errno.h"

#include "swimstore/commit/txn_context.h"
#include "swimstore/store/txn_planner.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.commit "

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;
using Iterators = boost::container::small_vector<Transaction::iterator, 2>;

// The unique lock of every collection that the transactions name, taken in one global order.
class CollectionLocks {
 public:
  CollectionLocks(const CollectionTable& table, const CollectionRef& queued_on, const Iterators& transactions) {
    m_collections.push_back(queued_on);
    for (const Transaction::iterator& transaction : transactions) {
      for (const coll_t& cid : transaction.colls) {
        add(table.find(cid));
        add(table.find_prepared(cid));
      }
    }
    std::sort(m_collections.begin(), m_collections.end());
    for (const CollectionRef& collection : m_collections) {
      collection->lock.lock();
    }
  }
  ~CollectionLocks() {
    for (const CollectionRef& collection : m_collections) {
      collection->lock.unlock();
    }
  }
  CollectionLocks(const CollectionLocks&) = delete;
  CollectionLocks& operator=(const CollectionLocks&) = delete;

  const auto& collections() const { return m_collections; }

 private:
  void add(const CollectionRef& collection) {
    if (collection && std::find(m_collections.begin(), m_collections.end(), collection) == m_collections.end()) {
      m_collections.push_back(collection);
    }
  }

  boost::container::small_vector<CollectionRef, 4> m_collections;
};

constexpr const char* kThrottleOption = "swimstore_throttle_bytes";
// What a transaction holds in memory beside its bytes: itself, its contexts, its place in the queues.
constexpr uint64_t kTransactionBytes = 4096;

}  // namespace

CommitPipeline::CommitPipeline(StoreContext& store)
    : m_store(store), m_throttle(store.env, store.cct->_conf.get_val<Option::size_t>(kThrottleOption)),
      m_throttle_option(store.cct, kThrottleOption,
                        [this](const ConfigProxy& conf) {
                          m_throttle.set_limit(conf.get_val<Option::size_t>(kThrottleOption));
                        }),
      m_idle(store.env->new_signal()) {}

uint64_t CommitPipeline::admit(std::vector<Transaction>& transactions, HBHandle* handle) {
  ++m_active;
  uint64_t bytes = kTransactionBytes;
  for (Transaction& transaction : transactions) {
    bytes += transaction.get_num_bytes();
  }
  if (const uint64_t waited_us = m_throttle.take_us(bytes, handle); waited_us > 0) {
    m_store.counters.tinc(l_swimstore_throttle_latency, std::chrono::microseconds(waited_us));
  }
  return bytes;
}

int CommitPipeline::queue(CollectionRef collection, std::vector<Transaction>& transactions, HBHandle* handle) {
  const uint64_t began_us = m_store.env->now_us();
  const uint64_t throttled_bytes = admit(transactions, handle);
  const uint64_t admitted_us = m_store.env->now_us();
  TxnContextRef txn(new TxnContext(m_store, *this, collection, throttled_bytes));
  std::list<Context*> on_applied, on_applied_sync;
  Transaction::collect_contexts(transactions, &on_applied, &txn->on_commit, &on_applied_sync);
  Iterators iterators;
  for (Transaction& transaction : transactions) {
    iterators.push_back(transaction.begin());
  }
  {
    CollectionLocks locks(m_store.collections, collection, iterators);
    for (const CollectionRef& other : locks.collections()) {
      if (other != collection) {
        txn->add_sequencer(other->sequencer);
      }
    }
    TxnPlanner planner(m_store, *txn, locks.collections());
    size_t planned = 0;
    int r = 0;
    while (r == 0 && planned < transactions.size()) {
      r = planner.apply(iterators[planned]);
      planned += r == 0;
    }
    if (r == 0) {
      r = planner.finish();
    }
    if (r < 0) {
      planner.take_back();
      ended(throttled_bytes);
      if (!m_store.cct->_conf.get_val<bool>("objectstore_debug_throw_on_failed_txc")) {
        fail(transactions[std::min(planned, transactions.size() - 1)], r);
      }
      throw r;
    }
    const uint64_t planned_us = m_store.env->now_us();
    m_store.counters.tinc(l_swimstore_plan_latency, std::chrono::microseconds(planned_us - admitted_us));
    txn->submit();
    m_store.counters.tinc(l_swimstore_submit_latency,
                          std::chrono::microseconds(m_store.env->now_us() - planned_us));
    m_store.counters.inc(l_swimstore_operations, planner.operations());
  }
  for (Context* const context : on_applied_sync) {
    context->complete(0);
  }
  if (!on_applied.empty()) {
    if (ContextQueue* const queue = collection->commit_queue; queue != nullptr) {
      queue->queue(on_applied);
    } else {
      m_store.finisher.queue(on_applied);
    }
  }
  m_store.counters.inc(l_swimstore_transactions);
  m_store.counters.tinc(l_swimstore_queue_latency, std::chrono::microseconds(m_store.env->now_us() - began_us));
  return 0;
}

void CommitPipeline::fail(Transaction& transaction, int r) {
  derr << "a transaction cannot be carried out: " << cpp_strerror(r) << "; dump follows" << dendl;
  JSONFormatter formatter(true);
  formatter.open_object_section("transaction");
  transaction.dump(&formatter);
  formatter.close_section();
  std::ostringstream dump;
  formatter.flush(dump);
  derr << dump.str() << dendl;
  ceph_abort_msg("a transaction cannot be carried out");
}

void CommitPipeline::ended(uint64_t throttled_bytes) {
  m_throttle.give_back(throttled_bytes);
  std::lock_guard lock(m_mutex);
  if (--m_active == 0) {
    m_idle->notify_all();
  }
}

void CommitPipeline::drain() {
  std::unique_lock lock(m_mutex);
  m_idle->wait(lock, [this] { return m_active == 0; });
}

}  // namespace swimstore
