// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/overwrite_sample.h"

#include <algorithm>
#include <string>

namespace vtkv {

namespace {
// Each may read a block. With so many, the estimate for a fiftieth of a flush is a third off at most, mostly.
constexpr uint64_t kSamplesMost = 512;
// Of the runs, for all range tombstones of a flush: a tenth of a second, where their blocks are in memory.
constexpr uint64_t kRangeEntriesMost = 1u << 20;
}  // namespace

OverwriteSample::OverwriteSample(std::shared_ptr<const Version> below, uint64_t entries, ValueDelta* delta)
    : m_below(std::move(below)), m_step(std::max<uint64_t>(1, entries / kSamplesMost)), m_delta(delta) {}

void OverwriteSample::see(std::string_view key) {
  if (m_seen++ % m_step != 0) {
    return;
  }
  ++m_sampled;
  Lookup result = Lookup::absent;
  std::string value;
  // What cannot be read is not counted; whoever needs it will say so.
  if (!m_below->get(key, UINT64_MAX, &result, &value).ok() || result == Lookup::absent || result == Lookup::removed) {
    return;
  }
  ++m_overwritten;
  ValuePointer pointer;
  if (result == Lookup::pointer && pointer.decode(value)) {
    m_delta->hidden(key, pointer, m_step);
  }
}

// Every version: each of them counts in the account. Returns how many entries it has passed.
uint64_t OverwriteSample::hide_range(std::string_view begin, std::string_view end, uint64_t times,
                                     uint64_t entries_most) {
  std::vector<std::unique_ptr<EntryIterator>> runs;
  std::vector<std::shared_ptr<const RangeTombstones>> tombstones;
  m_below->new_iterators(begin, end, &runs, &tombstones);
  uint64_t passed = 0;
  for (const auto& run : runs) {
    for (run->seek(begin, UINT64_MAX); run->valid() && run->entry().key < end && passed < entries_most; run->next()) {
      ++passed;
      ValuePointer pointer;
      if (run->entry().type == EntryType::value_pointer && pointer.decode(run->entry().value)) {
        m_delta->hidden(run->entry().key, pointer, times);
      }
    }
  }
  return passed;
}

void OverwriteSample::see_ranges(const RangeTombstones& tombstones) {
  const uint64_t step = std::max<uint64_t>(1, tombstones.count() / kSamplesMost);
  uint64_t number = 0;
  uint64_t entries_left = kRangeEntriesMost;
  tombstones.for_each_newest({}, [&](std::string_view begin, std::string_view end, const auto&) {
    if (number++ % step == 0 && entries_left > 0) {
      entries_left -= hide_range(begin, end, step, entries_left);
    }
  });
}

double OverwriteSample::overwritten_share() const {
  return m_sampled == 0 ? 0 : static_cast<double>(m_overwritten) / static_cast<double>(m_sampled);
}

}  // namespace vtkv
