// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/tree.h"

#include <algorithm>
#include <optional>

#include "vtkv/background_error.h"
#include "vtkv/compaction/older_runs.h"
#include "vtkv/compaction/stitch_compaction.h"
#include "vtkv/table/filter_merge.h"
#include "vtkv/tree/overwrite_sample.h"
#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {
// Blocks read to find out whether range tombstones can be dropped: up to a few hundred milliseconds on a
// slow device for a flush, which others wait for; a small part of a compaction.
constexpr uint32_t kFlushRangeReadsMax = 500;
constexpr uint32_t kCompactionRangeReadsMax = 100'000;
constexpr size_t kPaceEntries = 256;  // of a flush, or taken out of a filter, between two looks whether to stop

// The runs below a flush, and the memtable that is flushed.
class BelowFlush final : public CompactionIterator::Older {
 public:
  BelowFlush(std::vector<std::shared_ptr<const Run>> runs, const MemTable& memtable, const CompactionPace& pace)
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
      m_runs_max(manifest->runs_max()),
      m_next_run_id(newest.next_run_id),
      m_features(newest.features),
      m_compress_blocks(options.compress_blocks && m_features.incompat.contains(kCompressedBlocksFeature)),
      m_stitch_threshold_bytes(options.stitch_threshold_bytes),
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
  return install([](Runs*) {}, nullptr, [](Segments*) {});
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

Tree::Runs Tree::current_runs() const {
  MutexLock lock(m_lock);
  return m_current->runs();
}

Status Tree::install(const std::function<void(Runs*)>& edit, const LogPosition* position,
                     const std::function<void(Segments*)>& edit_segments) {
  MutexLock checkpoint_lock(m_checkpoint_lock);
  VTKV_RETURN_IF_ERROR(failure());
  Runs runs = current_runs();
  edit(&runs);
  Checkpoint next = m_checkpoint;
  ++next.epoch;
  next.next_run_id = m_next_run_id.load();
  if (position) {
    next.position = *position;
  }
  next.runs.clear();
  for (const auto& run : runs) {
    next.runs.push_back(run->location());
  }
  edit_segments(&next.segments);
  VTKV_ASSERT(next.epoch == m_checkpoint.epoch + 1 && follows(m_checkpoint, next));
  if (next.encode().size() > m_manifest->bytes_max()) {
    return Status::make(Status::Code::no_space,
                        m_manifest->path() + ": " + std::to_string(next.runs.size()) + " runs and " +
                            std::to_string(next.segments.size()) +
                            " log segments with values are more than it can list; compacting and collecting the log's "
                            "garbage make room, and when they cannot, the database has to be made again with larger "
                            "log segments",
                        kListIsFull);
  }
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
  std::vector<Unlisted> no_longer_needed;
  auto version = std::make_shared<const RunVersion>(std::move(runs));
  MutexLock lock(m_lock);
  forget_quarantined(version->runs());
  m_debt_bytes = debt_of(version->runs());
  no_longer_needed = take_useless_unlisted(version->runs());
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
        install([](Runs*) {}, nullptr,
                [&](Segments* segments) {
                  std::erase_if(*segments, [&](const SegmentValues& values) { return epochs.contains(values.epoch); });
                }));
  }
  return {};
}

int Tree::filter_bits(uint64_t new_entries) const {
  uint64_t entries = new_entries;
  for (const auto& run : current_runs()) {
    entries += run->entries();
  }
  return QuotientFilter::fingerprint_bits(entries, m_options.filter_false_positive_rate);
}

RunWriter::Settings Tree::compaction_settings(uint32_t level, const CompactionPace& pace) {
  RunWriter::Settings settings;
  settings.run_id = m_next_run_id.fetch_add(1);
  settings.level = level;
  settings.block_bytes = m_geometry.block_bytes;
  settings.compress_blocks = m_compress_blocks;
  settings.stream = ZoneStream::compaction;
  settings.filter_bits = filter_bits(0);
  settings.pace = pace;
  return settings;
}

Status Tree::write_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                       std::shared_ptr<const Run>* run) {
  const CompactionPace pace = [this](uint64_t) { return go_on(); };
  const BelowFlush older(current_runs(), memtable, pace);
  RunWriter::Settings settings;
  settings.run_id = m_next_run_id.fetch_add(1);
  settings.block_bytes = m_geometry.block_bytes;
  settings.compress_blocks = m_compress_blocks;
  settings.stream = ZoneStream::flush;
  settings.filter_bits = filter_bits(memtable.entries());
  settings.pace = pace;
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
  if (Status status = make_room_in_manifest(snapshots); !status.ok() && current_runs().size() >= m_runs_max) {
    return status;
  }
  std::shared_ptr<const Run> run;
  ValueDelta delta;
  if (!memtable.empty()) {
    VTKV_RETURN_IF_ERROR(flushed_run(memtable, snapshots, &delta, &run));
  }
  const auto list = [&] {
    return install(
        [&](Runs* runs) {
          if (run) {
            runs->insert(runs->begin(), run);
          }
        },
        &position, [&](Segments* segments) { delta.apply(segments); });
  };
  Status status = list();
  for (bool did = true; is_list_full(status) && did;) {
    VTKV_RETURN_IF_ERROR(compact_neighbours(snapshots, &did));
    status = did ? list() : status;
  }
  VTKV_RETURN_IF_ERROR(std::move(status));
  m_unlisted_flush = {};
  m_reader.file().give_back_surplus();
  MutexLock lock(m_lock);
  ++m_statistics.flushes;
  m_statistics.flush_bytes += run ? run->bytes() : 0;
  return {};
}

// --- compaction --------------------------------------------------------------------------------------------

StitchPolicy Tree::stitch_policy() const {
  StitchPolicy policy;
  policy.bytes_min = m_stitch_threshold_bytes.load();
  return policy;
}

bool Tree::claim(const Choose& choose, Claim* claimed) {
  MutexLock lock(m_lock);
  const Runs& runs = m_current->runs();
  std::set<uint64_t> busy = m_busy;
  for (const auto& [id, waits] : m_quarantined) {
    if (waits) {
      busy.insert(id);
    }
  }
  const CompactionChoice choice = choose(runs, busy);
  if (choice.count == 0) {
    return false;
  }
  const auto first = runs.begin() + choice.first, end = first + choice.count;
  *claimed = {Runs(first, end), Runs(end, runs.end()), choice.level, false};
  for (const auto& run : claimed->inputs) {
    const bool was_free = m_busy.insert(run->location().run_id).second;
    VTKV_ASSERT(was_free);
  }
  return true;
}

Status Tree::compact(const Claim& claimed, const SnapshotSource& snapshots, const StitchPolicy& policy) {
  Status status = compact_claimed(claimed, snapshots(), policy);
  give_up(claimed, status);
  return status;
}

// Puts the outputs, newest first, in the place of the inputs.
Status Tree::install_compaction(const Runs& inputs, const Runs& outputs, const ValueDelta& values) {
  if (!outputs.empty()) {
    VTKV_RETURN_IF_ERROR(sync_zones());
  }
  Status status = install(
      [&](Runs* current) {
        // Flushes and smaller compactions may have changed what lies in front meanwhile; the claim kept these.
        auto found = std::search(current->begin(), current->end(), inputs.begin(), inputs.end());
        VTKV_ASSERT(found != current->end());
        found = current->erase(found, found + inputs.size());
        current->insert(found, outputs.begin(), outputs.end());
      },
      nullptr, [&](Segments* segments) { values.apply(segments); });
  if (status.is_no_space()) {
    MutexLock lock(m_lock);
    std::erase_if(m_unlisted, [&](const Unlisted& earlier) { return earlier.inputs == inputs; });
    m_unlisted.push_back({inputs, outputs, values});
  }
  VTKV_RETURN_IF_ERROR(std::move(status));
  m_reader.file().give_back_surplus();
  return {};
}

namespace {

// What a compaction drops: for the account of the log's values, and to be taken out of the new run's filter.
class CompactionDrops final : public EntryObserver {
 public:
  explicit CompactionDrops(ValueDelta* values) : m_values(*values) {}
  void dropped(const Entry& entry) override {
    m_values.dropped(entry);
    if (m_key_hashes.size() < kRememberedMax) {
      m_key_hashes.push_back(hash64(entry.key));
    }
  }
  void remove_from(QuotientFilter* filter, Paced* paced) const {
    for (size_t i = 0; i < m_key_hashes.size() && (i % kPaceEntries != 0 || paced->go_on()); ++i) {
      (void)filter->remove(m_key_hashes[i]);
    }
  }

 private:
  // 128 MiB. Fingerprints beyond that stay, as those of entries dropped unread do: a filter with many of them is
  // built anew by the next compaction.
  static constexpr size_t kRememberedMax = 16 << 20;
  ValueDelta& m_values;
  std::vector<uint64_t> m_key_hashes;
};

}  // namespace

Status Tree::compact_into(const Runs& inputs, const Runs& below, const std::vector<SequenceNumber>& snapshots,
                          const StitchPolicy& policy, const CompactionPace& pace, ValueDelta* values, RunWriter* writer,
                          std::shared_ptr<const Run>* compacted) {
  const OlderRuns older(below, kCompactionRangeReadsMax, pace);
  std::vector<RangeTombstone> all_tombstones;
  for (const auto& run : inputs) {
    run->range_tombstones()->for_each([&](const RangeTombstone& tombstone) { all_tombstones.push_back(tombstone); });
  }
  const RangeTombstones tombstones(std::move(all_tombstones));
  CompactionDrops drops(values);
  CompactionIterator compaction_iterator(&snapshots, &tombstones, &older, &drops);
  StitchCompaction compaction(inputs, &compaction_iterator, policy, pace, writer);
  VTKV_RETURN_IF_ERROR(compaction.run());
  // What comes behind the entries may take long as well.
  auto tombstones_left = compaction_iterator.tombstones_left();
  VTKV_RETURN_IF_ERROR(older.status());
  if (writer->stitched_bytes() == 0) {
    return writer->finish(std::move(tombstones_left), compacted);
  }
  QuotientFilter filter;
  const double rate = m_options.filter_false_positive_rate;
  uint64_t read_bytes = 0;
  VTKV_RETURN_IF_ERROR(merge_filters(inputs, filter_bits(0), rate, pace, &filter, &read_bytes));
  count_filter_read(read_bytes);
  Paced paced(pace);
  drops.remove_from(&filter, &paced);
  filter.fit(filter_bits(0), [&paced] { return paced.go_on(); });
  VTKV_RETURN_IF_ERROR(paced.status());
  return writer->finish(std::move(tombstones_left), compacted, &filter);
}

Status Tree::compact_claimed(const Claim& claimed, const std::vector<SequenceNumber>& snapshots,
                             const StitchPolicy& policy) {
  const Runs& inputs = claimed.inputs;
  const CompactionPace pace = [&](uint64_t) { return claimed.urgent ? go_on() : give_way(claimed.level); };
  RunWriter writer(m_env, m_reader, compaction_settings(claimed.level, pace));
  std::shared_ptr<const Run> compacted;
  ValueDelta delta;
  VTKV_RETURN_IF_ERROR(compact_into(inputs, claimed.below, snapshots, policy, pace, &delta, &writer, &compacted));
  count_written(writer.written_bytes(), writer.stitched_bytes());
  VTKV_RETURN_IF_ERROR(install_compaction(inputs, compacted ? Runs{compacted} : Runs(), delta));
  count(&TreeStatistics::compactions);
  return {};
}

void Tree::count_written(uint64_t written_bytes, uint64_t stitched_bytes) {
  MutexLock lock(m_lock);
  m_statistics.compaction_bytes += written_bytes;
  m_statistics.stitched_bytes += stitched_bytes;
}

void Tree::count(uint64_t TreeStatistics::* kind) {
  MutexLock lock(m_lock);
  ++(m_statistics.*kind);
}

void Tree::count_filter_read(uint64_t bytes) {
  MutexLock lock(m_lock);
  m_statistics.filter_read_bytes += bytes;
}

// A long compaction must not let small runs pile up: it does their compactions in between. Each is of smaller levels
// than the one it interrupts, so this ends.
Status Tree::give_way(uint32_t level) {
  VTKV_RETURN_IF_ERROR(go_on());
  Claim claimed;
  while (level > 1 && m_snapshot_source && m_options.auto_compaction &&
         claim([&](const Runs& runs,
                   const std::set<uint64_t>& busy) { return choose_compaction(runs, m_shape, busy, level - 1); },
               &claimed)) {
    const Status status = compact(claimed, m_snapshot_source, stitch_policy());
    if (!status.ok() && !is_quarantined(status)) {
      return status;
    }
  }
  return {};
}

// However far compaction has fallen behind, a flush waits for the compaction of a few small neighbours at most.
Status Tree::make_room_in_manifest(const std::vector<SequenceNumber>& snapshots) {
  const size_t limit = m_runs_max - std::min<size_t>(64, m_runs_max / 4);
  for (bool did = true; did && current_runs().size() >= limit;) {
    VTKV_RETURN_IF_ERROR(compact_neighbours(snapshots, &did));
  }
  return {};
}

Status Tree::compact_neighbours(const std::vector<SequenceNumber>& snapshots, bool* did) {
  MutexLock emergency_lock(m_emergency_lock);
  VTKV_RETURN_IF_ERROR(install_unlisted(did));
  if (*did) {
    return {};
  }
  Claim claimed;
  *did = claim(choose_emergency_compaction, &claimed);
  claimed.urgent = true;
  const Status status = *did ? compact(claimed, snapshots, stitch_policy()) : Status();
  return is_quarantined(status) ? Status() : status;  // others may do
}

Status Tree::compact_once(const SnapshotSource& given, bool* did) {
  MutexLock compaction_lock(m_compaction_lock);
  *did = false;
  const SnapshotSource snapshots = listed(given);
  VTKV_RETURN_IF_ERROR(failure());
  VTKV_RETURN_IF_ERROR(m_options.auto_compaction ? install_unlisted(did) : Status());
  if (*did) {
    return {};
  }
  Claim claimed;
  if (!m_options.auto_compaction ||
      !claim([&](const Runs& runs, const std::set<uint64_t>& busy) { return choose_compaction(runs, m_shape, busy); },
             &claimed)) {
    VTKV_RETURN_IF_ERROR(m_options.auto_compaction ? purge_once(snapshots, did) : Status());
    return *did ? Status() : let_go_of_replaced(did);
  }
  VTKV_RETURN_IF_ERROR(compact(claimed, snapshots, stitch_policy()));
  *did = true;
  return {};
}

Status Tree::compact_all(const SnapshotSource& given) {
  MutexLock compaction_lock(m_compaction_lock);
  const SnapshotSource snapshots = listed(given);
  VTKV_RETURN_IF_ERROR(failure());
  Claim claimed;
  {
    MutexLock emergency_lock(m_emergency_lock);
    bool did = false;
    VTKV_RETURN_IF_ERROR(install_unlisted(&did));  // no compaction of everything, but perhaps a part of one
    const bool needed = claim(
        [](const Runs& runs, const std::set<uint64_t>&) {
          const bool settled = runs.empty() || (runs.size() == 1 && runs[0]->descriptor().doubtful() == 0 &&
                                                runs[0]->range_tombstones()->empty());
          return settled ? CompactionChoice()
                         : CompactionChoice{0, runs.size(), std::max<uint32_t>(1, runs.back()->location().level)};
        },
        &claimed);
    if (!needed) {
      return {};
    }
  }
  return compact(claimed, snapshots, stitch_policy());
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
  Runs runs;
  {
    MutexLock lock(m_lock);
    result = m_statistics;
    runs = m_current->runs();
  }
  std::set<uint32_t> levels;
  for (const auto& run : runs) {
    result.live_bytes += run->bytes();
    result.entries += run->entries();
    result.filter_bytes += run->filter().memory_bytes();
    result.range_tombstone_bytes += run->range_tombstones()->memory_bytes();
    result.index_bytes += run->index_bytes();
    result.descriptor_bytes += run->location().span.bytes();
    levels.insert(run->location().level);
  }
  result.runs = static_cast<uint32_t>(runs.size());
  result.levels = static_cast<uint32_t>(levels.size());
  result.debt_bytes = compaction_debt();
  result.file_bytes = m_reader.file().map().allocated_bytes();
  result.zones = result.file_bytes / m_geometry.zone_bytes;
  result.zones_in_use = m_reader.file().map().pinned_bytes() / m_geometry.zone_bytes;
  return result;
}

}  // namespace vtkv
