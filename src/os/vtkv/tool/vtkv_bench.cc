// Commit latency and throughput of the engine: batches of one put, with or without a 4 KiB external write,
// at a given number in flight.

#include <CLI/CLI.hpp>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "vtkv/db.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/histogram.h"

namespace vtkv {
namespace {

struct Settings {
  std::string path;
  unsigned depth = 1;
  unsigned seconds = 5;
  unsigned value_bytes = 600;
  bool external = false;
  bool per_file = false;
};

constexpr uint64_t kSlots = 4096;

class Bench {
 public:
  explicit Bench(const Settings& settings) : m_settings(settings) {}
  Status run();

 private:
  class Operation;

  Status prepare();
  void issue(Operation* operation);
  void finished(Operation* operation, const Status& status);
  void report(double seconds, const DBStatistics& before) const;

  const Settings m_settings;
  std::unique_ptr<File> m_file;
  AlignedBuffer m_data{4096};
  uint32_t m_data_crc = 0;
  std::unique_ptr<DB> m_db;
  std::string m_value;
  std::atomic<uint64_t> m_issued{0};
  std::atomic<uint64_t> m_done{0};
  std::atomic<bool> m_stop{false};
  Histogram m_latency_us;
  std::mutex m_lock;
  std::condition_variable m_changed;
  std::vector<Operation*> m_idle;
  Status m_status;
};

class Bench::Operation final : public Submission {
 public:
  explicit Operation(Bench* bench) : m_bench(bench) {}
  void durable(const Status& status) override { m_bench->finished(this, status); }
  uint64_t started_us = 0;

 private:
  Bench* const m_bench;
};

Status Bench::prepare() {
  Env* env = posix_env();
  Options options;
  FileSystemInfo info;
  VTKV_RETURN_IF_ERROR(env->create_directory(m_settings.path));
  VTKV_RETURN_IF_ERROR(env->file_system_info(m_settings.path, &info));
  options.single_flush = info.single_flush && !m_settings.per_file;
  VTKV_RETURN_IF_ERROR(DB::create(env, m_settings.path + "/db", options));
  VTKV_RETURN_IF_ERROR(
      env->open_file(m_settings.path + "/slots", {.create = true, .exclusive = true}, &m_file));
  VTKV_RETURN_IF_ERROR(m_file->write_zeros(0, kSlots * 4096));
  VTKV_RETURN_IF_ERROR(m_file->sync());
  m_data.append(std::string(4096, 'd'));
  m_data_crc = crc32c(m_data.data(), 4096);
  m_value.assign(m_settings.value_bytes, 'v');
  return DB::open(env, m_settings.path + "/db", options, &m_db);
}

void Bench::issue(Operation* operation) {
  const uint64_t number = m_issued.fetch_add(1);
  operation->batch.clear();
  operation->data.clear();
  operation->batch.put("key" + std::to_string(number * 7919 % 1000003), m_value);
  if (m_settings.external) {
    const uint64_t slot = number % kSlots;
    operation->batch.external_write({0, slot, 0, 4096, m_data_crc});
    ExternalData& data = operation->data.emplace_back();
    data.file = m_file.get();
    data.offset = slot * 4096;
    data.buffers.push_back({m_data.data(), 4096});
    data.primed = true;
  }
  operation->started_us = posix_env()->now_us();
  m_db->submit(operation);
}

void Bench::finished(Operation* operation, const Status& status) {
  m_latency_us.add(posix_env()->now_us() - operation->started_us);
  m_done.fetch_add(1);
  std::lock_guard lock(m_lock);
  if (!status.ok()) {
    m_status = status;
    m_stop.store(true);
  }
  m_idle.push_back(operation);
  m_changed.notify_one();
}

Status Bench::run() {
  VTKV_RETURN_IF_ERROR(prepare());
  std::vector<std::unique_ptr<Operation>> operations;
  for (unsigned i = 0; i < m_settings.depth; ++i) {
    m_idle.push_back(operations.emplace_back(std::make_unique<Operation>(this)).get());
  }
  const DBStatistics before = m_db->statistics();
  const uint64_t start_us = posix_env()->now_us();
  const uint64_t end_us = start_us + m_settings.seconds * 1000000ull;
  std::vector<Operation*> ready;
  while (posix_env()->now_us() < end_us && !m_stop.load()) {
    {
      std::unique_lock lock(m_lock);
      m_changed.wait(lock, [this] { return !m_idle.empty(); });
      ready.swap(m_idle);
    }
    for (Operation* operation : ready) {
      issue(operation);
    }
    ready.clear();
  }
  {
    std::unique_lock lock(m_lock);
    m_changed.wait(lock, [this] { return m_idle.size() == m_settings.depth; });
  }
  report(static_cast<double>(posix_env()->now_us() - start_us) / 1e6, before);
  m_db.reset();
  return m_status;
}

void Bench::report(double seconds, const DBStatistics& before) const {
  const DBStatistics after = m_db->statistics();
  const double count = static_cast<double>(m_done.load());
  std::printf("depth %u%s: %.0f op/s, p50 %lu us, p99 %lu us; per op: %.3f syncs, %.3f groups, %.0f log bytes\n",
              m_settings.depth, m_settings.external ? " external" : "", count / seconds,
              m_latency_us.percentile(0.5), m_latency_us.percentile(0.99),
              static_cast<double>(after.syncs - before.syncs) / count,
              static_cast<double>(after.commit_groups - before.commit_groups) / count,
              static_cast<double>(after.log_bytes - before.log_bytes) / count);
}

}  // namespace
}  // namespace vtkv

int main(int argc, char** argv) {
  vtkv::Settings settings;
  CLI::App app("Commit latency and throughput of vtkv on one file system");
  app.add_option("--path", settings.path, "a directory to make; must not exist")->required();
  app.add_option("--depth", settings.depth, "batches in flight")->check(CLI::Range(1, 100000));
  app.add_option("--seconds", settings.seconds)->check(CLI::Range(1, 86400));
  app.add_option("--value-bytes", settings.value_bytes)->check(CLI::Range(0, 1 << 20));
  app.add_flag("--external", settings.external, "each batch also writes 4 KiB outside the engine");
  app.add_flag("--per-file", settings.per_file, "sync every file, also where one sync would do");
  CLI11_PARSE(app, argc, argv);
  if (std::filesystem::exists(settings.path)) {
    std::fprintf(stderr, "vtkv_bench: %s exists; name a directory that does not\n", settings.path.c_str());
    return 1;
  }
  const vtkv::Status status = vtkv::Bench(settings).run();
  if (!status.ok()) {
    std::fprintf(stderr, "vtkv_bench: %s\n", status.to_string().c_str());
    return 1;
  }
  return 0;
}
