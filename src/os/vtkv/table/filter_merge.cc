// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/filter_merge.h"

#include <algorithm>
#include <utility>

#include "vtkv/table/filter_builder.h"
#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

constexpr uint64_t kPaceBytes = 256 << 10;

// From the keys of the run, in bounded memory.
Status read_filter(const Run& run, int bits, Paced* paced, QuotientFilter* filter) {
  FilterBuilder builder(bits, [paced] { return paced->go_on(); });
  const auto iterator = run.new_iterator();
  uint64_t bytes = 0;
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    const Entry& entry = iterator->entry();
    builder.add(hash64(entry.key));
    bytes += entry.key.size() + entry.value.size() + 16;
    if (bytes >= kPaceBytes && !paced->go_on(std::exchange(bytes, 0))) {
      return paced->status();
    }
  }
  (void)paced->go_on(bytes);
  *filter = builder.finish();
  return iterator->status().ok() ? paced->status() : iterator->status();
}

}  // namespace

bool is_mostly_surplus(const Run& run) { return run.filter().entries() > 2 * run.entries() + 64; }

Status merge_filters(const std::vector<std::shared_ptr<const Run>>& runs, int bits, double rate,
                     const CompactionPace& pace, QuotientFilter* filter, uint64_t* read_bytes) {
  Paced paced(pace);
  uint64_t fingerprints = 0;  // at most so many; of what was purged since, some may be left
  for (const auto& run : runs) {
    fingerprints += is_mostly_surplus(*run) ? run->entries() : std::max(run->entries(), run->filter().entries());
  }
  const int needed = QuotientFilter::bits_needed(fingerprints, rate);
  std::vector<QuotientFilter> read;
  read.reserve(runs.size());
  std::vector<const QuotientFilter*> inputs;
  for (const auto& run : runs) {
    if (run->entries() == 0) {
      continue;
    }
    if (run->filter().active() && run->filter().bits() >= needed && !is_mostly_surplus(*run)) {
      inputs.push_back(&run->filter());
      continue;
    }
    VTKV_RETURN_IF_ERROR(read_filter(*run, std::max(bits, needed), &paced, &read.emplace_back()));
    *read_bytes += run->descriptor().bytes();
    inputs.push_back(&read.back());
  }
  // Fails only for runs too large for any filter: theirs says "may" to everything.
  if (inputs.empty() || !QuotientFilter::merge(inputs, rate, filter, QuotientFilter::kQuotientBitsMax,
                                               [&paced] { return paced.go_on(); })) {
    *filter = QuotientFilter();
  }
  return paced.status();
}

}  // namespace vtkv
