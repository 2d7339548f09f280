// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/store_load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/ceph_time.h"
#include "include/Context.h"
#include "vtkv/tool/device_counters.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

namespace {

using Clock = ceph::mono_clock;
using Transaction = ObjectStore::Transaction;

constexpr int64_t kPool = 1;
constexpr size_t kPatternBytes = 8u << 20;
constexpr unsigned kPage = 4096;
// Sizes seen in an OSD's transactions.
constexpr size_t kObjectInfoBytes = 270;
constexpr size_t kSnapSetBytes = 35;
constexpr size_t kLogEntryBytes = 190;
constexpr size_t kFastInfoBytes = 186;
constexpr uint64_t kLogEntriesMax = 3000;
constexpr unsigned kTrimAtOnce = 10;

// What came of a client's operations.
struct Outcome {
  std::vector<float> latencies_ms;
  std::vector<uint32_t> done_in_second;
  int error = 0;  // the last
};

// One thread's PG and what it has in flight.
class Client {
 public:
  Client(ObjectStore& store, const LoadOptions& options, unsigned number, unsigned depth);

  int prepare();
  void fragment();
  void run(Clock::time_point end, uint64_t operations);
  void drain();
  // Since run() began; once.
  Outcome take_outcome();

 private:
  ghobject_t object(uint64_t number) const;
  ceph::bufferlist pattern(uint64_t bytes);
  ceph::bufferlist filler(size_t bytes) const;
  void add_operation(Transaction* txn);
  void add_pg_log(const ghobject_t& oid, Transaction* txn);
  void submit(Transaction&& txn);
  void finished(Clock::time_point began, int r) EXCLUDES(m_mutex);
  void read_one();
  int error() const;

  ObjectStore& m_store;
  const LoadOptions& m_options;
  const unsigned m_depth;
  const coll_t m_cid;
  const ghobject_t m_pgmeta;
  ObjectStore::CollectionHandle m_collection;
  std::mt19937_64 m_random;
  ceph::bufferptr m_pattern;
  uint64_t m_operations = 0;

  // Who commits reports here; all else is of the client's thread alone.
  mutable vtkv::Mutex m_mutex;
  vtkv::ConditionVariable m_changed;
  unsigned m_in_flight GUARDED_BY(m_mutex) = 0;
  Clock::time_point m_start GUARDED_BY(m_mutex);
  Outcome m_outcome GUARDED_BY(m_mutex);
};

Client::Client(ObjectStore& store, const LoadOptions& options, unsigned number, unsigned depth)
    : m_store(store),
      m_options(options),
      m_depth(depth),
      m_cid(spg_t(pg_t(number, kPool))),
      m_pgmeta(spg_t(pg_t(number, kPool)).make_pgmeta_oid()),
      m_random(number + 1),
      m_pattern(ceph::buffer::create_page_aligned(kPatternBytes)) {
  for (size_t i = 0; i < kPatternBytes; i += sizeof(uint64_t)) {
    const uint64_t word = m_random();
    std::memcpy(m_pattern.c_str() + i, &word, sizeof word);
  }
}

ghobject_t Client::object(uint64_t number) const {
  spg_t pg;
  m_cid.is_pg(&pg);
  // Hashes that differ in the high bits, which do not choose the PG.
  const uint32_t hash = pg.ps() | static_cast<uint32_t>(number * 2654435761u) << 8;
  return ghobject_t(hobject_t(object_t(fmt::format("bench_object_{:012}", number)), "", CEPH_NOSNAP, hash, kPool, ""));
}

ceph::bufferlist Client::pattern(uint64_t bytes) {
  ceph::bufferlist out;
  while (bytes > 0) {
    const uint64_t slice = std::min<uint64_t>(bytes, kPatternBytes / 2);
    const uint64_t from = m_random() % (kPatternBytes / 2 / kPage) * kPage;
    out.append(m_pattern, from, slice);
    bytes -= slice;
  }
  return out;
}

ceph::bufferlist Client::filler(size_t bytes) const {
  ceph::bufferlist out;
  out.append(m_pattern.c_str(), bytes);
  return out;
}

int Client::prepare() {
  m_collection = m_store.create_new_collection(m_cid);
  Transaction create;
  create.create_collection(m_cid, 8);
  create.touch(m_cid, m_pgmeta);
  if (const int r = m_store.queue_transaction(m_collection, std::move(create)); r < 0) {
    return r;
  }
  const bool filled = m_options.op == LoadOp::overwrite || m_options.op == LoadOp::read;
  if (m_options.op == LoadOp::write) {
    return 0;
  }
  for (unsigned i = 0; i < m_options.objects; ++i) {
    Transaction fill;
    if (filled) {
      fill.write(m_cid, object(i), 0, m_options.object_bytes, pattern(m_options.object_bytes));
    } else {
      fill.touch(m_cid, object(i));
    }
    submit(std::move(fill));
  }
  if (filled && m_options.fragment_bytes > 0) {
    fragment();
  }
  drain();
  return error();
}

// What a long random load leaves of the objects: neighbours in an object are no neighbours on disk.
void Client::fragment() {
  const uint64_t slices = m_options.object_bytes / m_options.fragment_bytes;
  std::vector<uint64_t> order(m_options.objects * slices);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), m_random);
  for (const uint64_t nth : order) {
    Transaction txn;
    txn.write(m_cid, object(nth / slices), nth % slices * m_options.fragment_bytes, m_options.fragment_bytes,
              pattern(m_options.fragment_bytes));
    submit(std::move(txn));
  }
}

void Client::add_operation(Transaction* txn) {
  const uint64_t size = m_options.size_bytes;
  ghobject_t oid;
  if (m_options.op == LoadOp::write) {
    oid = object(m_operations);
    txn->write(m_cid, oid, 0, size, pattern(size));
  } else if (m_options.op == LoadOp::overwrite) {
    oid = object(m_random() % m_options.objects);
    const uint64_t slices = std::max<uint64_t>(1, m_options.object_bytes / size);
    txn->write(m_cid, oid, m_random() % slices * size, size, pattern(size));
  } else if (m_options.op == LoadOp::append) {
    oid = object(m_operations % m_options.objects);
    const uint64_t slices = std::max<uint64_t>(1, m_options.object_bytes / size);
    txn->write(m_cid, oid, m_operations / m_options.objects % slices * size, size, pattern(size));
  } else {
    oid = object(m_random() % m_options.objects);
    std::map<std::string, ceph::bufferlist> values;
    values[fmt::format("key_{:08}", m_random() % 100000)] = pattern(size);
    txn->omap_setkeys(m_cid, oid, values);
  }
  if (m_options.pg_log) {
    add_pg_log(oid, txn);
  }
}

void Client::add_pg_log(const ghobject_t& oid, Transaction* txn) {
  std::map<std::string, ceph::bufferlist, std::less<>> attrs;
  attrs["_"] = filler(kObjectInfoBytes);
  attrs["snapset"] = filler(kSnapSetBytes);
  txn->setattrs(m_cid, oid, attrs);
  const auto log_key = [](uint64_t version) { return fmt::format("0000000010.{:020}", version); };
  std::map<std::string, ceph::bufferlist> values;
  values[log_key(m_operations)] = filler(kLogEntryBytes);
  values["_fastinfo"] = filler(kFastInfoBytes);
  txn->omap_setkeys(m_cid, m_pgmeta, values);
  if (m_operations > kLogEntriesMax && m_operations % kTrimAtOnce == 0) {
    std::set<std::string> trimmed;
    for (unsigned i = 0; i < kTrimAtOnce; ++i) {
      trimmed.insert(log_key(m_operations - kLogEntriesMax - i));
    }
    txn->omap_rmkeys(m_cid, m_pgmeta, trimmed);
  }
}

void Client::submit(Transaction&& txn) {
  {
    vtkv::MutexLock lock(m_mutex);
    m_changed.wait(lock, [this]() REQUIRES(m_mutex) { return m_in_flight < m_depth; });
    ++m_in_flight;
  }
  const auto began = Clock::now();
  txn.register_on_commit(new LambdaContext([this, began](int r) { finished(began, r); }));
  if (const int r = m_store.queue_transaction(m_collection, std::move(txn)); r < 0) {
    vtkv::MutexLock lock(m_mutex);
    m_outcome.error = r;
  }
}

void Client::finished(Clock::time_point began, int r) {
  const auto now = Clock::now();
  vtkv::MutexLock lock(m_mutex);
  if (r < 0) {
    m_outcome.error = r;
  }
  m_outcome.latencies_ms.push_back(std::chrono::duration<float, std::milli>(now - began).count());
  const size_t second = now < m_start ? 0 : std::chrono::duration_cast<std::chrono::seconds>(now - m_start).count();
  std::vector<uint32_t>& done = m_outcome.done_in_second;
  if (done.size() <= second) {
    done.resize(second + 1);
  }
  ++done[second];
  --m_in_flight;
  m_changed.notify_one();
}

void Client::read_one() {
  const auto began = Clock::now();
  const uint64_t size = m_options.size_bytes;
  const uint64_t slices = std::max<uint64_t>(1, m_options.object_bytes / size);
  ceph::bufferlist out;
  const int r = m_store.read(m_collection, object(m_random() % m_options.objects), m_random() % slices * size, size,
                             out, CEPH_OSD_OP_FLAG_FADVISE_RANDOM);
  {
    vtkv::MutexLock lock(m_mutex);
    ++m_in_flight;
  }
  finished(began, r);
}

void Client::run(Clock::time_point end, uint64_t operations) {
  {
    vtkv::MutexLock lock(m_mutex);
    m_outcome.latencies_ms.clear();
    m_outcome.done_in_second.clear();
    m_start = Clock::now();
  }
  for (uint64_t left = operations; Clock::now() < end && left > 0 && error() == 0; ++m_operations, --left) {
    if (m_options.op == LoadOp::read) {
      read_one();
    } else {
      Transaction txn;
      add_operation(&txn);
      submit(std::move(txn));
    }
  }
  drain();
}

void Client::drain() {
  vtkv::MutexLock lock(m_mutex);
  m_changed.wait(lock, [this]() REQUIRES(m_mutex) { return m_in_flight == 0; });
}

int Client::error() const {
  vtkv::MutexLock lock(m_mutex);
  return m_outcome.error;
}

Outcome Client::take_outcome() {
  vtkv::MutexLock lock(m_mutex);
  return std::exchange(m_outcome, {});
}

// Of whole seconds only.
double variation_of(const std::vector<uint64_t>& per_second) {
  if (per_second.size() < 2) {
    return 0;
  }
  double sum = 0, squares = 0;
  for (const uint64_t count : per_second) {
    sum += count;
    squares += static_cast<double>(count) * count;
  }
  const double mean = sum / per_second.size();
  const double variance = std::max(0.0, squares / per_second.size() - mean * mean);
  return mean > 0 ? std::sqrt(variance) / mean : 0;
}

void summarise(const std::vector<Outcome>& outcomes, LoadResult* result) {
  std::vector<float> latencies;
  std::vector<uint64_t> per_second(static_cast<size_t>(result->seconds));
  for (const Outcome& outcome : outcomes) {
    latencies.insert(latencies.end(), outcome.latencies_ms.begin(), outcome.latencies_ms.end());
    for (size_t i = 0; i < per_second.size() && i < outcome.done_in_second.size(); ++i) {
      per_second[i] += outcome.done_in_second[i];
    }
  }
  result->operations = latencies.size();
  result->variation = variation_of(per_second);
  if (latencies.empty()) {
    return;
  }
  std::sort(latencies.begin(), latencies.end());
  double sum = 0;
  for (const float latency : latencies) {
    sum += latency;
  }
  result->average_ms = sum / latencies.size();
  result->p50_ms = latencies[latencies.size() / 2];
  result->p99_ms = latencies[latencies.size() * 99 / 100];
  result->max_ms = latencies.back();
}

// Looks at the store's space until it is stopped.
class SpaceWatch {
 public:
  SpaceWatch(ObjectStore& store, LoadResult* result) : m_store(store), m_result(result), m_thread([this] { run(); }) {}
  ~SpaceWatch() {
    {
      vtkv::MutexLock lock(m_mutex);
      m_stopped = true;
    }
    m_changed.notify_one();
    m_thread.join();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    look();
  }

 private:
  void look() {
    store_statfs_t space;
    osd_alert_list_t alerts;
    if (m_store.statfs(&space, &alerts) == 0) {
      m_result->stored_bytes = space.data_stored;
      m_result->allocated_bytes = space.allocated;
      m_result->allocated_most_bytes = std::max<uint64_t>(m_result->allocated_most_bytes, space.allocated);
    }
  }
  void run() {
    vtkv::MutexLock lock(m_mutex);
    while (!m_stopped) {
      lock.unlock();
      look();
      lock.lock();
      m_changed.wait_for(lock, std::chrono::milliseconds(100), [this]() REQUIRES(m_mutex) { return m_stopped; });
    }
  }

  ObjectStore& m_store;
  LoadResult* const m_result;  // of the thread, until it has ended
  vtkv::Mutex m_mutex;
  vtkv::ConditionVariable m_changed;
  bool m_stopped GUARDED_BY(m_mutex) = false;
  std::thread m_thread;
};

}  // namespace

int run_load(ObjectStore& store, const std::string& path, const LoadOptions& options, LoadResult* result) {
  // Reads are synchronous: there, depth is threads.
  const unsigned threads = options.op == LoadOp::read ? options.depth : std::min(options.threads, options.depth);
  std::vector<std::unique_ptr<Client>> clients;
  for (unsigned i = 0; i < threads; ++i) {
    const unsigned depth = options.depth / threads + (i < options.depth % threads);
    clients.push_back(std::make_unique<Client>(store, options, i, depth));
    if (const int r = clients.back()->prepare(); r < 0) {
      return r;
    }
  }
  const MetadataCounters metadata_before = read_metadata_counters(store);
  const vtkv::DeviceCounters before = vtkv::read_device_counters(path);
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  std::optional<SpaceWatch> space(std::in_place, store, result);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < clients.size(); ++i) {
    const uint64_t share = options.operations / clients.size() + (i < options.operations % clients.size());
    const uint64_t operations = options.operations == 0 ? UINT64_MAX : share;
    workers.emplace_back([&client = *clients[i], end, operations] { client.run(end, operations); });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  result->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const vtkv::DeviceCounters device = vtkv::read_device_counters(path) - before;
  result->device_known = device.known;
  result->device_written_bytes = device.written_bytes;
  result->device_flushes = device.flushes;
  result->metadata = read_metadata_counters(store) - metadata_before;
  space.reset();
  std::vector<Outcome> outcomes;
  for (const auto& client : clients) {
    outcomes.push_back(client->take_outcome());
  }
  summarise(outcomes, result);
  for (const Outcome& outcome : outcomes) {
    if (outcome.error < 0) {
      return outcome.error;
    }
  }
  return 0;
}

}  // namespace swimstore
