// SPDX-License-Identifier: LGPL-2.1-or-later
// Which zones the tree uses, and how they become free.
#include <algorithm>

#include "vtkv/background_error.h"
#include "vtkv/compaction/stitch_compaction.h"
#include "vtkv/tree/tree.h"

namespace vtkv {

namespace {
constexpr uint64_t kMovedShare = 8;  // at least, for each byte of a descriptor
}  // namespace

std::vector<ZoneUsage> Tree::zone_usage() const {
  const uint64_t zone_bytes = m_geometry.zone_bytes;
  const std::vector<bool> pinned = m_reader.file().map().pinned();
  std::vector<ZoneUsage> zones(pinned.size());
  for (size_t i = 0; i < zones.size(); ++i) {
    zones[i].in_use = pinned[i];
  }
  for (const uint64_t zone : m_reader.file().map().open_zones()) {
    if (zone < zones.size()) {
      zones[zone].open = true;
    }
  }
  for (const auto& run : current_runs()) {
    run->for_each_extent([&](uint64_t offset, uint64_t bytes, uint64_t entries) {
      for (uint64_t zone = offset / zone_bytes; zone * zone_bytes < offset + bytes && zone < zones.size(); ++zone) {
        const uint64_t begin = std::max(offset, zone * zone_bytes);
        const uint64_t end = std::min(offset + bytes, (zone + 1) * zone_bytes);
        zones[zone].live_bytes += end - begin;
        zones[zone].entries += entries * (end - begin) / bytes;
        ++zones[zone].fragments;
      }
    });
  }
  return zones;
}

// Filter and range tombstones stay unless they lie there as well.
Status Tree::move_part(const std::shared_ptr<const Run>& part, const std::vector<SequenceNumber>& snapshots,
                       const StitchPolicy& policy, Moved* moved) {
  RunWriter::Settings settings = writer_settings(0);
  settings.run_id = m_next_run_id.fetch_add(1);
  settings.level = part->location().level;
  settings.stream = settings.level == kLastLevel ? ZoneStream::last : ZoneStream::tier;
  RunWriter writer(m_env, m_reader, settings);
  const RangeTombstones none;
  const CompactionIterator::AnythingOlder anything;
  ValueDelta delta;
  CompactionIterator compaction_iterator(&snapshots, &none, &anything, &delta);
  VTKV_RETURN_IF_ERROR(StitchCompaction({part}, &compaction_iterator, policy, settings.pace, &writer).run());
  std::shared_ptr<const Run> left;
  VTKV_RETURN_IF_ERROR(writer.finish_as(*part, policy.must_move, nullptr, &left));
  count_written(writer.written_bytes(), writer.stitched_bytes());
  *moved = {true, writer.copied_bytes(), writer.written_bytes()};
  TreeEdit edit;
  edit.removed = {part};
  for (const SortedRun& sorted_run : current_sorted_runs()) {
    if (left && std::find(sorted_run.parts.begin(), sorted_run.parts.end(), part) != sorted_run.parts.end()) {
      edit.added = {{sorted_run.id, left}};
    }
  }
  VTKV_RETURN_IF_ERROR(install_edit(edit, delta));
  count(&TreeStatistics::compactions);
  return {};
}

Status Tree::move_out_of(const std::set<uint64_t>& zones, uint64_t bytes_max, const SnapshotSource& given,
                         Moved* moved) {
  MutexLock compaction_lock(m_compaction_lock);
  *moved = {};
  const SnapshotSource snapshots = listed(given);
  VTKV_RETURN_IF_ERROR(failure());
  StitchPolicy policy;
  policy.bytes_min = 0;
  policy.drops_tombstones = false;
  policy.must_move = [&](uint64_t offset, uint64_t bytes) {
    const auto first = zones.lower_bound(offset / m_geometry.zone_bytes);
    return first != zones.end() && *first * m_geometry.zone_bytes < offset + bytes;
  };
  const Runs parts = current_runs();
  const auto found = std::find_if(parts.rbegin(), parts.rend(), [&](const auto& part) {
    bool reaches_in = false;
    part->for_each_extent(
        [&](uint64_t offset, uint64_t bytes, uint64_t) { reaches_in = reaches_in || policy.must_move(offset, bytes); });
    return reaches_in;
  });
  if (found == parts.rend()) {
    return {};
  }
  // Nothing new shall be written there meanwhile.
  ZoneFile::Pins pins(m_reader.shared_file());
  for (const uint64_t zone : zones) {
    pins.add(zone * m_geometry.zone_bytes, m_geometry.zone_bytes);
  }
  m_reader.file().map().drop_tails(zones);
  policy.moved_max = std::max(bytes_max, kMovedShare * (*found)->location().span.bytes());
  Status status = move_part(*found, snapshots(), policy, moved);
  (void)spare_space_after(status);
  return status;
}

Status Tree::give_back_zones() {
  VTKV_RETURN_IF_ERROR(forget_segments({}));  // none: writes both copies
  m_reader.file().give_back_surplus(true);
  return {};
}

Status Tree::let_go_of_more_than(double part, bool* did) {
  Runs replaced, runs;
  {
    MutexLock lock(m_lock);
    replaced = m_copies[(m_epoch + 1) % 2].runs;
    runs = m_current->runs();
  }
  std::erase_if(replaced, [&](const auto& run) { return std::find(runs.begin(), runs.end(), run) != runs.end(); });
  const auto bytes_of = [](const Runs& all) {
    uint64_t bytes = 0;
    for (const auto& run : all) {
      bytes += run->bytes();
    }
    return static_cast<double>(bytes);
  };
  if (replaced.empty() || bytes_of(replaced) <= part * bytes_of(runs)) {
    return {};
  }
  replaced.clear();
  VTKV_RETURN_IF_ERROR(install([](SortedRuns*) {}, nullptr, [](Segments*) {}));
  *did = true;
  return {};
}

// Every compaction leaves what it replaced to the older copy, up to the size of the tree. With no compaction to come,
// one more checkpoint lets go of it, when it is worth that.
Status Tree::let_go_of_replaced(bool* did) {
  constexpr double kWorthOf = 0.125;
  VTKV_RETURN_IF_ERROR(let_go_of_more_than(m_host_is_short.load() ? 0 : kWorthOf, did));
  m_reader.file().give_back_surplus();  // readers may have let go of zones since
  if (!*did) {
    m_host_is_short = false;
  }
  return {};
}

Status Tree::let_go_while_short(bool* did) {
  *did = false;
  return m_host_is_short.load() ? let_go_of_more_than(0, did) : Status();
}

bool Tree::spare_space_after(const Status& status) {
  bool did = false;
  if (status.is_no_space() && !is_list_full(status)) {
    m_host_is_short = true;
    // failure() tells of an error that is final; after any other one the runs stay until the next attempt.
    (void)let_go_of_more_than(0, &did).ok();
    m_reader.file().give_back_surplus(/*all=*/true);
  }
  return did;
}

}  // namespace vtkv
