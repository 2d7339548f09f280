// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cmath>

#include "vtkv/db.h"
#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/peer_options.h"

namespace vtkv::bench {

namespace {

constexpr double kSeparationBytes = 1024;
constexpr uint64_t kCheckpointTimesMemory = 2;  // keys alone fill the memtable
constexpr uint64_t kSegmentBytesMin = 4 << 20, kSegmentBytesMax = 64 << 20;
constexpr uint64_t kZoneBytesMin = 1 << 20, kZoneBytesMax = 8 << 20;

class VtkvScan final : public Scan {
 public:
  explicit VtkvScan(std::unique_ptr<Iterator> iterator) : m_iterator(std::move(iterator)) {}
  void seek_to_first() override { m_iterator->seek_to_first(); }
  void seek_to_last() override { m_iterator->seek_to_last(); }
  void seek(std::string_view target) override { m_iterator->seek(target); }
  bool valid() const override { return m_iterator->valid(); }
  void next() override { m_iterator->next(); }
  void previous() override { m_iterator->previous(); }
  std::string_view key() const override { return m_iterator->key(); }
  std::string_view value() const override { return m_iterator->value(); }
  Status status() const override { return m_iterator->status(); }

 private:
  std::unique_ptr<Iterator> m_iterator;
};

class VtkvEngine final : public Engine {
 public:
  ~VtkvEngine() override { m_db.reset(); }

  Status open(const EngineSettings& settings);

  Status put(std::string_view key, std::string_view value) override {
    WriteBatch batch;
    batch.put(key, value);
    return write(std::move(batch));
  }
  Status put_many(const std::vector<KeyValue>& entries) override {
    WriteBatch batch;
    for (const KeyValue& entry : entries) {
      batch.put(entry.key, entry.value);
    }
    return write(std::move(batch));
  }
  Status remove(std::string_view key) override {
    WriteBatch batch;
    batch.remove(key);
    return write(std::move(batch));
  }
  Status remove_range(std::string_view begin, std::string_view end) override {
    WriteBatch batch;
    batch.remove_range(begin, end);
    return write(std::move(batch));
  }
  Status get(std::string_view key, std::string* value) override { return m_db->get(key, value); }
  std::unique_ptr<Scan> new_scan(std::string_view lower, std::string_view upper, ScanLength) override {
    return std::make_unique<VtkvScan>(m_db->new_iterator(lower, upper));
  }
  Status settle() override {
    VTKV_RETURN_IF_ERROR(m_db->flush());
    wait_until_quiet(m_path);
    fit_cache();
    return {};
  }
  Status collect_garbage() override { return m_db->collect_garbage(true); }
  Status defragment() override { return m_db->defragment({.bytes_per_second = 0}); }
  EngineReport report() override;

 private:
  Status write(WriteBatch batch);
  void fit_cache();

  std::string m_path;
  bool m_sync = false;
  uint64_t m_cache_bytes = 0;
  std::unique_ptr<DB> m_db;
};

Status VtkvEngine::open(const EngineSettings& settings) {
  double growth = 0, runs = 0, stitch = 0, auto_compaction = 0, single_flush = 0, separation = 0, space_target = 0,
         purge = 0, fragmented = 0, gc_lookup_cost = 0, compress = 0;
  const Options defaults;
  VTKV_RETURN_IF_ERROR(number_option(settings, "growth_factor", defaults.growth_factor, &growth));
  VTKV_RETURN_IF_ERROR(number_option(settings, "runs_per_level", defaults.runs_per_level, &runs));
  VTKV_RETURN_IF_ERROR(
      number_option(settings, "stitch", static_cast<double>(defaults.stitch_threshold_bytes), &stitch));
  VTKV_RETURN_IF_ERROR(number_option(settings, "auto_compaction", 1, &auto_compaction));
  VTKV_RETURN_IF_ERROR(number_option(settings, "purge", defaults.purge_tombstones_min, &purge));
  VTKV_RETURN_IF_ERROR(number_option(settings, "separation", kSeparationBytes, &separation));
  VTKV_RETURN_IF_ERROR(number_option(settings, "space_target", defaults.space_amplification_target, &space_target));
  VTKV_RETURN_IF_ERROR(number_option(settings, "fragmented", defaults.fragmented_values_min, &fragmented));
  VTKV_RETURN_IF_ERROR(number_option(settings, "gc_lookup_cost", defaults.gc_lookup_cost_bytes, &gc_lookup_cost));
  VTKV_RETURN_IF_ERROR(number_option(settings, "compress", 0, &compress));
  Env* env = posix_env();
  FileSystemInfo info;
  VTKV_RETURN_IF_ERROR(env->file_system_info(settings.path, &info));
  VTKV_RETURN_IF_ERROR(number_option(settings, "single_flush", info.single_flush, &single_flush));

  m_path = settings.path;
  m_sync = settings.sync;
  Options options;
  options.memtable_bytes = peer::write_buffer_bytes(settings.memory_bytes);
  options.block_cache_bytes = peer::cache_bytes(settings.memory_bytes);
  options.growth_factor = static_cast<uint32_t>(growth);
  options.runs_per_level = static_cast<uint32_t>(runs);
  options.stitch_threshold_bytes = std::isinf(stitch) ? kNeverStitch : static_cast<uint64_t>(stitch);
  options.purge_tombstones_min = static_cast<uint32_t>(purge);
  options.auto_compaction = auto_compaction != 0;
  options.compress_blocks = compress != 0;  // as the peers
  options.single_flush = single_flush != 0;
  options.fragmented_values_min = static_cast<uint32_t>(fragmented);
  options.space_amplification_target = space_target;
  options.gc_lookup_cost_bytes = static_cast<uint32_t>(gc_lookup_cost);
  options.value_separation_bytes = static_cast<size_t>(separation);
  options.checkpoint_log_bytes = kCheckpointTimesMemory * settings.memory_bytes;
  // As large a part of the data as it would be of a device's worth of it.
  options.geometry.log_segment_bytes =
      std::clamp(settings.memory_bytes / 8 / kIoAlignment * kIoAlignment, kSegmentBytesMin, kSegmentBytesMax);
  options.geometry.zone_bytes =
      std::clamp(settings.memory_bytes / 32 / kIoAlignment * kIoAlignment, kZoneBytesMin, kZoneBytesMax);
  const std::string directory = settings.path + "/db";
  if (!env->exists(directory)) {
    VTKV_RETURN_IF_ERROR(DB::create(env, directory, options));
  }
  VTKV_RETURN_IF_ERROR(DB::open(env, directory, options, &m_db));
  m_cache_bytes = options.block_cache_bytes;
  fit_cache();
  return {};
}

// The filters stay in memory beside the cache; the peers' lie in it. One budget holds both.
void VtkvEngine::fit_cache() {
  m_db->set_block_cache_bytes(m_cache_bytes - std::min<uint64_t>(m_cache_bytes, m_db->statistics().filter_bytes));
}

Status VtkvEngine::write(WriteBatch batch) { return m_db->write(std::move(batch), {.sync = m_sync}); }

EngineReport VtkvEngine::report() {
  const DBStatistics statistics = m_db->statistics();
  EngineReport report;
  report.primed_bytes = statistics.primed_bytes;
  report.log_bytes = statistics.log_bytes;
  report.flush_bytes = statistics.flush_bytes;
  report.compaction_bytes = statistics.compaction_bytes;
  report.gc_bytes = statistics.gc_moved_bytes;
  report.filter_bytes = statistics.filter_bytes;
  report.delay_us = statistics.throttled_us;
  report.delays = statistics.throttled_groups;
  report.log_waits = statistics.write_waits;
  return report;
}

}  // namespace

Status open_vtkv(const EngineSettings& settings, std::unique_ptr<Engine>* engine) {
  auto opened = std::make_unique<VtkvEngine>();
  VTKV_RETURN_IF_ERROR(opened->open(settings));
  *engine = std::move(opened);
  return {};
}

}  // namespace vtkv::bench
