// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/tree.h"

#include <algorithm>
#include <optional>

#include "vtkv/background_error.h"
#include "vtkv/compaction/older_runs.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/tree/overwrite_sample.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {
// Blocks read to find out whether range tombstones can be dropped: up to a few hundred milliseconds on a slow device,
// for others wait for a flush.
constexpr uint32_t kFlushRangeReadsMax = 500;
constexpr size_t kListReserveShare = 8;  // of a manifest copy: with less room left, compaction makes room
constexpr size_t kPaceEntries = 256;  // of a flush, between two looks whether to stop

// The runs below a flush, and the memtable that is flushed.
class BelowFlush final : public CompactionIterator::Older {
 public:
  BelowFlush(SortedRuns runs, const MemTable& memtable, const CompactionPace& pace)
      : m_runs(std::move(runs), kFlushRangeReadsMax, pace), m_memtable(memtable) {}
  bool may_hold(std::string_view key) const override { return m_runs.may_hold(key); }
  bool may_hold_any(std::string_view begin, std::string_view end) const override {
    return m_runs.may_hold_any(begin, end);
  }
  bool empty() const override { return m_runs.empty(); }
  const Status& status() const { return m_runs.status(); }
  bool may_show(std::string_view key, SequenceNumber snapshot) const override {
    std::string value;
    const Lookup found = m_memtable.get(key, snapshot, &value);
    return found == Lookup::found || found == Lookup::pointer;
  }

 private:
  const OlderRuns m_runs;
  const MemTable& m_memtable;
};

}  // namespace

Tree::Tree(Env* env, const Options& options, std::unique_ptr<Manifest> manifest, std::shared_ptr<ZoneFile> zones,
           Checkpoint newest)
    : m_env(env),
      m_options(options),
      m_shape{options.runs_per_level, options.growth_factor, options.memtable_bytes},
      m_geometry(newest.geometry),
      m_uuid(newest.uuid),
      m_cache(std::make_shared<ReadCache>(options.block_cache_bytes)),
      m_reader(std::move(zones), m_cache),
      m_next_run_id(newest.next_run_id),
      m_features(newest.features),
      m_compress_blocks(options.compress_blocks && m_features.incompat.contains(kCompressedBlocksFeature)),
      m_stitch_threshold_bytes(options.stitch_threshold_bytes),
      m_policy(m_shape),
      m_manifest_path(manifest->path()),
      m_manifest_bytes_max(manifest->bytes_max()),
      m_manifest(std::move(manifest)),
      m_checkpoint(std::move(newest)) {}

Status Tree::check_may_write() const {
  MutexLock checkpoint_lock(m_checkpoint_lock);
  return m_checkpoint.features.check(m_manifest->path(), known_features(), /*to_write=*/true);
}

Status Tree::prepare_to_write() {
  {
    MutexLock checkpoint_lock(m_checkpoint_lock);
    VTKV_RETURN_IF_ERROR(m_manifest->clear_torn());
    if (m_features_agree) {
      return {};
    }
  }
  const Status status = write_features_again();
  if (status.is_no_space()) {
    m_compress_blocks = false;  // the next checkpoint gives the other copy the features
    return {};
  }
  MutexLock checkpoint_lock(m_checkpoint_lock);
  m_features_agree = status.ok();
  return status;
}

bool Tree::features_agree() const {
  MutexLock checkpoint_lock(m_checkpoint_lock);
  return m_features_agree;
}

Status Tree::add_features(const Features& features) {
  {
    MutexLock checkpoint_lock(m_checkpoint_lock);
    m_checkpoint.features.add(features);
  }
  VTKV_RETURN_IF_ERROR(write_features_again());
  return write_features_again();
}

Status Tree::write_features_again() {
  {
    MutexLock checkpoint_lock(m_checkpoint_lock);
    VTKV_RETURN_IF_ERROR(m_manifest->sync());
  }
  return install([](SortedRuns*) {}, nullptr, [](Segments*) {});
}

LogPosition Tree::newest_log_position() const {
  MutexLock lock(m_lock);
  return m_copies[m_epoch % 2].position;
}

LogPosition Tree::oldest_log_position() const {
  MutexLock lock(m_lock);
  const ManifestCopy& older = m_copies[(m_epoch + 1) % 2];
  return older.epoch > 0 ? older.position : m_copies[m_epoch % 2].position;
}

std::shared_ptr<const Version> Tree::current() const {
  MutexLock lock(m_lock);
  return m_current;
}

Runs Tree::current_runs() const {
  MutexLock lock(m_lock);
  return m_current->runs();
}

SortedRuns Tree::current_sorted_runs() const {
  MutexLock lock(m_lock);
  return m_current->sorted_runs();
}

// Writers are slowed for what compactions can still do, and for nothing else.
void Tree::set_pressure(const SortedRuns& runs) {
  m_reader.file().map().set_step_bytes(compaction_step_bytes(runs, m_shape));
  const bool waits = m_damage_waits.load();
  m_debt_bytes = waits ? 0 : vtkv::compaction_debt(runs, m_shape);
  m_pressure = waits || !m_options.auto_compaction ? 0 : vtkv::compaction_pressure(runs, m_shape);
}

bool Tree::is_list_nearly_full() const { return m_list_room_bytes.load() < m_manifest_bytes_max / kListReserveShare; }

Status Tree::list_is_full(size_t runs, size_t segments) const {
  return Status::make(Status::Code::no_space,
                      m_manifest_path + ": " + std::to_string(runs) + " runs and " + std::to_string(segments) +
                          " log segments with values are more than it can list; compacting and collecting the log's "
                          "garbage make room, and when they cannot, the database has to be made again with larger "
                          "log segments",
                      kListIsFull);
}

Status Tree::install(const std::function<void(SortedRuns*)>& edit, const LogPosition* position,
                     const std::function<void(Segments*)>& edit_segments) {
  MutexLock checkpoint_lock(m_checkpoint_lock);
  VTKV_RETURN_IF_ERROR(failure());
  SortedRuns sorted_runs = current_sorted_runs();
  edit(&sorted_runs);
  Checkpoint next = m_checkpoint;
  ++next.epoch;
  next.next_run_id = m_next_run_id.load();
  if (position) {
    next.position = *position;
  }
  next.runs.clear();
  for (const SortedRun& sorted_run : sorted_runs) {
    for (const auto& part : sorted_run.parts) {
      RunLocation& location = next.runs.emplace_back(part->location());
      location.sorted_run_id = sorted_run.id;
      location.level = sorted_run.level;
    }
  }
  const Runs runs = parts_of(sorted_runs);
  edit_segments(&next.segments);
  // A recovery flushes what it replays: a log that leads back was not written by this database.
  if (!follows(m_checkpoint, next)) {
    return Status::corruption(m_manifest_path +
                              ": the log leads behind the newest checkpoint: restore the database from a copy");
  }
  const size_t encoded_bytes = next.encode().size();
  if (encoded_bytes > m_manifest->bytes_max()) {
    return list_is_full(next.runs.size(), next.segments.size());
  }
  m_list_room_bytes = m_manifest->bytes_max() - encoded_bytes;
  Status status = m_manifest->write(next);
  // For want of space its copy was written in part, or not: it is the one that the next attempt writes whole.
  const bool final = !status.is_no_space();
  if (status.ok()) {
    status = m_syncs.check();
  }
  if (!status.ok()) {
    return checkpoint_failed(runs, std::move(status), final);
  }
  m_checkpoint = std::move(next);
  // What the overwritten copy alone still named becomes free here, outside the lock.
  ManifestCopy overwritten{m_checkpoint.epoch, m_checkpoint.position, runs, m_checkpoint.segments};
  std::vector<Runs> no_longer_doubtful;
  auto version = std::make_shared<const RunVersion>(std::move(sorted_runs));
  set_pressure(version->sorted_runs());
  MutexLock lock(m_lock);
  no_longer_doubtful.swap(m_doubtful);
  m_epoch = m_checkpoint.epoch;
  std::swap(m_copies[m_epoch % 2], overwritten);
  std::swap(m_current, version);
  return {};
}

std::vector<SegmentValues> Tree::value_segments() const {
  MutexLock lock(m_lock);
  return m_copies[m_epoch % 2].segments;
}

std::set<uint64_t> Tree::listed_epochs() const {
  std::set<uint64_t> epochs;
  MutexLock lock(m_lock);
  for (const ManifestCopy& copy : m_copies) {
    for (const SegmentValues& values : copy.segments) {
      epochs.insert(values.epoch);
    }
  }
  return epochs;
}

Status Tree::forget_segments(const std::set<uint64_t>& epochs) {
  for (int copy = 0; copy < 2; ++copy) {
    VTKV_RETURN_IF_ERROR(
        install([](SortedRuns*) {}, nullptr,
                [&](Segments* segments) {
                  std::erase_if(*segments, [&](const SegmentValues& values) { return epochs.contains(values.epoch); });
                }));
  }
  return {};
}

// A lookup asks one part of each sorted run.
int Tree::filter_bits(uint64_t new_entries) const {
  uint64_t entries = new_entries;
  for (const SortedRun& sorted_run : current_sorted_runs()) {
    uint64_t most = 0;
    for (const auto& part : sorted_run.parts) {
      most = std::max(most, part->entries());
    }
    entries += most;
  }
  return QuotientFilter::fingerprint_bits(entries, m_options.filter_false_positive_rate);
}

RunWriter::Settings Tree::writer_settings(uint64_t new_entries) const {
  RunWriter::Settings settings;
  settings.block_bytes = m_geometry.block_bytes;
  settings.compress_blocks = m_compress_blocks;
  settings.filter_bits = filter_bits(new_entries);
  settings.pace = [this](uint64_t) { return go_on(); };
  return settings;
}

Status Tree::write_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                       std::shared_ptr<const Run>* run) {
  RunWriter::Settings settings = writer_settings(memtable.entries());
  settings.run_id = m_next_run_id.fetch_add(1);
  settings.stream = ZoneStream::flush;
  const BelowFlush older(current_sorted_runs(), memtable, settings.pace);
  RunWriter writer(m_env, m_reader, settings);
  CompactionIterator compaction_iterator(&snapshots, &memtable.range_tombstones(), &older);
  // Without values in the log, nobody asks.
  std::optional<OverwriteSample> sample;
  if (!value_segments().empty()) {
    sample.emplace(current(), memtable.entries(), delta);
  }
  const auto iterator = memtable.new_flush_iterator();
  size_t seen = 0;
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    if (seen++ % kPaceEntries == 0) {
      VTKV_RETURN_IF_ERROR(go_on());
    }
    const Entry& entry = iterator->entry();
    if (compaction_iterator.keep(entry)) {
      VTKV_RETURN_IF_ERROR(writer.add(entry));
      ValuePointer pointer;
      if (entry.type == EntryType::value_pointer && pointer.decode(entry.value)) {
        delta->created(entry.key, pointer);
      }
      if (sample) {
        sample->see(entry.key);
      }
    }
  }
  if (sample) {
    sample->see_ranges(memtable.range_tombstones());
  }
  m_overwritten_share.store(sample ? sample->overwritten_share() : 0, std::memory_order_relaxed);
  auto tombstones = mutated(Mutation::range_delete_lost) ? std::make_shared<RangeTombstones>()
                                                         : compaction_iterator.tombstones_left();
  VTKV_RETURN_IF_ERROR(older.status());
  return writer.finish(std::move(tombstones), run);
}

Status Tree::flush(const MemTable& memtable, const LogPosition& position,
                   const std::vector<SequenceNumber>& snapshots) {
  MutexLock flush_lock(m_flush_lock);
  VTKV_RETURN_IF_ERROR(failure());
  std::shared_ptr<const Run> run;
  ValueDelta delta;
  if (!memtable.empty()) {
    if (m_list_room_bytes.load() < sizeof(manifest_run_t)) {
      return list_is_full(current_runs().size() + 1, value_segments().size());
    }
    Status status = write_run(memtable, snapshots, &delta, &run);
    if (spare_space_after(status)) {
      delta = {};
      status = write_run(memtable, snapshots, &delta, &run);
      (void)spare_space_after(status);
    }
    VTKV_RETURN_IF_ERROR(std::move(status));
    VTKV_RETURN_IF_ERROR(run ? sync_zones() : Status());
  }
  VTKV_RETURN_IF_ERROR(install(
      [&](SortedRuns* runs) {
        if (run) {
          runs->insert(runs->begin(), {run->location().run_id, 0, {run}});
        }
      },
      &position, [&](Segments* segments) { delta.apply(segments); }));
  m_reader.file().give_back_surplus();
  MutexLock lock(m_lock);
  ++m_statistics.flushes;
  m_statistics.flush_bytes += run ? run->bytes() : 0;
  return {};
}

// --- looking ------------------------------------------------------------------------------------------

void Tree::verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) {
  {
    MutexLock checkpoint_lock(m_checkpoint_lock);
    m_manifest->verify(m_checkpoint, findings);
  }
  for (const auto& run : current_runs()) {
    run->verify(findings, cancelled);
  }
}

TreeStatistics Tree::statistics() const {
  TreeStatistics result;
  std::shared_ptr<const RunVersion> version;
  {
    MutexLock lock(m_lock);
    result = m_statistics;
    version = m_current;
  }
  for (const auto& run : version->runs()) {
    result.live_bytes += run->bytes();
    result.entries += run->entries();
    result.filter_bytes += run->filter().memory_bytes();
    result.range_tombstone_bytes += run->range_tombstones()->memory_bytes();
    result.index_bytes += run->index_bytes();
    result.descriptor_bytes += run->location().span.bytes();
  }
  std::set<uint32_t> levels;
  for (const SortedRun& sorted_run : version->sorted_runs()) {
    levels.insert(sorted_run.level);
  }
  result.runs = static_cast<uint32_t>(version->sorted_runs().size());
  result.parts = static_cast<uint32_t>(version->runs().size());
  result.levels = static_cast<uint32_t>(levels.size());
  result.debt_bytes = compaction_debt();
  result.file_bytes = m_reader.file().map().allocated_bytes();
  result.zones = result.file_bytes / m_geometry.zone_bytes;
  result.zones_in_use = m_reader.file().map().pinned_bytes() / m_geometry.zone_bytes;
  return result;
}

}  // namespace vtkv
