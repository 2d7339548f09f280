// Getting rid of removals in one stretch of keys (purge_policy.h): what the runs hold there is merged into the oldest of
// them, and the others are left without it. Everything outside the stretch stays where it lies: every run is
// written anew, but as a list of the blocks that the old one names.
//
// Why it is right: the stretch ends between keys, so that all versions of a key that these runs hold are merged
// together; and no range removal of these runs reaches into it, so that none can come to lie in front of an
// entry that it does not hide.
#include <algorithm>

#include "vtkv/tree/filter_merge.h"
#include "vtkv/tree/older_runs.h"
#include "vtkv/tree/purge_policy.h"
#include "vtkv/tree/tree_impl.h"
#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr uint32_t kRangeReadsMax = 1000;

// Collects the keys that the merge of the stretch brings into the oldest run.
class Arrivals final : public EntryObserver {
 public:
  Arrivals(int filter_bits, ValueDelta* values) : m_filter(filter_bits), m_values(*values) {}
  void dropped(const Entry& entry) override { m_values.dropped(entry); }
  void kept(const Entry& entry) override {
    m_filter.add(hash64(entry.key));
    m_any = true;
  }
  bool any() const { return m_any; }
  // Adds their fingerprints. Inactive, which never denies a key, when theirs are too short for so many.
  void add_to(QuotientFilter* filter) {
    constexpr double kAnyRate = 1.0;  // the bits were chosen for the whole tree
    const QuotientFilter arrived = m_filter.finish();
    QuotientFilter both;
    (void)QuotientFilter::merge({filter, &arrived}, kAnyRate, &both);
    *filter = std::move(both);
  }

 private:
  FilterBuilder m_filter;
  ValueDelta& m_values;
  bool m_any = false;
};

}  // namespace

// What its steps share.
struct TreeImpl::Purge {
  const Claim& claimed;
  const KeyRange& stretch;
  const std::vector<SequenceNumber>& snapshots;
  const MergePace pace;
  ValueDelta values;
  uint64_t written_bytes = 0, stitched_bytes = 0;
};

Status TreeImpl::purge_run(Purge* purge, const std::shared_ptr<const Run>& run, const Runs& older_runs,
                           std::shared_ptr<const Run>* left) {
  RunWriter writer(m_env, m_reader, merge_settings(run->location().level, purge->pace));
  const OlderRuns older(older_runs, kRangeReadsMax, purge->pace);
  Reducer reducer(&purge->snapshots, run->range_removals().get(), &older, &purge->values);
  StitchPolicy policy = stitch_policy();
  policy.bytes_min = 0;
  policy.reduces = false;
  const auto keep = [&](const KeyRange& range) {
    return StitchMerge({run}, &reducer, policy, purge->pace, &writer, range).run();
  };
  Arrivals arrivals(filter_bits(0), &purge->values);
  VTKV_RETURN_IF_ERROR(keep({"", purge->stretch.begin}));
  if (older_runs.empty()) {
    const RangeRemovals none;
    Reducer stretch_reducer(&purge->snapshots, &none, &older, &arrivals);
    policy.bytes_min = kNeverStitch;
    VTKV_RETURN_IF_ERROR(
        StitchMerge(purge->claimed.inputs, &stretch_reducer, policy, purge->pace, &writer, purge->stretch).run());
    policy.bytes_min = 0;
  }
  VTKV_RETURN_IF_ERROR(keep({*purge->stretch.end, {}}));
  const bool own_filter = writer.stitched_bytes() == 0;
  QuotientFilter filter;
  if (!own_filter && arrivals.any()) {
    uint64_t read_bytes = 0;
    VTKV_RETURN_IF_ERROR(
        merge_filters({run}, filter_bits(0), m_options.filter_false_positive_rate, purge->pace, &filter, &read_bytes));
    count_filter_read(read_bytes);
    arrivals.add_to(&filter);
  } else if (!own_filter) {
    writer.share_filter(*run);
  }
  auto removals_left = reducer.reduced_removals();
  VTKV_RETURN_IF_ERROR(older.status());
  VTKV_RETURN_IF_ERROR(writer.finish(std::move(removals_left), left, own_filter ? nullptr : &filter));
  purge->written_bytes += writer.written_bytes();
  purge->stitched_bytes += writer.stitched_bytes();
  return {};
}

Status TreeImpl::purge_claimed(const Claim& claimed, const KeyRange& stretch,
                               const std::vector<SequenceNumber>& snapshots) {
  const Runs& inputs = claimed.inputs;
  Purge purge{claimed, stretch, snapshots, [&](uint64_t) { return give_way(claimed.level); }, {}};
  Runs outputs;
  for (auto run = inputs.begin(); run != inputs.end(); ++run) {
    std::shared_ptr<const Run> left;
    VTKV_RETURN_IF_ERROR(purge_run(&purge, *run, Runs(run + 1, inputs.end()), &left));
    if (left) {
      outputs.push_back(std::move(left));
    }
  }
  VTKV_RETURN_IF_ERROR(install_merge(inputs, outputs, purge.values));
  count(&TreeStatistics::purges, purge.written_bytes, purge.stitched_bytes);
  return {};
}

Status TreeImpl::purge_once(const SnapshotSource& source, bool* did) {
  if (m_options.purge_removals_min == 0) {
    return {};
  }
  const std::vector<SequenceNumber> snapshots = source();  // for the choice
  const Runs runs = current_runs();
  const PurgeChoice choice = choose_purge(runs, m_options.purge_removals_min,
                                         snapshots.empty() ? UINT64_MAX : snapshots.front());
  if (choice.count == 0) {
    return {};
  }
  Claim claimed;
  const auto claims = [&](const Runs& now, const std::set<uint64_t>& busy) {
    // Since they were looked at, flushes may have come in front, and emergency merges have changed them.
    const auto first = std::find(now.begin(), now.end(), runs[choice.first]);
    const bool same = std::equal(first, now.end(), runs.begin() + choice.first, runs.end());
    const bool free = std::none_of(first, now.end(), [&](const auto& run) {
      return busy.contains(run->location().run_id);
    });
    return same && free ? MergeChoice{static_cast<size_t>(first - now.begin()), choice.count, now.back()->location().level}
                        : MergeChoice();
  };
  if (!claim(claims, &claimed)) {
    return {};
  }
  const Status status = purge_claimed(claimed, choice.stretch, source());
  give_up(claimed, status);
  *did = status.ok();
  return status;
}

}  // namespace vtkv
