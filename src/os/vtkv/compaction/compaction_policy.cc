// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_policy.h"

#include <algorithm>

#include "vtkv/compaction/compaction_job.h"

namespace vtkv {

namespace {

constexpr double kUpperShare = 0.40;      // of the last level: garbage that is tolerated
constexpr double kUpperShareStop = 0.50;  // writers wait
constexpr uint64_t kUpperMemtables = 2;   // tolerated, however small the last level is
constexpr double kUrgencyShare = 0.06;    // beyond kUpperShare: as urgent as twice the runs that a level may have
constexpr double kRunsStop = 2;           // times those, in the level that flushes write to: writers wait
constexpr uint64_t kStepBytesMax = 64 << 20;
constexpr uint64_t kStepShare = 8;  // of the last level: so many steps for all of it
constexpr uint64_t kPartsPerStep = 2;
constexpr uint64_t kPartsTolerated = 32;      // of the last level, however small it is
constexpr uint64_t kSmallPartsTolerated = 4;  // for each that would do

bool has_last(const SortedRuns& runs) { return !runs.empty() && runs.back().level == kLastLevel; }
size_t upper_count(const SortedRuns& runs) { return runs.size() - (has_last(runs) ? 1 : 0); }

bool is_before(const std::string& key, const std::optional<std::string>& end) { return !end || key < *end; }

bool overlap(const KeyRange& a, const KeyRange& b) { return is_before(a.begin, b.end) && is_before(b.begin, a.end); }

// Slices of the sorted run that begin in the range; one that reaches in from the front counts when the range begins.
template <typename Visit>
void for_each_slice(const SortedRun& run, const KeyRange& range, const Visit& visit) {
  for (size_t p = run.first_behind(range.begin); p < run.parts.size() && reaches_into(*run.parts[p], range); ++p) {
    const auto& slices = run.parts[p]->descriptor().slices;
    auto slice = std::partition_point(slices.begin(), slices.end(),
                                      [&](const SpanSlice& before) { return before.blocks.last_key < range.begin; });
    for (; slice != slices.end() && is_before(slice->blocks.first_key, range.end); ++slice) {
      visit(slice->blocks);
    }
  }
}

uint64_t bytes_in(const SortedRuns& runs, size_t first, size_t end, const KeyRange& range) {
  uint64_t bytes = 0;
  for (size_t i = first; i < end; ++i) {
    for_each_slice(runs[i], range, [&](const BlockRange& blocks) { bytes += uint64_t{blocks.units} * kUnitBytes; });
  }
  return bytes;
}

// An end of the range in front of which the runs [first, end) hold about `bytes_max`, and at least something of those
// before `upper_end`; its own when they hold no more in all of it.
std::optional<std::string> end_after(const SortedRuns& runs, size_t first, size_t end, size_t upper_end,
                                     const KeyRange& range, uint64_t bytes_max) {
  struct Slice {
    const BlockRange* blocks;
    bool is_upper;
  };
  std::vector<Slice> slices;
  for (size_t i = first; i < end; ++i) {
    for_each_slice(runs[i], range, [&](const BlockRange& blocks) { slices.push_back({&blocks, i < upper_end}); });
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.blocks->first_key < b.blocks->first_key; });
  uint64_t bytes = 0;
  const std::string* first_upper = nullptr;
  for (const Slice& slice : slices) {
    const uint64_t more = uint64_t{slice.blocks->units} * kUnitBytes;
    if (first_upper && bytes + more > bytes_max && slice.blocks->first_key > std::max(*first_upper, range.begin)) {
      return slice.blocks->first_key;
    }
    first_upper = !first_upper && slice.is_upper ? &slice.blocks->first_key : first_upper;
    bytes += more;
  }
  return range.end;
}

uint64_t covered_bytes(const RangeTombstones& tombstones, const SortedRun& last) {
  std::map<const BlockRange*, uint64_t> covered;  // by slice
  tombstones.for_each([&](const RangeTombstone& tombstone) {
    for_each_slice(last, {std::string(tombstone.begin), std::string(tombstone.end)}, [&](const BlockRange& blocks) {
      const uint64_t bytes = uint64_t{blocks.units} * kUnitBytes;
      const bool all = blocks.first_key >= tombstone.begin && blocks.last_key < tombstone.end;
      uint64_t& of_slice = covered[&blocks];
      of_slice = std::max(of_slice, all ? bytes : bytes / 2);
    });
  });
  uint64_t sum = 0;
  for (const auto& [blocks, bytes] : covered) {
    sum += bytes;
  }
  return sum;
}

uint64_t entries_of(const SortedRun& run) {
  uint64_t entries = 0;
  for (const auto& part : run.parts) {
    entries += part->entries();
  }
  return entries;
}

}  // namespace

uint64_t compaction_step_bytes(const SortedRuns& runs, const CompactionShape& shape) {
  const uint64_t last_bytes = has_last(runs) ? runs.back().entry_bytes() : 0;
  return std::clamp<uint64_t>(last_bytes / kStepShare, std::min<uint64_t>(shape.memtable_bytes, kStepBytesMax),
                              kStepBytesMax);
}

// --- weights -----------------------------------------------------------------------------------------------------

// A tombstone is small and stands for an entry that is not.
TreeWeight weigh(const SortedRuns& runs, const CompactionShape& shape) {
  TreeWeight weight;
  uint64_t entry_bytes = 0;
  if (has_last(runs)) {
    weight.last_bytes = runs.back().entry_bytes();
    entry_bytes = weight.last_bytes / std::max<uint64_t>(1, entries_of(runs.back()));
  }
  weight.limit = std::max(static_cast<uint64_t>(kUpperShare * static_cast<double>(weight.last_bytes)),
                          kUpperMemtables * shape.memtable_bytes);
  std::map<uint32_t, uint32_t> levels;
  for (size_t i = 0; i < upper_count(runs); ++i) {
    weight.runs_most = std::max(weight.runs_most, ++levels[runs[i].level]);
    for (const auto& part : runs[i].parts) {
      weight.upper_weight += part->entry_bytes() + part->doubtful() * entry_bytes;
    }
  }
  return weight;
}

double compaction_pressure(const SortedRuns& runs, const CompactionShape& shape) {
  const TreeWeight weight = weigh(runs, shape);
  // Where the limit is a number of memtables, as many again are tolerated.
  const double span = weight.limit > kUpperMemtables * shape.memtable_bytes
                          ? (kUpperShareStop - kUpperShare) / kUpperShare * static_cast<double>(weight.limit)
                          : static_cast<double>(kUpperMemtables * shape.memtable_bytes);
  const double by_space = (static_cast<double>(weight.upper_weight) - static_cast<double>(weight.limit)) / span;
  const auto flushed = std::count_if(runs.begin(), runs.end(), [](const SortedRun& run) { return run.level == 0; });
  const double per_level = std::max<uint32_t>(2, shape.runs_per_level);
  const double by_runs = (static_cast<double>(flushed) - per_level) / ((kRunsStop - 1) * per_level);
  return std::max({0.0, by_space, by_runs});
}

uint64_t compaction_debt(const SortedRuns& runs, const CompactionShape& shape) {
  const TreeWeight weight = weigh(runs, shape);
  uint64_t debt = weight.upper_weight > weight.limit ? weight.upper_weight - weight.limit : 0;
  std::map<uint32_t, std::pair<uint32_t, uint64_t>> levels;
  for (size_t i = 0; i < upper_count(runs); ++i) {
    auto& [count, bytes] = levels[runs[i].level];
    ++count;
    bytes += runs[i].entry_bytes();
  }
  for (const auto& [level, of_level] : levels) {
    debt += of_level.first >= std::max<uint32_t>(2, shape.runs_per_level) ? of_level.second : 0;
  }
  return debt;
}

// A range tombstone stands for the slices of the last level that it covers, and for half of a slice that it covers in
// part. Counted once for each run: the last level changes little while a run is above it.
uint64_t CompactionPolicy::range_weight(const SortedRuns& runs) {
  std::map<uint64_t, uint64_t> weights;
  uint64_t sum = 0;
  for (size_t i = 0; has_last(runs) && i < upper_count(runs); ++i) {
    for (const auto& upper : runs[i].parts) {
      if (upper->range_tombstones()->empty()) {
        continue;
      }
      const uint64_t id = upper->location().run_id;
      const auto known = m_range_weights.find(id);
      sum += weights[id] =
          known != m_range_weights.end() ? known->second : covered_bytes(*upper->range_tombstones(), runs.back());
    }
  }
  m_range_weights = std::move(weights);
  return sum;
}

// Of each part of the last level, what lies above it.
std::vector<uint64_t> CompactionPolicy::weights_above(const SortedRuns& runs) const {
  const Runs& parts = runs.back().parts;
  std::vector<uint64_t> weights(parts.size());
  for (size_t i = 0; i < upper_count(runs); ++i) {
    for_each_slice(runs[i], {}, [&](const BlockRange& blocks) {
      const size_t behind =
          std::partition_point(parts.begin(), parts.end(),
                               [&](const auto& part) { return part->begin_key() <= blocks.first_key; }) -
          parts.begin();
      const size_t part = behind == 0 ? 0 : behind - 1;
      const uint64_t entry_bytes = parts[part]->entry_bytes() / std::max<uint64_t>(1, parts[part]->entries());
      weights[part] += uint64_t{blocks.units} * kUnitBytes + blocks.doubtful * entry_bytes;
    });
    for (const auto& upper : runs[i].parts) {
      if (upper->range_tombstones()->empty()) {
        continue;
      }
      for (size_t p = runs.back().first_behind(upper->begin_key());
           p < parts.size() && parts[p]->begin_key() < upper->end_key(); ++p) {
        if (upper->range_tombstones()->overlaps(parts[p]->begin_key(), parts[p]->end_key())) {
          weights[p] += parts[p]->entry_bytes();
        }
      }
    }
  }
  return weights;
}

// --- the last level ----------------------------------------------------------------------------------------------

CompactionStep CompactionPolicy::into_last_level(const SortedRuns& runs, size_t first, KeyRange range) const {
  return {first,      runs.size() - first, std::move(range),
          kLastLevel, has_last(runs),      compaction_step_bytes(runs, m_shape) / kPartsPerStep};
}

// From `begin` to the part `next`, or as many parts further as the step has room for. Ranges end where parts begin, so
// that parts are replaced as a whole, unless too much lies above one.
CompactionStep CompactionPolicy::last_step(const SortedRuns& runs, std::string begin, size_t next,
                                           uint64_t bytes_max) const {
  const Runs none;
  const Runs& parts = has_last(runs) ? runs.back().parts : none;
  KeyRange range{std::move(begin), {}};
  const auto set_end = [&](size_t part) {
    range.end = part < parts.size() ? std::optional<std::string>(parts[part]->begin_key()) : std::nullopt;
  };
  set_end(next);
  uint64_t bytes = bytes_in(runs, 0, runs.size(), range);
  if (bytes > bytes_max + bytes_max / 4) {
    range.end = end_after(runs, 0, runs.size(), upper_count(runs), range, bytes_max);
    return into_last_level(runs, 0, std::move(range));
  }
  while (next < parts.size()) {
    KeyRange more{parts[next]->begin_key(), {}};
    more.end = next + 1 < parts.size() ? std::optional<std::string>(parts[next + 1]->begin_key()) : std::nullopt;
    bytes += bytes_in(runs, 0, runs.size(), more);
    if (bytes > bytes_max) {
      break;
    }
    set_end(++next);
  }
  return into_last_level(runs, 0, std::move(range));
}

// The keys in front of the first part belong to it, and those between two parts to the one in front.
CompactionStep CompactionPolicy::part_step(const SortedRuns& runs, size_t part, uint64_t bytes_max) const {
  return last_step(runs, part == 0 ? std::string() : runs.back().parts[part]->begin_key(), part + 1, bytes_max);
}

CompactionStep CompactionPolicy::choose_in_turn(const SortedRuns& runs) const {
  const uint64_t bytes_max = compaction_step_bytes(runs, m_shape);
  if (!has_last(runs)) {
    const CompactionStep step = last_step(runs, "", 0, bytes_max);
    return is_blocked(runs, step) ? CompactionStep() : step;
  }
  const Runs& parts = runs.back().parts;
  const std::vector<uint64_t> weights = weights_above(runs);
  const size_t begin =
      std::partition_point(parts.begin(), parts.end(), [&](const auto& part) { return part->begin_key() < m_cursor; }) -
      parts.begin();
  // The step before ended in front of a part: too much lay above.
  if (!m_cursor.empty() && (begin == parts.size() || parts[begin]->begin_key() != m_cursor)) {
    CompactionStep step = last_step(runs, m_cursor, begin, bytes_max);
    if (bytes_in(runs, 0, upper_count(runs), step.range) > 0 && !is_blocked(runs, step)) {
      return step;
    }
  }
  std::optional<CompactionStep> heaviest;
  double most = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t part = (begin + i) % parts.size();
    const double share =
        static_cast<double>(weights[part]) / static_cast<double>(std::max<uint64_t>(1, parts[part]->entry_bytes()));
    const bool is_worth_it = share >= kUpperShare / 2;
    if (!is_worth_it && share <= most) {
      continue;
    }
    CompactionStep step = part_step(runs, part, bytes_max);
    if (is_blocked(runs, step)) {
      continue;
    }
    if (is_worth_it) {
      return step;
    }
    most = share;
    heaviest = std::move(step);
  }
  return heaviest.value_or(CompactionStep());
}

CompactionStep CompactionPolicy::choose_last(const SortedRuns& runs) const {
  CompactionStep step = choose_in_turn(runs);
  step.is_of_turn = true;
  return step;
}

CompactionStep CompactionPolicy::choose_all(const SortedRuns& runs, std::optional<std::string>* cursor) const {
  const uint64_t bytes_max = compaction_step_bytes(runs, m_shape);
  while (*cursor && !runs.empty()) {
    KeyRange rest{**cursor, {}};
    rest.end = end_after(runs, 0, runs.size(), runs.size(), rest, bytes_max);
    // A part is not cut where it can be taken whole.
    if (rest.end && has_last(runs)) {
      const auto* const cut = runs.back().find(*rest.end);
      if (cut && (*cut)->begin_key() > rest.begin) {
        rest.end = (*cut)->begin_key();
      }
    }
    *cursor = rest.end;
    bool any = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      const bool is_last = has_last(runs) && i + 1 == runs.size();
      for (size_t p = runs[i].first_behind(rest.begin);
           p < runs[i].parts.size() && reaches_into(*runs[i].parts[p], rest); ++p) {
        const Run& part = *runs[i].parts[p];
        any = any || !is_last || part.doubtful() > 0 || !part.range_tombstones()->empty();
      }
    }
    if (any) {
      return into_last_level(runs, 0, std::move(rest));
    }
  }
  return {};
}

// --- between the upper levels --------------------------------------------------------------------------------------

// With as many runs per level as the growth factor (tiering), the merged run belongs to the next level. With fewer, it
// stays in its level until it has outgrown it: fewer runs, more writing.
uint32_t CompactionPolicy::level_of_merged(uint64_t bytes, uint32_t level) const {
  if (m_shape.runs_per_level >= m_shape.growth_factor) {
    return level + 1;
  }
  uint64_t limit = m_shape.memtable_bytes;
  for (uint32_t i = 0; i < level && limit < bytes; ++i) {
    limit *= m_shape.growth_factor;
  }
  return bytes <= limit ? level : level + 1;
}

bool CompactionPolicy::is_barrier(uint64_t sorted_run_id) const {
  return std::any_of(m_failed.begin(), m_failed.end(),
                     [&](const Failed& failed) { return failed.waits && failed.sorted_runs.contains(sorted_run_id); });
}

bool CompactionPolicy::begin_merge(const SortedRuns& runs) {
  const size_t runs_min = std::max<uint32_t>(2, m_shape.runs_per_level);
  for (size_t first = 0; first < upper_count(runs);) {
    size_t end = first;
    while (end < upper_count(runs) && runs[end].level == runs[first].level && !is_barrier(runs[end].id)) {
      ++end;
    }
    if (end - first >= runs_min) {
      Merge merge;
      uint64_t bytes = 0;
      for (size_t i = first; i < end; ++i) {
        merge.inputs.insert(runs[i].id);
        bytes += runs[i].entry_bytes();
      }
      merge.level = level_of_merged(bytes, runs[first].level);
      // Levels that hold no more than what comes down join in: the newest one keeps no copy of a small old one.
      while (end < upper_count(runs)) {
        uint64_t next_bytes = 0;
        size_t next = end;
        for (; next < upper_count(runs) && runs[next].level == runs[end].level && !is_barrier(runs[next].id); ++next) {
          next_bytes += runs[next].entry_bytes();
        }
        if (next == end || next_bytes > bytes) {
          break;
        }
        for (; end < next; ++end) {
          merge.inputs.insert(runs[end].id);
          merge.level = std::max(merge.level, runs[end].level);
        }
        bytes += next_bytes;
      }
      merge.level = std::min(merge.level, kLastLevel - 1);
      m_merge = std::move(merge);
      return true;
    }
    first = std::max(end, first + 1);
  }
  return false;
}

CompactionStep CompactionPolicy::next_of_merge(const SortedRuns& runs) {
  size_t first = runs.size(), end = 0;
  bool has_result = false;
  for (size_t i = 0; i < upper_count(runs); ++i) {
    const bool is_result = m_merge->result == runs[i].id;
    if (m_merge->inputs.contains(runs[i].id) || (is_result && first < i)) {
      first = std::min(first, i);
      end = i + 1;
      has_result = has_result || is_result;
    }
  }
  KeyRange range{m_merge->cursor, {}};
  const size_t inputs_end = end - (has_result ? 1 : 0);
  if (first >= inputs_end || bytes_in(runs, first, inputs_end, range) == 0) {
    bool any = false;  // range tombstones alone
    for (size_t i = first; i < inputs_end; ++i) {
      any = any || runs[i].first_behind(range.begin) < runs[i].parts.size();
    }
    if (!any) {
      return {};
    }
  }
  const uint64_t bytes_max = compaction_step_bytes(runs, m_shape);
  range.end = end_after(runs, first, inputs_end, inputs_end, range, bytes_max);
  return {first, end - first, std::move(range), m_merge->level, has_result, bytes_max / kPartsPerStep};
}

CompactionStep CompactionPolicy::choose_merge(const SortedRuns& runs) {
  if (m_merge) {
    CompactionStep step = next_of_merge(runs);
    if (step.count > 0 && !is_blocked(runs, step)) {
      return step;
    }
    m_merge.reset();
  }
  return begin_merge(runs) ? next_of_merge(runs) : CompactionStep();
}

// The two neighbours that have the fewest bytes.
bool CompactionPolicy::begin_merge_for_room(const SortedRuns& runs) {
  std::optional<size_t> best;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i + 1 < upper_count(runs); ++i) {
    const uint64_t bytes = runs[i].entry_bytes() + runs[i + 1].entry_bytes();
    if (bytes < least && !is_barrier(runs[i].id) && !is_barrier(runs[i + 1].id)) {
      best = i;
      least = bytes;
    }
  }
  if (best) {
    m_merge = Merge{{runs[*best].id, runs[*best + 1].id}, {}, runs[*best + 1].level, {}};
  }
  return best.has_value();
}

CompactionStep CompactionPolicy::choose_for_room(const SortedRuns& runs) {
  if (compaction_pressure(runs, m_shape) >= 1) {
    return choose(runs);
  }
  CompactionStep step = m_merge ? next_of_merge(runs) : CompactionStep();
  if (step.count == 0 && begin_merge_for_room(runs)) {
    step = next_of_merge(runs);
  }
  if (step.count == 0 || is_blocked(runs, step)) {
    step = choose_small_parts(runs);
    return step.count == 0 ? choose(runs) : step;
  }
  step.merges_all = true;
  step.part_bytes = compaction_step_bytes(runs, m_shape);
  return step;
}

// What has failed is tried again when its time has come, whatever else is due: only so is it known to be readable.
CompactionStep CompactionPolicy::choose_retry(const SortedRuns& runs) const {
  const auto due = std::find_if(m_failed.begin(), m_failed.end(), [](const Failed& failed) { return !failed.waits; });
  return due == m_failed.end() || runs.empty() ? CompactionStep() : into_last_level(runs, 0, due->range);
}

CompactionStep CompactionPolicy::choose(const SortedRuns& runs) {
  if (CompactionStep retry = choose_retry(runs); retry.count > 0) {
    return retry;
  }
  TreeWeight weight = weigh(runs, m_shape);
  weight.upper_weight += range_weight(runs);
  const double space = (static_cast<double>(weight.upper_weight) / static_cast<double>(weight.limit) - 1) /
                       (kUrgencyShare / kUpperShare);
  const double per_level = std::max<uint32_t>(2, m_shape.runs_per_level);
  const double count = std::max(m_merge ? 0.0 : -1.0, weight.runs_most / per_level - 1);
  const auto last = [&] { return space >= 0 ? choose_last(runs) : CompactionStep(); };
  CompactionStep step = space >= count ? last() : choose_merge(runs);
  if (step.count == 0) {
    step = space >= count ? choose_merge(runs) : last();
  }
  return step.count == 0 ? choose_small_parts(runs) : step;
}

// Purges cut parts. When there are many, a small one goes together with its neighbours: the manifest lists each.
CompactionStep CompactionPolicy::choose_small_parts(const SortedRuns& runs) const {
  if (!has_last(runs)) {
    return {};
  }
  const Runs& parts = runs.back().parts;
  const uint64_t bytes = runs.back().entry_bytes();
  const uint64_t bytes_max = compaction_step_bytes(runs, m_shape);
  if (parts.size() <= kPartsTolerated + kSmallPartsTolerated * kPartsPerStep * bytes / bytes_max) {
    return {};
  }
  std::optional<size_t> best;
  uint64_t least = bytes_max + 1;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const uint64_t first = parts[i]->entry_bytes(), second = parts[i + 1]->entry_bytes();
    if (is_small_part(std::min(first, second), bytes_max / kPartsPerStep) && first + second < least) {
      best = i;
      least = first + second;
    }
  }
  if (!best) {
    return {};
  }
  CompactionStep step = part_step(runs, *best, bytes_max);
  step.merges_all = true;
  step.part_bytes = bytes_max;
  const bool has_both = !step.range.end || *step.range.end >= parts[*best + 1]->end_key();
  return !has_both || is_blocked(runs, step) ? CompactionStep() : step;
}

// --- what became of them -------------------------------------------------------------------------------------------

bool CompactionPolicy::is_blocked(const SortedRuns& runs, const CompactionStep& step) const {
  return std::any_of(m_failed.begin(), m_failed.end(), [&](const Failed& failed) {
    return failed.waits && overlap(failed.range, step.range) &&
           std::any_of(runs.begin() + static_cast<ptrdiff_t>(step.first),
                       runs.begin() + static_cast<ptrdiff_t>(step.first + step.count),
                       [&](const SortedRun& run) { return failed.sorted_runs.contains(run.id); });
  });
}

void CompactionPolicy::succeeded(const SortedRuns& runs, const CompactionStep& step, std::optional<uint64_t> created) {
  std::set<uint64_t> ids;
  for (size_t i = step.first; i < step.first + step.count; ++i) {
    ids.insert(runs[i].id);
  }
  std::erase_if(m_failed, [&](const Failed& failed) {
    return overlap(failed.range, step.range) &&
           std::any_of(ids.begin(), ids.end(), [&](uint64_t id) { return failed.sorted_runs.contains(id); });
  });
  if (step.is_of_turn) {
    m_cursor = step.range.end.value_or("");
  }
  if (step.level == kLastLevel) {
    return;
  }
  if (m_merge && step.range.end) {
    m_merge->cursor = *step.range.end;
    m_merge->result = created ? created : m_merge->result;
  } else {
    m_merge.reset();
  }
}

void CompactionPolicy::failed(const SortedRuns& runs, const CompactionStep& step) {
  Failed failed{step.range, {}, true};
  for (size_t i = step.first; i < step.first + step.count; ++i) {
    failed.sorted_runs.insert(runs[i].id);
  }
  std::erase_if(m_failed, [&](const Failed& other) {
    return other.range == failed.range || (!other.waits && overlap(other.range, failed.range));
  });
  m_failed.push_back(std::move(failed));
  if (step.level != kLastLevel) {
    m_merge.reset();
  }
}

void CompactionPolicy::retry_failed() {
  for (Failed& failed : m_failed) {
    failed.waits = false;
  }
}

bool CompactionPolicy::any_waits() const {
  return std::any_of(m_failed.begin(), m_failed.end(), [](const Failed& failed) { return failed.waits; });
}

void CompactionPolicy::forget_missing(const SortedRuns& runs) {
  std::erase_if(m_failed, [&](const Failed& failed) {
    return std::none_of(runs.begin(), runs.end(),
                        [&](const SortedRun& run) { return failed.sorted_runs.contains(run.id); });
  });
}

}  // namespace vtkv
