// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/store_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "common/ceph_time.h"
#include "swimstore/tool/load_client.h"
#include "vtkv/tool/device_counters.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

namespace {

using Clock = ceph::mono_clock;

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

void summarise(const std::vector<LoadClient::Outcome>& outcomes, LoadResult* result) {
  std::vector<float> latencies;
  std::vector<uint64_t> per_second(static_cast<size_t>(result->seconds));
  for (const LoadClient::Outcome& outcome : outcomes) {
    latencies.insert(latencies.end(), outcome.latencies_ms.begin(), outcome.latencies_ms.end());
    result->listed_objects += outcome.listed_objects;
    result->wrong_objects += outcome.wrong_objects;
    if (result->first_wrong.empty()) {
      result->first_wrong = outcome.first_wrong;
    }
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

double processor_seconds() {
  struct rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages = 0, resident_pages = 0;
  in >> pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

// BlueStore's folder has a link to the device.
std::string where_data_lies(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_block_file(path + "/block", ignored) ? path + "/block" : path;
}

using Clients = std::vector<std::unique_ptr<LoadClient>>;

// Reads are synchronous: there, depth is threads.
int make_clients(ObjectStore& store, const LoadOptions& options, AckedObjects& acked, LoadResult* result,
                 Clients* clients) {
  const bool of_each_pg = options.op == LoadOp::list || options.op == LoadOp::check;
  const unsigned count = options.op == LoadOp::read ? options.depth
                         : of_each_pg               ? acked.pgs()
                                                    : std::min(options.depth, acked.pgs());
  for (unsigned i = 0; i < count; ++i) {
    const unsigned pg = i % acked.pgs();
    const unsigned depth = options.depth / count + (i < options.depth % count);
    clients->push_back(std::make_unique<LoadClient>(store, options, i, pg, acked.pg(pg), depth));
    if (i == 0 && options.existing && acked.pg(pg).count() > 0) {
      if (const int r = clients->back()->first_io(result); r < 0) {
        return r;
      }
    }
    if (const int r = clients->back()->prepare(); r < 0) {
      return r;
    }
  }
  return 0;
}

void run_clients(const Clients& clients, const LoadOptions& options, Clock::time_point end) {
  std::vector<std::thread> workers;
  for (size_t i = 0; i < clients.size(); ++i) {
    const uint64_t share = options.operations / clients.size() + (i < options.operations % clients.size());
    const uint64_t operations = options.operations == 0 ? UINT64_MAX : share;
    workers.emplace_back([&client = *clients[i], end, operations] { client.run(end, operations); });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
}

}  // namespace

unsigned pgs_of(const LoadOptions& options) {
  return options.op == LoadOp::read ? options.depth : std::min(options.threads, options.depth);
}

int run_load(ObjectStore& store, const std::string& path, const LoadOptions& options, AckedObjects& acked,
             LoadResult* result) {
  Clients clients;
  if (const int r = make_clients(store, options, acked, result, &clients); r < 0) {
    return r;
  }
  const std::string device_path = where_data_lies(path);
  const MetadataCounters metadata_before = read_metadata_counters(store);
  const vtkv::DeviceCounters before = vtkv::read_device_counters(device_path);
  const double processor_before = processor_seconds();
  const auto start = Clock::now();
  std::optional<SpaceWatch> space(std::in_place, store, result);
  run_clients(clients, options,
              start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds)));
  result->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result->processor_seconds = processor_seconds() - processor_before;
  const vtkv::DeviceCounters device = vtkv::read_device_counters(device_path) - before;
  result->device_known = device.known;
  result->device_written_bytes = device.written_bytes;
  result->device_flushes = device.flushes;
  result->metadata = read_metadata_counters(store) - metadata_before;
  uint64_t own_bytes = 0;
  for (const auto& client : clients) {
    own_bytes += client->own_bytes();
  }
  result->resident_bytes = std::max(resident_bytes(), own_bytes) - own_bytes;
  space.reset();
  std::vector<LoadClient::Outcome> outcomes;
  for (const auto& client : clients) {
    outcomes.push_back(client->take_outcome());
  }
  summarise(outcomes, result);
  for (const LoadClient::Outcome& outcome : outcomes) {
    if (outcome.error < 0) {
      return outcome.error;
    }
  }
  return 0;
}

}  // namespace swimstore
