// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/runner.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "vtkv/tool/device_counters.h"
#include "vtkv/util/histogram.h"
#include "vtkv/util/mutex.h"

namespace vtkv::bench {

namespace {

constexpr uint64_t kSecondNs = 1000000000;
constexpr uint64_t kStallNs = kSecondNs / 10;
constexpr auto kProgressEvery = std::chrono::seconds(5);
constexpr size_t kSecondsForWorst = 3;

uint64_t now_ns() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

// Of one thread; read by others after it ended, but for `operations`.
struct Meter {
  Histogram latency_ns;
  std::vector<uint64_t> in_second;
  uint64_t written_bytes = 0, read_bytes = 0;
  uint64_t stalls = 0;
  std::atomic<uint64_t> operations{0};

  void add(uint64_t begin_ns, uint64_t end_ns, uint64_t start_ns, const Outcome& outcome) {
    if (outcome.operations == 0) {
      return;
    }
    latency_ns.add(end_ns - begin_ns);
    stalls += end_ns - begin_ns >= kStallNs;
    const size_t second = (end_ns - start_ns) / kSecondNs;
    if (second >= in_second.size()) {
      in_second.resize(second + 1);
    }
    in_second[second] += outcome.operations;
    written_bytes += outcome.written_bytes;
    read_bytes += outcome.read_bytes;
    operations.store(operations.load(std::memory_order_relaxed) + outcome.operations, std::memory_order_relaxed);
  }
};

// What is taken before and after.
struct Moment {
  DeviceCounters device;
  EngineReport engine;
  double cpu_us = 0;

  static Moment take(Engine& engine, const std::string& path) {
    Moment moment;
    moment.device = read_device_counters(path);
    moment.engine = engine.report();
    struct rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    moment.cpu_us = us(usage.ru_utime) + us(usage.ru_stime);
    return moment;
  }
};

// What engines left in the page cache counts for them, not for the next one.
void sync_file_system(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    ::syncfs(fd);
    ::close(fd);
  }
}

class Run {
 public:
  Run(const Plan& plan, unsigned threads) : m_plan(plan), m_meters(threads) {}

  // Returns when all threads have ended. `measuring` is called when counting begins.
  Status go(const std::string& label, double warm_up_seconds, const std::function<void()>& measuring);
  void summarise(Result* result) const;

 private:
  void client(unsigned thread);
  void fail(const Status& status);
  uint64_t operations() const;

  const Plan& m_plan;
  std::vector<Meter> m_meters;
  uint64_t m_counted_from_ns = 0, m_deadline_ns = UINT64_MAX, m_ended_ns = 0;
  std::atomic<uint64_t> m_next{0};
  std::atomic<bool> m_failed{false}, m_stop_companion{false};
  Mutex m_lock;
  ConditionVariable m_changed;
  unsigned m_running GUARDED_BY(m_lock) = 0;
  Status m_status GUARDED_BY(m_lock);
};

void Run::fail(const Status& status) {
  MutexLock lock(m_lock);
  if (m_status.ok()) {
    m_status = status;
  }
  m_failed.store(true);
}

void Run::client(unsigned thread) {
  const Step step = m_plan.worker(thread);
  Meter& meter = m_meters[thread];
  uint64_t begin_ns = now_ns();
  while (begin_ns < m_deadline_ns && !m_failed.load(std::memory_order_relaxed)) {
    const uint64_t ticket = m_next.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= m_plan.operations) {
      break;
    }
    Outcome outcome;
    if (const Status status = step(ticket, &outcome); !status.ok()) {
      fail(status);
      break;
    }
    const uint64_t end_ns = now_ns();
    if (begin_ns >= m_counted_from_ns) {
      meter.add(begin_ns, end_ns, m_counted_from_ns, outcome);
    }
    begin_ns = end_ns;
  }
  MutexLock lock(m_lock);
  --m_running;
  m_changed.notify_all();
}

uint64_t Run::operations() const {
  uint64_t sum = 0;
  for (const Meter& meter : m_meters) {
    sum += meter.operations.load(std::memory_order_relaxed);
  }
  return sum;
}

Status Run::go(const std::string& label, double warm_up_seconds, const std::function<void()>& measuring) {
  const auto ns = [](double seconds) { return static_cast<uint64_t>(seconds * 1e9); };
  m_counted_from_ns = now_ns() + ns(warm_up_seconds);
  if (m_plan.seconds > 0) {
    m_deadline_ns = m_counted_from_ns + ns(m_plan.seconds);
  }
  if (warm_up_seconds == 0) {
    measuring();
    m_counted_from_ns = now_ns();
  }
  {
    MutexLock lock(m_lock);
    m_running = static_cast<unsigned>(m_meters.size());
  }
  std::thread companion;
  if (m_plan.companion) {
    companion = std::thread([this] {
      if (const Status status = m_plan.companion(m_stop_companion); !status.ok()) {
        fail(status);
      }
    });
  }
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < m_meters.size(); ++i) {
    clients.emplace_back([this, i] { client(i); });
  }
  if (warm_up_seconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(warm_up_seconds));
    measuring();
  }
  for (bool done = false; !done;) {
    MutexLock lock(m_lock);
    done = m_changed.wait_for(lock, kProgressEvery, [this]() REQUIRES(m_lock) { return m_running == 0; });
    lock.unlock();
    if (!done) {
      const double seconds = static_cast<double>(now_ns() - m_counted_from_ns) / 1e9;
      say(fmt::format("{}: {:.0f} s, {} op, {:.0f} op/s", label, seconds, operations(),
                      static_cast<double>(operations()) / seconds));
    }
  }
  m_ended_ns = now_ns();
  for (std::thread& thread : clients) {
    thread.join();
  }
  m_stop_companion.store(true);
  if (companion.joinable()) {
    companion.join();
  }
  MutexLock lock(m_lock);
  return m_status;
}

void Run::summarise(Result* result) const {
  Result& one = *result;
  Histogram latency_ns;
  std::vector<uint64_t> in_second;
  double written = 0, read = 0, stalls = 0;
  for (const Meter& meter : m_meters) {
    latency_ns.merge(meter.latency_ns);
    in_second.resize(std::max(in_second.size(), meter.in_second.size()));
    for (size_t i = 0; i < meter.in_second.size(); ++i) {
      in_second[i] += meter.in_second[i];
    }
    written += static_cast<double>(meter.written_bytes);
    read += static_cast<double>(meter.read_bytes);
    stalls += static_cast<double>(meter.stalls);
  }
  const double seconds = static_cast<double>(m_ended_ns - m_counted_from_ns) / 1e9;
  one[Metric::seconds] = seconds;
  one[Metric::operations] = static_cast<double>(operations());
  one[Metric::ops_per_s] = static_cast<double>(operations()) / seconds;
  one[Metric::mb_per_s] = (written + read) / 1e6 / seconds;
  one[Metric::user_written_bytes] = written;
  one[Metric::user_read_bytes] = read;
  const auto us = [&](double fraction) { return static_cast<double>(latency_ns.percentile(fraction)) / 1e3; };
  one[Metric::p50_us] = us(0.5);
  one[Metric::p99_us] = us(0.99);
  one[Metric::p999_us] = us(0.999);
  one[Metric::max_us] = static_cast<double>(latency_ns.max()) / 1e3;
  one[Metric::stalls] = stalls;
  // The last second is not a whole one.
  in_second.resize(std::min(in_second.size(), static_cast<size_t>(seconds)));
  if (in_second.size() >= kSecondsForWorst) {
    std::sort(in_second.begin(), in_second.end());
    const double middle = static_cast<double>(in_second[in_second.size() / 2]);
    one[Metric::worst_second_ratio] = middle > 0 ? static_cast<double>(in_second.front()) / middle : 0;
  }
}

void add_difference(const Moment& before, const Moment& after, Result* result) {
  Result& one = *result;
  const double operations = std::max(1.0, *one[Metric::operations]);
  const auto count = [](uint64_t value) { return static_cast<double>(value); };
  const DeviceCounters device = after.device - before.device;
  const double primed = count(after.engine.primed_bytes - before.engine.primed_bytes);
  one[Metric::primed_bytes] = primed;
  one[Metric::log_bytes] = count(after.engine.log_bytes - before.engine.log_bytes);
  one[Metric::flush_bytes] = count(after.engine.flush_bytes - before.engine.flush_bytes);
  one[Metric::compaction_bytes] = count(after.engine.compaction_bytes - before.engine.compaction_bytes);
  one[Metric::gc_bytes] = count(after.engine.gc_bytes - before.engine.gc_bytes);
  one[Metric::delays] = count(after.engine.delays - before.engine.delays);
  one[Metric::delay_seconds] = count(after.engine.delay_us - before.engine.delay_us) / 1e6;
  if (before.engine.log_waits && after.engine.log_waits) {
    one[Metric::log_waits] = count(*after.engine.log_waits - *before.engine.log_waits);
  }
  one[Metric::cpu_us_per_op] = (after.cpu_us - before.cpu_us) / operations;
  if (!device.known) {
    return;
  }
  one[Metric::device_written_bytes] = count(device.written_bytes);
  one[Metric::device_read_bytes] = count(device.read_bytes);
  one[Metric::device_reads_per_op] = count(device.reads) / operations;
  one[Metric::flushes_per_op] = count(device.flushes) / operations;
  if (*one[Metric::user_written_bytes] > 0) {
    one[Metric::write_amplification] = (count(device.written_bytes) - primed) / *one[Metric::user_written_bytes];
  }
  if (*one[Metric::user_read_bytes] > 0) {
    one[Metric::read_amplification] = count(device.read_bytes) / *one[Metric::user_read_bytes];
  }
}

}  // namespace

Status run_plan(const Plan& plan, Engine& engine, unsigned threads, const std::string& path, const std::string& label,
                double warm_up_seconds, bool settle, Result* result) {
  sync_file_system(path);
  Run run(plan, threads);
  Moment before;
  VTKV_RETURN_IF_ERROR(run.go(label, warm_up_seconds, [&] { before = Moment::take(engine, path); }));
  if (plan.finished) {
    plan.finished();
  }
  run.summarise(result);
  const uint64_t settling_ns = now_ns();
  if (settle) {
    VTKV_RETURN_IF_ERROR(engine.settle());
    sync_file_system(path);
  }
  (*result)[Metric::settle_seconds] = static_cast<double>(now_ns() - settling_ns) / 1e9;
  add_difference(before, Moment::take(engine, path), result);
  return {};
}

void say(const std::string& text) {
  const std::time_t now = std::time(nullptr);
  std::fprintf(stderr, "%s\n", fmt::format("[{:%H:%M:%S}] {}", fmt::localtime(now), text).c_str());
}

}  // namespace vtkv::bench
