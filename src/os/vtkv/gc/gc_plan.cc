// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/gc_plan.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr uint64_t kIndexFilteredShare = 4;    // of the log: emptied with one scan of the tree
constexpr uint64_t kSparseShare = 32;          // the same; all at once
constexpr uint64_t kAddressesMost = 1u << 20;  // of values that a scan may find, about
// Bytes that are read in the same time: by a request, where a deep queue can be had (in small segments, as tests have
// them, no more than a part of one), and by passing an entry of the tree.
constexpr uint64_t kRequestCost = 16u << 10;
constexpr uint64_t kRequestCostShare = 8;
constexpr uint64_t kEntryCost = 128;
constexpr unsigned kDeepQueue = 16;

uint64_t live_entries(const SegmentValues& values) {
  return values.bytes > 0 ? values.entries * values.live_bytes() / values.bytes : 0;
}

// By not looking up what the tree does not point to.
uint64_t saved_by_index_filter(uint64_t lookup_cost, const SegmentValues& values, uint64_t segment_bytes) {
  const uint64_t all = values.bytes > 0 ? segment_bytes * values.entries / values.bytes : 0;
  return lookup_cost * (all - std::min(all, live_entries(values)));
}

// By not reading it, less what the requests cost.
uint64_t saved_by_sparse_reads(const SegmentValues& values, uint64_t segment_bytes) {
  const uint64_t request_cost = std::min(kRequestCost, segment_bytes / kRequestCostShare);
  return segment_bytes - std::min(segment_bytes, values.live_bytes() + live_entries(values) * request_cost);
}

}  // namespace

GcPlan plan_gc(const Options& options, uint64_t log_bytes, uint64_t tree_entries,
               const std::vector<SealedSegment>& choice, bool one) {
  GcPlan plan;
  // Takes the first ones, up to that share of the log. Do they save more than the scan of the tree costs?
  const auto pays = [&](GcPlan::Way way, uint64_t share, auto saved_by) {
    plan = {way, {}};
    uint64_t bytes = 0;
    uint64_t addresses = 0;
    uint64_t saved = 0;
    for (const auto& [values, segment_bytes] : choice) {
      const uint64_t saves = saved_by(values, segment_bytes);
      const bool enough =
          !plan.candidates.empty() && (one || bytes >= log_bytes / share || addresses >= kAddressesMost);
      if (saves == 0 || enough) {
        break;
      }
      plan.candidates.push_back(values);
      bytes += segment_bytes;
      addresses += live_entries(values);
      saved += saves;
    }
    return saved > kEntryCost * tree_entries;
  };
  const auto saved_by_this_filter = [&](const SegmentValues& values, uint64_t segment_bytes) {
    return saved_by_index_filter(options.gc_lookup_cost_bytes, values, segment_bytes);
  };
  if ((options.io_depth >= kDeepQueue && pays(GcPlan::Way::sparse, kSparseShare, saved_by_sparse_reads)) ||
      pays(GcPlan::Way::index_filtered, kIndexFilteredShare, saved_by_this_filter)) {
    return plan;
  }
  return {GcPlan::Way::whole, {choice.front().values}};
}

}  // namespace vtkv
