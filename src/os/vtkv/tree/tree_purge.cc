// SPDX-License-Identifier: LGPL-2.1-or-later
// Getting rid of tombstones in one key range (purge_policy.h): of what the runs hold there, each keeps what no
// newer one hides, and no tombstone. Runs without keys of the range stay as they are. What is left of the others
// stays where it lies, range tombstones and filters included, but for the key range and a few blocks at its ends: what
// is written anew is that, and their descriptors.
//
// Why it is right: the key range ends between keys, and reaches down to the oldest run, so that what a tombstone hides
// goes with it, all at one checkpoint; and no entry goes from one run to another, so that the order of the runs stays
// that of the entries.
#include <algorithm>

#include "vtkv/compaction/older_runs.h"
#include "vtkv/compaction/purge_policy.h"
#include "vtkv/compaction/stitch_compaction.h"
#include "vtkv/table/filter_merge.h"
#include "vtkv/tree/tree.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

// What its steps share.
struct Tree::Purge {
  const KeyRange& range;
  const std::vector<SequenceNumber>& snapshots;
  const CompactionPace pace;
  Runs concerned;  // newest first
  ValueDelta values;
  uint64_t written_bytes = 0, stitched_bytes = 0;
};

Status Tree::purge_run(Purge* purge, size_t number, const Runs& older_runs, std::shared_ptr<const Run>* left) {
  const std::shared_ptr<const Run>& run = purge->concerned[number];
  RunWriter writer(m_env, m_reader, compaction_settings(run->location().level, purge->pace));
  const RangeTombstones none;
  const OlderRuns older(older_runs, 0);
  CompactionIterator compaction_iterator(&purge->snapshots, &none, &older, &purge->values);
  StitchPolicy outside = stitch_policy();
  outside.bytes_min = 0;
  outside.drops_tombstones = false;
  const auto keep = [&](const KeyRange& range) {
    return StitchCompaction({run}, &compaction_iterator, outside, purge->pace, &writer, range).run();
  };
  VTKV_RETURN_IF_ERROR(keep({"", purge->range.begin}));
  const OlderRuns nothing({}, 0);
  CompactionIterator inside_iterator(&purge->snapshots, &none, &nothing, &purge->values);
  StitchPolicy inside = stitch_policy();
  inside.only = number;
  const auto first = purge->concerned.begin();
  const Runs newer(first, first + static_cast<ptrdiff_t>(number) + 1);  // and itself
  VTKV_RETURN_IF_ERROR(StitchCompaction(newer, &inside_iterator, inside, purge->pace, &writer, purge->range).run());
  VTKV_RETURN_IF_ERROR(keep({*purge->range.end, {}}));
  VTKV_RETURN_IF_ERROR(writer.finish_as(*run, {}, left));
  purge->written_bytes += writer.written_bytes();
  purge->stitched_bytes += writer.stitched_bytes();
  if (!*left || !is_mostly_surplus(**left)) {
    return {};
  }
  const Status renewed = renew_filter(purge, older_runs, left);
  const bool keeps_old = is_quarantined(renewed) || renewed.is_no_space();
  return keeps_old ? Status() : renewed;  // a filter with too much in it is right, too
}

// A run that has lost most of its entries gets a filter of what is left. Reads all of it, and writes a part: after an
// error the run and the purge's account of values are as they were.
Status Tree::renew_filter(Purge* purge, const Runs& older_runs, std::shared_ptr<const Run>* run) {
  const std::shared_ptr<const Run> old = *run;
  QuotientFilter filter;
  uint64_t read_bytes = 0;
  VTKV_RETURN_IF_ERROR(
      merge_filters({old}, filter_bits(0), m_options.filter_false_positive_rate, purge->pace, &filter, &read_bytes));
  count_filter_read(read_bytes);
  RunWriter writer(m_env, m_reader, compaction_settings(old->location().level, purge->pace));
  const RangeTombstones none;
  const OlderRuns older(older_runs, 0);
  ValueDelta values = purge->values;
  CompactionIterator compaction_iterator(&purge->snapshots, &none, &older, &values);
  StitchPolicy policy = stitch_policy();
  policy.bytes_min = 0;
  policy.drops_tombstones = false;
  VTKV_RETURN_IF_ERROR(StitchCompaction({old}, &compaction_iterator, policy, purge->pace, &writer).run());
  VTKV_RETURN_IF_ERROR(writer.finish(old->range_tombstones(), run, &filter));
  purge->values = std::move(values);
  purge->written_bytes += writer.written_bytes();
  return {};
}

Status Tree::purge_claimed(const Claim& claimed, const KeyRange& range, const std::vector<SequenceNumber>& snapshots) {
  const Runs& inputs = claimed.inputs;
  Purge purge{range, snapshots, [&](uint64_t) { return give_way(claimed.level); }, {}, {}};
  Runs outputs;
  for (auto run = inputs.begin(); run != inputs.end(); ++run) {
    std::shared_ptr<const Run> left = *run;
    if (reaches_into(**run, range)) {
      purge.concerned.push_back(*run);
      VTKV_RETURN_IF_ERROR(purge_run(&purge, purge.concerned.size() - 1, Runs(run + 1, inputs.end()), &left));
    }
    if (left) {
      outputs.push_back(std::move(left));
    }
  }
  count_written(purge.written_bytes, purge.stitched_bytes);
  VTKV_RETURN_IF_ERROR(install_compaction(inputs, outputs, purge.values));
  count(&TreeStatistics::purges);
  return {};
}

Status Tree::purge_once(const SnapshotSource& source, bool* did) {
  if (m_options.purge_tombstones_min == 0) {
    return {};
  }
  const std::vector<SequenceNumber> snapshots = source();  // for the choice
  const Runs runs = current_runs();
  const PurgeChoice choice =
      choose_purge(runs, m_options.purge_tombstones_min, snapshots.empty() ? UINT64_MAX : snapshots.front());
  if (choice.count == 0) {
    return {};
  }
  Claim claimed;
  const auto claims = [&](const Runs& now, const std::set<uint64_t>& busy) {
    // Since they were looked at, flushes may have come in front, and emergency compactions have changed them.
    const auto first = std::find(now.begin(), now.end(), runs[choice.first]);
    const bool same = std::equal(first, now.end(), runs.begin() + choice.first, runs.end());
    const bool free =
        std::none_of(first, now.end(), [&](const auto& run) { return busy.contains(run->location().run_id); });
    return same && free
               ? CompactionChoice{static_cast<size_t>(first - now.begin()), choice.count, now.back()->location().level}
               : CompactionChoice();
  };
  if (!claim(claims, &claimed)) {
    return {};
  }
  Status status = purge_claimed(claimed, choice.range, source());
  give_up(claimed, status);
  *did = status.ok();
  return status;
}

}  // namespace vtkv
