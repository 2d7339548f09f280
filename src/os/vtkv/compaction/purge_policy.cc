// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/purge_policy.h"

#include <algorithm>

namespace vtkv {

namespace {

using Runs = std::vector<std::shared_ptr<const Run>>;

constexpr uint64_t kEntriesPerTombstoneMax = 7;  // others, in the key range
constexpr uint64_t kFewBytes = 1 << 20;          // so few may be rewritten for any number of tombstones
constexpr uint64_t kEntriesMax = 4 << 20;        // of one key range: bounds its time
constexpr uint64_t kDescriptorBytesPerTombstone = 512;
constexpr uint64_t kFewDescriptorBytes = 64 << 10;  // as kFewBytes

struct Amount {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// Of the slices of `run` that reach into the keys from first (or, `after`, from behind it) to last.
Amount overlapped(const Run& run, std::string_view first, bool after, std::string_view last) {
  const auto& slices = run.descriptor().slices;
  Amount amount;
  auto slice = std::partition_point(slices.begin(), slices.end(), [&](const SpanSlice& before) {
    return after ? before.blocks.last_key <= first : before.blocks.last_key < first;
  });
  for (; slice != slices.end() && slice->blocks.first_key <= last; ++slice) {
    amount.entries += slice->blocks.entries;
    amount.bytes += uint64_t{slice->blocks.units} * kUnitBytes;
  }
  return amount;
}

// A key range in the making.
struct Candidate {
  const BlockRange* first = nullptr;
  const BlockRange* last = nullptr;
  uint64_t tombstones = 0;
  uint64_t entries = 0;  // of all runs

  // False: it is not worth it to go on to there.
  bool extend(const Runs& runs, size_t ordinal, const BlockRange& blocks) {
    Amount others;
    for (size_t i = ordinal + 1; i < runs.size(); ++i) {
      const Amount more = overlapped(*runs[i], first ? last->last_key : blocks.first_key, first, blocks.last_key);
      others.entries += more.entries;
      others.bytes += more.bytes;
    }
    if (others.entries + blocks.entries > blocks.doubtful * (kEntriesPerTombstoneMax + 1) && others.bytes > kFewBytes) {
      return false;
    }
    first = first ? first : &blocks;
    last = &blocks;
    tombstones += blocks.doubtful;
    entries += blocks.entries + others.entries;
    return true;
  }
  KeyRange range() const { return {first->first_key, last->last_key + '\0'}; }
};

bool is_mostly_tombstones(const BlockRange& blocks, SequenceNumber settled) {
  return blocks.doubtful > 0 && 2 * blocks.doubtful >= blocks.entries && blocks.greatest_sequence <= settled;
}

bool is_good(const Candidate& candidate, const Runs& runs, size_t ordinal, uint64_t tombstones_min) {
  if (candidate.tombstones < tombstones_min) {
    return false;
  }
  const KeyRange range = candidate.range();
  uint64_t descriptor_bytes = 0;
  for (auto run = runs.begin() + ordinal; run != runs.end(); ++run) {
    descriptor_bytes += reaches_into(**run, range) ? (*run)->location().span.bytes() : 0;
  }
  if (descriptor_bytes > std::max(kFewDescriptorBytes, candidate.tombstones * kDescriptorBytesPerTombstone)) {
    return false;
  }
  return std::none_of(runs.begin() + ordinal, runs.end(),
                      [&](const auto& run) { return run->range_tombstones()->overlaps(range.begin, *range.end); });
}

}  // namespace

bool reaches_into(const Run& run, const KeyRange& range) {
  const auto& slices = run.descriptor().slices;
  const auto slice = std::partition_point(
      slices.begin(), slices.end(), [&](const SpanSlice& before) { return before.blocks.last_key < range.begin; });
  return slice != slices.end() && (!range.end || slice->blocks.first_key < *range.end);
}

PurgeChoice choose_purge(const Runs& runs, uint64_t tombstones_min, SequenceNumber settled) {
  for (size_t ordinal = 0; ordinal < runs.size(); ++ordinal) {
    if (runs[ordinal]->doubtful() < tombstones_min) {
      continue;
    }
    Candidate candidate;
    const auto found = [&] { return is_good(candidate, runs, ordinal, tombstones_min); };
    const auto choice = [&] { return PurgeChoice{ordinal, runs.size() - ordinal, candidate.range()}; };
    for (const SpanSlice& slice : runs[ordinal]->descriptor().slices) {
      const bool wanted = is_mostly_tombstones(slice.blocks, settled);
      if (wanted && candidate.entries < kEntriesMax && candidate.extend(runs, ordinal, slice.blocks)) {
        continue;
      }
      if (found()) {
        return choice();
      }
      candidate = {};
      if (wanted) {
        (void)candidate.extend(runs, ordinal, slice.blocks);
      }
    }
    if (found()) {
      return choice();
    }
  }
  return {};
}

}  // namespace vtkv
