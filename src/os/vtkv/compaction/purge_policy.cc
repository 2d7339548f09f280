// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/purge_policy.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr uint64_t kEntriesPerTombstoneMax = 7;  // others, in the key range
constexpr uint64_t kFewBytes = 1 << 20;          // so few may be rewritten for any number of tombstones
constexpr uint64_t kEntriesMax = 4 << 20;        // of one key range: bounds its time
constexpr uint64_t kDescriptorBytesPerTombstone = 512;
constexpr uint64_t kFewDescriptorBytes = 64 << 10;  // as kFewBytes

struct Amount {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// Adds the slices of `part` that reach into the keys from first (or, `after`, from behind it) to last.
void add_overlapped(const Run& part, std::string_view first, bool after, std::string_view last, Amount* amount) {
  const auto& slices = part.descriptor().slices;
  auto slice = std::partition_point(slices.begin(), slices.end(), [&](const SpanSlice& before) {
    return after ? before.blocks.last_key <= first : before.blocks.last_key < first;
  });
  for (; slice != slices.end() && slice->blocks.first_key <= last; ++slice) {
    amount->entries += slice->blocks.entries;
    amount->bytes += uint64_t{slice->blocks.units} * kUnitBytes;
  }
}

Amount overlapped(const SortedRun& run, std::string_view first, bool after, std::string_view last) {
  Amount amount;
  for (size_t p = run.first_behind(first); p < run.parts.size() && run.parts[p]->begin_key() <= last; ++p) {
    add_overlapped(*run.parts[p], first, after, last, &amount);
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
  bool extend(const SortedRuns& runs, size_t ordinal, const BlockRange& blocks) {
    Amount others;
    for (size_t i = ordinal + 1; i < runs.size(); ++i) {
      const Amount more = overlapped(runs[i], first ? last->last_key : blocks.first_key, first, blocks.last_key);
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

bool is_good(const Candidate& candidate, const SortedRuns& runs, size_t ordinal, uint64_t tombstones_min) {
  if (candidate.tombstones < tombstones_min) {
    return false;
  }
  const KeyRange range = candidate.range();
  uint64_t descriptor_bytes = 0;
  bool any_range_tombstone = false;
  for (size_t i = ordinal; i < runs.size(); ++i) {
    const Runs& parts = runs[i].parts;
    for (size_t p = runs[i].first_behind(range.begin); p < parts.size() && parts[p]->begin_key() < *range.end; ++p) {
      descriptor_bytes += parts[p]->location().span.bytes();
      any_range_tombstone = any_range_tombstone || parts[p]->range_tombstones()->overlaps(range.begin, *range.end);
    }
  }
  return !any_range_tombstone &&
         descriptor_bytes <= std::max(kFewDescriptorBytes, candidate.tombstones * kDescriptorBytesPerTombstone);
}

uint64_t doubtful_of(const SortedRun& run) {
  uint64_t doubtful = 0;
  for (const auto& part : run.parts) {
    doubtful += part->doubtful();
  }
  return doubtful;
}

}  // namespace

PurgeChoice choose_purge(const SortedRuns& runs, uint64_t tombstones_min, SequenceNumber settled) {
  for (size_t ordinal = 0; ordinal < runs.size(); ++ordinal) {
    if (doubtful_of(runs[ordinal]) < tombstones_min) {
      continue;
    }
    Candidate candidate;
    const auto found = [&] { return is_good(candidate, runs, ordinal, tombstones_min); };
    const auto choice = [&] { return PurgeChoice{true, ordinal, candidate.range()}; };
    for (const auto& part : runs[ordinal].parts) {
      for (const SpanSlice& slice : part->descriptor().slices) {
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
    }
    if (found()) {
      return choice();
    }
  }
  return {};
}

}  // namespace vtkv
