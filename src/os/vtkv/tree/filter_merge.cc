#include "vtkv/tree/filter_merge.h"

#include <algorithm>

#include "vtkv/tree/filter_builder.h"
#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

// Entries that were dropped unread, or as part of a very long merge, have left their fingerprints behind.
bool is_mostly_surplus(const Run& run) { return run.filter().entries() > 2 * run.entries() + 64; }

// From the keys of the run, in bounded memory.
Status read_filter(const Run& run, int bits, QuotientFilter* filter) {
  FilterBuilder builder(bits);
  const auto iterator = run.new_iterator();
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    builder.add(hash64(iterator->entry().key));
  }
  *filter = builder.finish();
  return iterator->status();
}

}  // namespace

Status merge_filters(const std::vector<std::shared_ptr<const Run>>& runs, int bits, double rate,
                     QuotientFilter* filter, uint64_t* read_bytes) {
  uint64_t entries = 0;
  for (const auto& run : runs) {
    entries += run->entries();
  }
  const int needed = QuotientFilter::bits_needed(entries, rate);
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
    VTKV_RETURN_IF_ERROR(read_filter(*run, std::max(bits, needed), &read.emplace_back()));
    *read_bytes += run->descriptor().bytes();
    inputs.push_back(&read.back());
  }
  // Fails only for runs too large for any filter: theirs says "may" to everything.
  if (inputs.empty() || !QuotientFilter::merge(inputs, rate, filter)) {
    *filter = QuotientFilter();
  }
  return {};
}

}  // namespace vtkv
