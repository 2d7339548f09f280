#include "vtkv/tree/tree_impl.h"

#include <algorithm>
#include <set>

#include "vtkv/tree/run_merge.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
// Blocks read to find out whether range removals can be dropped: up to a few hundred milliseconds on a
// slow device for a flush, which others wait for; a small part of a merge.
constexpr uint32_t kFlushRangeReadsMax = 500;
constexpr uint32_t kMergeRangeReadsMax = 100'000;

// The runs below a flush, and the memtable that is flushed.
class BelowFlush final : public Reducer::Older {
 public:
  BelowFlush(std::vector<std::shared_ptr<const Run>> runs, const MemTable& memtable)
      : m_runs(std::move(runs), kFlushRangeReadsMax), m_memtable(memtable) {}
  bool may_hold(std::string_view key) const override { return m_runs.may_hold(key); }
  bool may_hold_any(std::string_view begin, std::string_view end) const override {
    return m_runs.may_hold_any(begin, end);
  }
  bool may_show(std::string_view key, SequenceNumber snapshot) const override {
    std::string value;
    const Lookup found = m_memtable.get(key, snapshot, &value);
    return found == Lookup::found || found == Lookup::pointer;
  }

 private:
  const OlderRuns m_runs;
  const MemTable& m_memtable;
};

std::string zone_path(const std::string& directory) { return directory + "/tree"; }
}  // namespace

Status Tree::create(Env* env, const std::string& directory, const Geometry& geometry, const Uuid& uuid,
                    const LogPosition& start) {
  VTKV_RETURN_IF_ERROR(check_geometry(geometry));
  VTKV_RETURN_IF_ERROR(ZoneFile::create(env, zone_path(directory)));
  // The manifest's name says that the rest is there: the rest comes first.
  VTKV_RETURN_IF_ERROR(env->sync_directory(directory));
  Checkpoint first;
  first.epoch = 1;
  first.uuid = uuid;
  first.geometry = geometry;
  first.position = start;
  return Manifest::create(env, directory, first);
}

Status Tree::open(Env* env, const std::string& directory, const Options& options, std::unique_ptr<Tree>* tree) {
  std::unique_ptr<Manifest> manifest;
  Checkpoint newest, older;
  VTKV_RETURN_IF_ERROR(Manifest::open(env, directory, &manifest, &newest, &older));
  const std::string path = zone_path(directory);
  if (!env->exists(path)) {
    return Status::corruption(path + " is missing, although " + manifest->path() +
                              " exists: restore the database, or give it up and make a new one");
  }
  std::shared_ptr<ZoneFile> zones;
  VTKV_RETURN_IF_ERROR(ZoneFile::open(env, path, newest.geometry.zone_bytes, &zones));
  auto opened =
      std::make_unique<TreeImpl>(env, options, std::move(manifest), std::move(zones), std::move(newest));
  VTKV_RETURN_IF_ERROR(opened->load(older));
  *tree = std::move(opened);
  return {};
}

TreeImpl::TreeImpl(Env* env, const Options& options, std::unique_ptr<Manifest> manifest,
                   std::shared_ptr<ZoneFile> zones, Checkpoint newest)
    : m_env(env),
      m_options(options),
      m_geometry(newest.geometry),
      m_uuid(newest.uuid),
      m_cache(std::make_shared<BlockCache>(options.block_cache_bytes)),
      m_reader(std::move(zones), m_cache),
      m_next_run_id(newest.next_run_id),
      m_manifest(std::move(manifest)),
      m_checkpoint(std::move(newest)) {}

Status TreeImpl::open_runs(const std::vector<RunLocation>& locations, const Runs& known, Runs* runs) const {
  for (const RunLocation& location : locations) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& run) { return run->location().run_id == location.run_id; });
    if (found != known.end()) {
      runs->push_back(*found);
      continue;
    }
    std::shared_ptr<const Run> run;
    VTKV_RETURN_IF_ERROR(Run::open(m_reader, location, &run));
    runs->push_back(std::move(run));
  }
  return {};
}

Status TreeImpl::load(const Checkpoint& older) {
  Runs runs;
  VTKV_RETURN_IF_ERROR(open_runs(m_checkpoint.runs, {}, &runs));
  m_epoch = m_checkpoint.epoch;
  m_slots[m_epoch % 2] = {m_epoch, m_checkpoint.position, runs, m_checkpoint.segments};
  m_current = std::make_shared<RunVersion>(runs);
  if (older.epoch > 0) {
    Slot slot{older.epoch, older.position, {}, older.segments};
    // Its runs are needed only should the newest slot be lost: if they cannot be read, it is no help.
    if (open_runs(older.runs, runs, &slot.runs).ok()) {
      m_slots[older.epoch % 2] = std::move(slot);
    }
  }
  return {};
}

LogPosition TreeImpl::newest_log_position() const {
  std::lock_guard lock(m_lock);
  return m_slots[m_epoch % 2].position;
}

LogPosition TreeImpl::oldest_log_position() const {
  std::lock_guard lock(m_lock);
  const Slot& older = m_slots[(m_epoch + 1) % 2];
  return older.epoch > 0 ? older.position : m_slots[m_epoch % 2].position;
}

std::shared_ptr<const Version> TreeImpl::current() const {
  std::lock_guard lock(m_lock);
  return m_current;
}

TreeImpl::Runs TreeImpl::current_runs() const {
  std::lock_guard lock(m_lock);
  return m_current->runs();
}

Status TreeImpl::failure() const {
  std::lock_guard lock(m_lock);
  return m_failure;
}

Status TreeImpl::fail(Status status) {
  std::lock_guard lock(m_lock);
  if (m_failure.ok()) {
    m_failure = status;
  }
  return status;
}

Status TreeImpl::sync_zones() {
  Status status = m_reader.file().sync();
  return status.ok() ? status : fail(std::move(status));
}

Status TreeImpl::install(const std::function<void(Runs*)>& edit, const LogPosition* position,
                         const std::function<void(Segments*)>& edit_segments) {
  std::lock_guard checkpoint_lock(m_checkpoint_lock);
  VTKV_RETURN_IF_ERROR(failure());
  Runs runs = current_runs();
  edit(&runs);
  Checkpoint next = m_checkpoint;
  ++next.epoch;
  next.next_run_id = m_next_run_id.load();
  if (position) {
    VTKV_ASSERT(position->sequence >= next.position.sequence);
    next.position = *position;
  }
  next.runs.clear();
  for (const auto& run : runs) {
    next.runs.push_back(run->location());
  }
  edit_segments(&next.segments);
  if (next.encode().size() > m_manifest->bytes_max()) {
    return Status::make(Status::Code::no_space,
                        m_manifest->path() + ": " + std::to_string(next.segments.size()) +
                            " log segments with values are more than it can list; make the database again "
                            "with larger log segments");
  }
  if (Status status = m_manifest->write(next); !status.ok()) {
    return fail(std::move(status));
  }
  m_checkpoint = std::move(next);
  // What the overwritten slot alone still named becomes free here, outside the lock.
  Slot overwritten{m_checkpoint.epoch, m_checkpoint.position, runs, m_checkpoint.segments};
  auto version = std::make_shared<const RunVersion>(std::move(runs));
  std::lock_guard lock(m_lock);
  m_epoch = m_checkpoint.epoch;
  std::swap(m_slots[m_epoch % 2], overwritten);
  std::swap(m_current, version);
  return {};
}

std::vector<SegmentValues> TreeImpl::value_segments() const {
  std::lock_guard lock(m_lock);
  return m_slots[m_epoch % 2].segments;
}

std::set<uint64_t> TreeImpl::listed_epochs() const {
  std::set<uint64_t> epochs;
  std::lock_guard lock(m_lock);
  for (const Slot& slot : m_slots) {
    for (const SegmentValues& values : slot.segments) {
      epochs.insert(values.epoch);
    }
  }
  return epochs;
}

Status TreeImpl::forget_segments(const std::set<uint64_t>& epochs) {
  for (int slot = 0; slot < 2; ++slot) {
    VTKV_RETURN_IF_ERROR(install([](Runs*) {}, nullptr, [&](Segments* segments) {
      std::erase_if(*segments, [&](const SegmentValues& values) { return epochs.contains(values.epoch); });
    }));
  }
  return {};
}

int TreeImpl::filter_bits(uint64_t new_entries) const {
  uint64_t entries = new_entries;
  for (const auto& run : current_runs()) {
    entries += run->descriptor().entries;
  }
  return QuotientFilter::fingerprint_bits(entries, m_options.filter_false_positive_rate);
}

Status TreeImpl::write_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots,
                           ValueDelta* delta, std::shared_ptr<const Run>* run) {
  const BelowFlush older(current_runs(), memtable);
  RunWriter::Settings settings;
  settings.run_id = m_next_run_id.fetch_add(1);
  settings.block_bytes = m_geometry.block_bytes;
  settings.stream = ZoneStream::flush;
  settings.filter_bits = filter_bits(memtable.entries());
  RunWriter writer(m_env, m_reader, settings);
  Reducer reducer(&snapshots, &memtable.range_removals(), &older);
  const auto iterator = memtable.new_flush_iterator();
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    const Entry& entry = iterator->entry();
    if (reducer.keep(entry)) {
      VTKV_RETURN_IF_ERROR(writer.add(entry));
      ValuePointer pointer;
      if (entry.type == EntryType::value_pointer && pointer.decode(entry.value)) {
        delta->created(pointer);
      }
    }
  }
  auto removals =
      m_options.mutations.lose_range_deletes ? std::make_shared<RangeRemovals>() : reducer.reduced_removals();
  return writer.finish(std::move(removals), run);
}

Status TreeImpl::flush(const MemTable& memtable, const LogPosition& position,
                       const std::vector<SequenceNumber>& snapshots) {
  std::lock_guard flush_lock(m_flush_lock);
  VTKV_RETURN_IF_ERROR(failure());
  if (current_runs().size() >= m_manifest->runs_max()) {
    VTKV_RETURN_IF_ERROR(merge_all(snapshots));  // merging has fallen behind so far that the manifest is full
  }
  std::shared_ptr<const Run> run;
  ValueDelta delta;
  if (!memtable.empty()) {
    VTKV_RETURN_IF_ERROR(write_run(memtable, snapshots, &delta, &run));
  }
  if (run) {
    VTKV_RETURN_IF_ERROR(sync_zones());
  }
  VTKV_RETURN_IF_ERROR(install(
      [&](Runs* runs) {
        if (run) {
          runs->insert(runs->begin(), run);
        }
      },
      &position, [&](Segments* segments) { delta.apply(segments); }));
  m_reader.file().give_back_surplus();
  std::lock_guard lock(m_lock);
  ++m_statistics.flushes;
  m_statistics.flush_bytes += run ? run->descriptor().bytes() : 0;
  return {};
}

Status TreeImpl::merge(const MergeChoice& choice, const Runs& runs, const std::vector<SequenceNumber>& snapshots) {
  const Runs inputs(runs.begin() + choice.first, runs.begin() + choice.first + choice.count);
  const OlderRuns older(Runs(runs.begin() + choice.first + choice.count, runs.end()),
                        kMergeRangeReadsMax);
  RunWriter::Settings settings;
  settings.run_id = m_next_run_id.fetch_add(1);
  settings.level = choice.level;
  settings.block_bytes = m_geometry.block_bytes;
  settings.stream = ZoneStream::merge;
  settings.filter_bits = filter_bits(0);
  RunWriter writer(m_env, m_reader, settings);
  std::shared_ptr<const Run> merged;
  ValueDelta delta;
  VTKV_RETURN_IF_ERROR(merge_runs(inputs, older, snapshots, m_stop, &delta, &writer, &merged));
  if (merged) {
    VTKV_RETURN_IF_ERROR(sync_zones());
  }
  VTKV_RETURN_IF_ERROR(install(
      [&](Runs* current) {
        // Flushes may have put new runs in front meanwhile; nobody else takes any away.
        auto place = std::search(current->begin(), current->end(), inputs.begin(), inputs.end());
        VTKV_ASSERT(place != current->end());
        place = current->erase(place, place + inputs.size());
        if (merged) {
          current->insert(place, merged);
        }
      },
      nullptr, [&](Segments* segments) { delta.apply(segments); }));
  m_reader.file().give_back_surplus();
  std::lock_guard lock(m_lock);
  ++m_statistics.merges;
  m_statistics.merge_bytes += merged ? merged->descriptor().bytes() : 0;
  return {};
}

Status TreeImpl::merge_once(const std::vector<SequenceNumber>& snapshots, bool* did) {
  std::lock_guard merge_lock(m_merge_lock);
  *did = false;
  VTKV_RETURN_IF_ERROR(failure());
  const Runs runs = current_runs();
  const MergeChoice choice = choose_merge(runs, m_options.growth_factor);
  if (choice.count == 0) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(merge(choice, runs, snapshots));
  *did = true;
  return {};
}

Status TreeImpl::merge_all(const std::vector<SequenceNumber>& snapshots) {
  std::lock_guard merge_lock(m_merge_lock);
  VTKV_RETURN_IF_ERROR(failure());
  const Runs runs = current_runs();
  const bool needed = runs.size() > 1 || (runs.size() == 1 && (runs[0]->descriptor().removals > 0 ||
                                                               !runs[0]->range_removals()->empty()));
  if (!needed) {
    return {};
  }
  return merge({0, runs.size(), std::max<uint32_t>(1, runs.back()->location().level)}, runs, snapshots);
}

Status TreeImpl::verify(std::vector<std::string>* findings) {
  {
    std::lock_guard checkpoint_lock(m_checkpoint_lock);
    m_manifest->verify(m_checkpoint, findings);
  }
  for (const auto& run : current_runs()) {
    run->verify(findings);
  }
  return {};
}

TreeStatistics TreeImpl::statistics() const {
  std::lock_guard lock(m_lock);
  TreeStatistics result = m_statistics;
  std::set<uint32_t> levels;
  for (const auto& run : m_current->runs()) {
    result.live_bytes += run->descriptor().bytes() + run->location().span.bytes();
    result.entries += run->descriptor().entries;
    result.filter_bytes += run->filter().memory_bytes();
    levels.insert(run->location().level);
  }
  result.runs = static_cast<uint32_t>(m_current->runs().size());
  result.levels = static_cast<uint32_t>(levels.size());
  result.file_bytes = m_reader.file().map().file_bytes();
  result.cache_bytes = m_cache->bytes();
  result.cache_hits = m_cache->hits();
  result.cache_misses = m_cache->misses();
  return result;
}

}  // namespace vtkv
