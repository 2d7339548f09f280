#include "vtkv/tree/purge_policy.h"

#include <algorithm>

namespace vtkv {

namespace {

using Runs = std::vector<std::shared_ptr<const Run>>;

constexpr uint64_t kEntriesPerRemovalMax = 7;  // others, in the stretch
constexpr uint64_t kFewBytes = 1 << 20;        // so few may be rewritten for any number of removals
constexpr uint64_t kEntriesMax = 4 << 20;      // of one stretch: bounds its time
constexpr uint64_t kDescriptorBytesPerRemoval = 512;
constexpr uint64_t kFewDescriptorBytes = 64 << 10;  // as kFewBytes

struct Amount {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// Of the parts of `run` that reach into the keys from first (or, `after`, from behind it) to last.
Amount overlapped(const Run& run, std::string_view first, bool after, std::string_view last) {
  const auto& parts = run.descriptor().parts;
  Amount amount;
  auto part = std::partition_point(parts.begin(), parts.end(), [&](const SpanPart& before) {
    return after ? before.blocks.last_key <= first : before.blocks.last_key < first;
  });
  for (; part != parts.end() && part->blocks.first_key <= last; ++part) {
    amount.entries += part->blocks.entries;
    amount.bytes += uint64_t{part->blocks.units} * kUnitBytes;
  }
  return amount;
}

// A stretch in the making.
struct Candidate {
  const BlockRange* first = nullptr;
  const BlockRange* last = nullptr;
  uint64_t removals = 0;
  uint64_t entries = 0;  // of all runs

  // False: it is not worth it to go on to there.
  bool extend(const Runs& runs, size_t ordinal, const BlockRange& blocks) {
    Amount others;
    for (size_t i = ordinal + 1; i < runs.size(); ++i) {
      const Amount more = overlapped(*runs[i], first ? last->last_key : blocks.first_key, first, blocks.last_key);
      others.entries += more.entries;
      others.bytes += more.bytes;
    }
    if (others.entries + blocks.entries > blocks.doubtful * (kEntriesPerRemovalMax + 1) && others.bytes > kFewBytes) {
      return false;
    }
    first = first ? first : &blocks;
    last = &blocks;
    removals += blocks.doubtful;
    entries += blocks.entries + others.entries;
    return true;
  }
  KeyRange stretch() const { return {first->first_key, last->last_key + '\0'}; }
};

bool is_mostly_removals(const BlockRange& blocks, SequenceNumber settled) {
  return blocks.doubtful > 0 && 2 * blocks.doubtful >= blocks.entries && blocks.greatest_sequence <= settled;
}

bool is_good(const Candidate& candidate, const Runs& runs, size_t ordinal, uint64_t removals_min) {
  if (candidate.removals < removals_min) {
    return false;
  }
  const KeyRange stretch = candidate.stretch();
  uint64_t descriptor_bytes = 0;
  for (auto run = runs.begin() + ordinal; run != runs.end(); ++run) {
    descriptor_bytes += reaches_into(**run, stretch) ? (*run)->location().span.bytes() : 0;
  }
  if (descriptor_bytes > std::max(kFewDescriptorBytes, candidate.removals * kDescriptorBytesPerRemoval)) {
    return false;
  }
  return std::none_of(runs.begin() + ordinal, runs.end(), [&](const auto& run) {
    return run->range_removals()->overlaps(stretch.begin, *stretch.end);
  });
}

}  // namespace

bool reaches_into(const Run& run, const KeyRange& stretch) {
  const auto& parts = run.descriptor().parts;
  const auto part = std::partition_point(parts.begin(), parts.end(), [&](const SpanPart& before) {
    return before.blocks.last_key < stretch.begin;
  });
  return part != parts.end() && (!stretch.end || part->blocks.first_key < *stretch.end);
}

PurgeChoice choose_purge(const Runs& runs, uint64_t removals_min, SequenceNumber settled) {
  for (size_t ordinal = 0; ordinal < runs.size(); ++ordinal) {
    if (runs[ordinal]->doubtful() < removals_min) {
      continue;
    }
    Candidate candidate;
    const auto found = [&] { return is_good(candidate, runs, ordinal, removals_min); };
    const auto choice = [&] { return PurgeChoice{ordinal, runs.size() - ordinal, candidate.stretch()}; };
    for (const SpanPart& part : runs[ordinal]->descriptor().parts) {
      const bool wanted = is_mostly_removals(part.blocks, settled);
      if (wanted && candidate.entries < kEntriesMax && candidate.extend(runs, ordinal, part.blocks)) {
        continue;
      }
      if (found()) {
        return choice();
      }
      candidate = {};
      if (wanted) {
        (void)candidate.extend(runs, ordinal, part.blocks);
      }
    }
    if (found()) {
      return choice();
    }
  }
  return {};
}

}  // namespace vtkv
