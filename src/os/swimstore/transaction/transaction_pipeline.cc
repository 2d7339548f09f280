// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/transaction_pipeline.h"

#include <algorithm>
#include <exception>

#include <boost/container/small_vector.hpp>

#include "common/Formatter.h"
#include "common/debug.h"
#include "common/errno.h"

#include "swimstore/collection/collection_locks.h"
#include "swimstore/ops/last_words.h"
#include "swimstore/ops/suspended_timeout.h"
#include "swimstore/transaction/placement.h"
#include "swimstore/transaction/txn_context.h"
#include "swimstore/transaction/txn_planner.h"
#include "vtkv/util/invariants.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.commit "

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;
using Iterators = boost::container::small_vector<Transaction::iterator, 2>;

using Collections = boost::container::small_vector<CollectionRef, 4>;

// The collections that the transactions name, existing or to be made, and the one that they are queued on: first.
Collections find_named(const CollectionTable& table, const CollectionRef& queued_on, const Iterators& transactions) {
  Collections named{queued_on};
  const auto add = [&named](const CollectionRef& collection) {
    if (collection && std::find(named.begin(), named.end(), collection) == named.end()) {
      named.push_back(collection);
    }
  };
  for (const Transaction::iterator& transaction : transactions) {
    for (const coll_t& cid : transaction.colls) {
      if (cid == queued_on->cid && queued_on->is_published && !table.has_prepared()) {
        continue;  // as nearly always
      }
      add(table.find(cid));
      add(table.find_prepared(cid));
    }
  }
  return named;
}

// One that lay in another cube before, or is there again after its removal from another: what was queued there comes
// first, and is durable first. Others than placement groups may be named by transactions of any cube; only the order of
// what is queued on them counts. False: nothing becomes durable any more.
bool wait_for_other_cubes(const Collections& named, unsigned home) {
  return std::all_of(named.begin(), named.end(), [&](const CollectionRef& collection) {
    const bool is_ordered = collection == named.front() || collection->cid.is_pg();
    return !is_ordered || collection->sequencer->wait_for_others(home);
  });
}

constexpr const char* kThrottleOption = "swimstore_throttle_bytes";
// What a transaction holds in memory beside its bytes: itself, its contexts, its place in the queues.
constexpr uint64_t kTransactionBytes = 4096;

}  // namespace

// A transaction that was let in: its room and its bytes go back when it was planned, or cannot be.
class TransactionPipeline::Admission {
 public:
  Admission(TransactionPipeline& pipeline, StoreCube& home, std::vector<Transaction>& transactions, HBHandle* handle)
      : m_pipeline(pipeline), m_home(home), m_need(SpaceNeed::of(transactions)) {
    m_bytes += m_need.bytes;
    ++pipeline.m_active;
    ++pipeline.m_begun;  // behind that: what begun() counts, drain() waits for
    const uint64_t throttled_us = pipeline.m_space.throttle_us(m_need, m_bytes - kTransactionBytes, handle);
    note(l_swimstore_space_throttle_latency, throttled_us);
    note(l_swimstore_space_latency, pipeline.m_space.enter_us(home.containers(), m_need, throttled_us, handle));
    note(l_swimstore_throttle_latency, pipeline.m_throttle.take_us(m_bytes, handle));
  }
  ~Admission() {
    planned();
    if (!m_submitted) {
      m_pipeline.ended(m_bytes);
    }
  }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  StoreCube& home() { return m_home; }
  const SpaceNeed& need() const { return m_need; }
  uint64_t throttled_bytes() const { return m_bytes; }
  // What room it needs, it has.
  void planned() {
    if (!m_planned) {
      SpaceGate::leave(m_home.containers(), m_need);
      m_planned = true;
    }
  }
  // From now on its TxnContext counts.
  void submitted() {
    VTKV_ASSERT(m_planned && !m_submitted);
    m_submitted = true;
  }

 private:
  void note(int counter, uint64_t waited_us) {
    if (waited_us > 0) {
      m_pipeline.m_store.counters.tinc(counter, std::chrono::microseconds(waited_us));
    }
  }

  TransactionPipeline& m_pipeline;
  StoreCube& m_home;
  const SpaceNeed m_need;
  uint64_t m_bytes = kTransactionBytes;
  bool m_planned = false;
  bool m_submitted = false;
};

TransactionPipeline::TransactionPipeline(StoreContext& store, Move move, MakeWay make_way)
    : m_store(store),
      m_move(std::move(move)),
      m_make_way(std::move(make_way)),
      m_space(
          store.cct, store.env, [&store] { return store.cubes.set().container_statistics(); },
          [&store](uint64_t bytes) {
            if (store.no_room) {
              store.no_room(bytes);
            }
          }),
      m_throttle(store.env, store.cct->_conf.get_val<Option::size_t>(kThrottleOption)),
      m_throttle_option(
          store.cct, kThrottleOption,
          [this](const ConfigProxy& conf) { m_throttle.set_limit(conf.get_val<Option::size_t>(kThrottleOption)); }),
      m_relaxed(store.cct),
      m_idle(store.env->new_signal()) {}

int TransactionPipeline::plan(TxnPlanner& planner, std::span<Transaction::iterator> transactions) {
  try {
    for (Transaction::iterator& transaction : transactions) {
      if (const int r = planner.apply(transaction); r < 0) {
        return r;
      }
    }
    return planner.finish();
  } catch (const std::exception& error) {
    derr << "a transaction cannot be planned: " << error.what() << dendl;
    return -EINVAL;
  }
}

int TransactionPipeline::queue(CollectionRef collection, std::vector<Transaction>& transactions, HBHandle* handle) {
  // Again where the collection was moved to another cube while this thread waited to be let in, and where there is no
  // room to move one.
  for (Obstacle obstacle; !try_queue(collection, transactions, handle, &obstacle); obstacle.lacking.need = {}) {
    wait_for(obstacle, handle);
  }
  return 0;
}

void TransactionPipeline::wait_for(const Obstacle& obstacle, HBHandle* handle) {
  const SpaceNeed& need = obstacle.lacking.need;
  if (!need.is_none()) {
    ContainerSet& containers = m_store.cubes[obstacle.cube].containers();
    m_space.enter_us(containers, need, 0, handle);
    SpaceGate::leave(containers, need);
  }
}

bool TransactionPipeline::try_queue(const CollectionRef& collection, std::vector<Transaction>& transactions,
                                    HBHandle* handle, Obstacle* obstacle) {
  Iterators iterators;
  for (Transaction& transaction : transactions) {
    iterators.push_back(transaction.begin());
  }
  const uint64_t began_us = m_store.env->now_us();
  const unsigned cubes = m_store.cubes.size();
  const Home home = cubes == 1 ? Home() : home_of(find_named(m_store.collections, collection, iterators), m_store);
  Admission admission(*this, m_store.cubes[home.cube], transactions, handle);
  if (cubes > 1 && admission.need().removes_internal && !wait_for_all_cubes()) {
    return true;  // never acknowledged; the process is about to end
  }
  const uint64_t admitted_us = m_store.env->now_us();
  std::list<Context*> on_applied, on_applied_sync;
  {
    const Collections named = find_named(m_store.collections, collection, iterators);
    CollectionLocks locks(named);
    if (cubes > 1) {
      const Home now = home_of_locked(named, m_store);
      if (now.cube != home.cube) {
        return false;
      }
      int r = now.is_elsewhere ? gather(locks.held(), home.cube, handle, &obstacle->lacking) : 0;
      if (!obstacle->lacking.need.is_none()) {
        obstacle->cube = home.cube;
        return false;
      }
      if (r == 0 && !admission.need().new_bits.empty()) {
        r = make_way(admission.need().new_bits, home.cube, handle);
      }
      if (r == 0 && !wait_for_other_cubes(named, home.cube)) {
        r = -ESHUTDOWN;
      }
      if (r == -ESHUTDOWN) {
        return true;  // never acknowledged; the process is about to end
      }
      if (r < 0) {
        refuse(transactions.front(), r);
      }
    }
    TxnContextRef txn(
        new TxnContext(m_store, m_store.cubes[home.cube], *this, collection, admission.throttled_bytes()));
    for (const CollectionRef& other : named) {
      if (other != collection) {
        txn->add_sequencer(other->sequencer);
      }
    }
    if (m_relaxed.contains(collection->cid)) {
      txn->allow_relaxed();
    }
    TxnPlanner planner(m_store, *txn, &locks);
    if (const int r = plan(planner, iterators); r < 0) {
      planner.take_back();
      refuse(transactions[std::min(planner.transaction(), transactions.size() - 1)], r);
    }
    admission.planned();
    if (!write_witnesses(planner.witnesses(), handle)) {
      planner.take_back();
      return true;  // never acknowledged; the process is about to end
    }
    Transaction::collect_contexts(transactions, &on_applied, &txn->on_commit, &on_applied_sync);
    const uint64_t planned_us = m_store.env->now_us();
    m_store.counters.tinc(l_swimstore_plan_latency, std::chrono::microseconds(planned_us - admitted_us));
    txn->submit();
    admission.submitted();
    if (planner.witnesses().has_removals()) {
      const SuspendedTimeout suspended(handle);
      planner.witnesses().write_removals(txn->last_sequence);
    }
    dout(5) << "transaction " << txn->last_sequence << " of " << collection->cid << ": " << planner.operations()
            << " operations, " << admission.throttled_bytes() - kTransactionBytes << " bytes" << dendl;
    m_store.counters.tinc(l_swimstore_submit_latency, std::chrono::microseconds(m_store.env->now_us() - planned_us));
    m_store.counters.inc(l_swimstore_operations, planner.operations());
  }
  for (Context* const context : on_applied_sync) {
    context->complete(0);
  }
  m_store.callbacks.give(*collection, on_applied);
  if (const std::chrono::microseconds taken(m_store.env->now_us() - admitted_us); m_store.slow.is_slow(taken)) {
    m_store.slow.note("queueing of a transaction", collection->cid.to_str(), taken);
  }
  m_store.counters.inc(l_swimstore_transactions);
  m_store.counters.tinc(l_swimstore_queue_latency, std::chrono::microseconds(m_store.env->now_us() - began_us));
  return true;
}

// What the OSD removes of its own, as a map that no placement group needs any more, it removes behind transactions of
// other collections that say so. These are to outlive a crash as well: in one cube they would by themselves.
bool TransactionPipeline::wait_for_all_cubes() {
  for (const auto& cube : m_store.cubes) {
    if (cube->number != 0 && !cube->database().wait_durable(cube->database().statistics().last_sequence).ok()) {
      return false;
    }
  }
  return true;
}

bool TransactionPipeline::write_witnesses(WitnessWriter& witnesses, HBHandle* handle) {
  if (!witnesses.has_news()) {
    return true;
  }
  const SuspendedTimeout suspended(handle);
  return witnesses.write();
}

int TransactionPipeline::gather(std::span<const CollectionRef> locked, unsigned home, HBHandle* handle,
                                LackingRoom* lacking) {
  const SuspendedTimeout suspended(handle);
  for (const CollectionRef& collection : locked) {
    collection->lock.assert_held();
    if (collection->exists && collection->cid.is_pg() && collection->record.home() != home) {
      if (const int r = m_move(*collection, home, lacking); r < 0) {
        return r;
      }
      lacking->cut_short = 0;  // that was its own
    }
  }
  return 0;
}

int TransactionPipeline::make_way(std::span<const NewBits> groups, unsigned home, HBHandle* handle) {
  const SuspendedTimeout suspended(handle);
  for (const NewBits& group : groups) {
    if (const int r = m_make_way(home, group.cid, group.bits); r < 0) {
      return r;
    }
  }
  return 0;
}

void TransactionPipeline::refuse(Transaction& transaction, int r) {
  if (m_store.cct->_conf.get_val<bool>("objectstore_debug_throw_on_failed_txc")) {
    throw r;
  }
  last_words().lock();
  derr << "a transaction cannot be carried out: " << cpp_strerror(r) << "; dump follows" << dendl;
  JSONFormatter formatter(true);
  formatter.open_object_section("transaction");
  try {
    transaction.dump(&formatter);
    formatter.close_section();
  } catch (const ceph::buffer::error& error) {
    derr << "the dump ends where it cannot be decoded: " << error.what() << dendl;
  }
  std::ostringstream dump;
  formatter.flush(dump);
  derr << dump.str() << dendl;
  ceph_abort_msg("a transaction cannot be carried out");
}

void TransactionPipeline::ended(uint64_t throttled_bytes) {
  m_throttle.give_back(throttled_bytes);
  vtkv::MutexLock lock(m_mutex);
  VTKV_ASSERT(m_active > 0);
  if (--m_active == 0) {
    m_idle->notify_all();
  }
}

void TransactionPipeline::wait_for_turn(uint64_t bytes) {
  m_space.throttle_us({.slot_bytes = bytes, .may_wait = true}, bytes, nullptr);
  m_throttle.take_us(bytes, nullptr);
  m_throttle.give_back(bytes);
}

void TransactionPipeline::drain() {
  if (m_relaxed.any()) {  // nothing is left to its delay
    for (const auto& cube : m_store.cubes) {
      (void)cube->database().wait_durable(cube->database().statistics().last_sequence);
    }
  }
  vtkv::MutexLock lock(m_mutex);
  m_idle->wait(lock, [this] { return m_active == 0; });
}

}  // namespace swimstore
