#include "swimstore/tool/store_load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "common/ceph_time.h"
#include "include/Context.h"
#include "vtkv/tool/device_counters.h"

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

// One thread's PG and what it has in flight.
class Lane {
 public:
  Lane(ObjectStore& store, const LoadOptions& options, unsigned number, unsigned depth);

  int prepare();
  void scatter();
  void run(Clock::time_point end, uint64_t operations);
  void drain();

  std::vector<float> latencies_ms;          // under m_mutex until drained
  std::vector<uint32_t> done_in_second;     // likewise
  int error = 0;

 private:
  ghobject_t object(uint64_t number) const;
  ceph::bufferlist pattern(uint64_t bytes);
  ceph::bufferlist filler(size_t bytes) const;
  void add_operation(Transaction* txn);
  void add_pg_log(const ghobject_t& oid, Transaction* txn);
  void submit(Transaction&& txn);
  void finished(Clock::time_point began, int r);
  void read_one();

  ObjectStore& m_store;
  const LoadOptions& m_options;
  const unsigned m_depth;
  const coll_t m_cid;
  const ghobject_t m_pgmeta;
  ObjectStore::CollectionHandle m_collection;
  std::mt19937_64 m_random;
  ceph::bufferptr m_pattern;
  uint64_t m_operations = 0;
  Clock::time_point m_start;

  std::mutex m_mutex;
  std::condition_variable m_changed;
  unsigned m_in_flight = 0;  // under m_mutex
};

Lane::Lane(ObjectStore& store, const LoadOptions& options, unsigned number, unsigned depth)
    : m_store(store), m_options(options), m_depth(depth), m_cid(spg_t(pg_t(number, kPool))),
      m_pgmeta(spg_t(pg_t(number, kPool)).make_pgmeta_oid()), m_random(number + 1),
      m_pattern(ceph::buffer::create_page_aligned(kPatternBytes)) {
  for (size_t i = 0; i < kPatternBytes; i += sizeof(uint64_t)) {
    const uint64_t word = m_random();
    std::memcpy(m_pattern.c_str() + i, &word, sizeof word);
  }
}

ghobject_t Lane::object(uint64_t number) const {
  spg_t pg;
  m_cid.is_pg(&pg);
  // Hashes that differ in the high bits, which do not choose the PG.
  const uint32_t hash = pg.ps() | static_cast<uint32_t>(number * 2654435761u) << 8;
  return ghobject_t(hobject_t(object_t(fmt::format("bench_object_{:012}", number)), "", CEPH_NOSNAP, hash, kPool, ""));
}

ceph::bufferlist Lane::pattern(uint64_t bytes) {
  ceph::bufferlist out;
  while (bytes > 0) {
    const uint64_t piece = std::min<uint64_t>(bytes, kPatternBytes / 2);
    const uint64_t from = m_random() % (kPatternBytes / 2 / kPage) * kPage;
    out.append(m_pattern, from, piece);
    bytes -= piece;
  }
  return out;
}

ceph::bufferlist Lane::filler(size_t bytes) const {
  ceph::bufferlist out;
  out.append(m_pattern.c_str(), bytes);
  return out;
}

int Lane::prepare() {
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
  if (filled && m_options.scatter_bytes > 0) {
    scatter();
  }
  drain();
  return error;
}

// What a long random load leaves of the objects: neighbours in an object are no neighbours on disk.
void Lane::scatter() {
  const uint64_t pieces = m_options.object_bytes / m_options.scatter_bytes;
  std::vector<uint64_t> order(m_options.objects * pieces);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), m_random);
  for (const uint64_t place : order) {
    Transaction txn;
    txn.write(m_cid, object(place / pieces), place % pieces * m_options.scatter_bytes, m_options.scatter_bytes,
              pattern(m_options.scatter_bytes));
    submit(std::move(txn));
  }
}

void Lane::add_operation(Transaction* txn) {
  const uint64_t size = m_options.size_bytes;
  ghobject_t oid;
  if (m_options.op == LoadOp::write) {
    oid = object(m_operations);
    txn->write(m_cid, oid, 0, size, pattern(size));
  } else if (m_options.op == LoadOp::overwrite) {
    oid = object(m_random() % m_options.objects);
    const uint64_t places = std::max<uint64_t>(1, m_options.object_bytes / size);
    txn->write(m_cid, oid, m_random() % places * size, size, pattern(size));
  } else if (m_options.op == LoadOp::append) {
    oid = object(m_operations % m_options.objects);
    const uint64_t places = std::max<uint64_t>(1, m_options.object_bytes / size);
    txn->write(m_cid, oid, m_operations / m_options.objects % places * size, size, pattern(size));
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

void Lane::add_pg_log(const ghobject_t& oid, Transaction* txn) {
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

void Lane::submit(Transaction&& txn) {
  {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_in_flight < m_depth; });
    ++m_in_flight;
  }
  const auto began = Clock::now();
  txn.register_on_commit(new LambdaContext([this, began](int r) { finished(began, r); }));
  if (const int r = m_store.queue_transaction(m_collection, std::move(txn)); r < 0) {
    error = r;
  }
}

void Lane::finished(Clock::time_point began, int r) {
  const auto now = Clock::now();
  std::lock_guard lock(m_mutex);
  if (r < 0) {
    error = r;
  }
  latencies_ms.push_back(std::chrono::duration<float, std::milli>(now - began).count());
  const size_t second = now < m_start ? 0 : std::chrono::duration_cast<std::chrono::seconds>(now - m_start).count();
  if (done_in_second.size() <= second) {
    done_in_second.resize(second + 1);
  }
  ++done_in_second[second];
  --m_in_flight;
  m_changed.notify_one();
}

void Lane::read_one() {
  const auto began = Clock::now();
  const uint64_t size = m_options.size_bytes;
  const uint64_t places = std::max<uint64_t>(1, m_options.object_bytes / size);
  ceph::bufferlist out;
  const int r = m_store.read(m_collection, object(m_random() % m_options.objects), m_random() % places * size, size,
                             out, CEPH_OSD_OP_FLAG_FADVISE_RANDOM);
  {
    std::lock_guard lock(m_mutex);
    ++m_in_flight;
  }
  finished(began, r);
}

void Lane::run(Clock::time_point end, uint64_t operations) {
  latencies_ms.clear();
  done_in_second.clear();
  m_start = Clock::now();
  for (uint64_t left = operations; Clock::now() < end && left > 0 && error == 0; ++m_operations, --left) {
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

void Lane::drain() {
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, [this] { return m_in_flight == 0; });
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

void summarise(const std::vector<std::unique_ptr<Lane>>& lanes, LoadResult* result) {
  std::vector<float> latencies;
  std::vector<uint64_t> per_second(static_cast<size_t>(result->seconds));
  for (const auto& lane : lanes) {
    latencies.insert(latencies.end(), lane->latencies_ms.begin(), lane->latencies_ms.end());
    for (size_t i = 0; i < per_second.size() && i < lane->done_in_second.size(); ++i) {
      per_second[i] += lane->done_in_second[i];
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
      std::lock_guard lock(m_mutex);
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
    std::unique_lock lock(m_mutex);
    while (!m_stopped) {
      look();
      m_changed.wait_for(lock, std::chrono::milliseconds(100), [this] { return m_stopped; });
    }
  }

  ObjectStore& m_store;
  LoadResult* const m_result;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  bool m_stopped = false;
  std::thread m_thread;
};

}  // namespace

int run_load(ObjectStore& store, const std::string& path, const LoadOptions& options, LoadResult* result) {
  // Reads are synchronous: there, depth is threads.
  const unsigned threads = options.op == LoadOp::read ? options.depth : std::min(options.threads, options.depth);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (unsigned i = 0; i < threads; ++i) {
    const unsigned depth = options.depth / threads + (i < options.depth % threads);
    lanes.push_back(std::make_unique<Lane>(store, options, i, depth));
    if (const int r = lanes.back()->prepare(); r < 0) {
      return r;
    }
  }
  const MetadataCounters metadata_before = read_metadata_counters(store);
  const vtkv::DeviceCounters before = vtkv::read_device_counters(path);
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  std::optional<SpaceWatch> space(std::in_place, store, result);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const uint64_t share = options.operations / lanes.size() + (i < options.operations % lanes.size());
    const uint64_t operations = options.operations == 0 ? UINT64_MAX : share;
    workers.emplace_back([&lane = *lanes[i], end, operations] { lane.run(end, operations); });
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
  summarise(lanes, result);
  for (const auto& lane : lanes) {
    if (lane->error < 0) {
      return lane->error;
    }
  }
  return 0;
}

}  // namespace swimstore
