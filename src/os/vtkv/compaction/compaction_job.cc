// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_job.h"

#include <algorithm>

#include "vtkv/compaction/older_runs.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {
constexpr uint64_t kSmallPartShare = 4;
}  // namespace

bool is_small_part(uint64_t bytes, uint64_t part_bytes) { return bytes < part_bytes / kSmallPartShare; }

namespace {
// Two rests of one part share its filter: it is in memory once.
constexpr uint64_t kSurplusShare = 8;
bool is_mostly_surplus(const Run& part) { return part.filter().entries() > kSurplusShare * part.entries() + 64; }
}  // namespace

bool reaches_into(const Run& part, const KeyRange& range) {
  return part.end_key() > range.begin && (!range.end || part.begin_key() < *range.end);
}

CompactionJob::CompactionJob(const Context& context, const SortedRuns& sorted_runs, const CompactionStep& step,
                             const std::vector<SequenceNumber>& snapshots, EntryObserver* observer)
    : m_context(context), m_sorted_runs(sorted_runs), m_step(step), m_snapshots(snapshots), m_observer(observer) {}

RunWriter::Settings CompactionJob::settings_of(uint32_t level, ZoneStream stream) const {
  RunWriter::Settings settings = m_context.settings;
  settings.run_id = m_context.next_id();
  settings.level = level;
  settings.stream = stream;
  return settings;
}

bool CompactionJob::lies_in_range(const Run& part) const {
  return part.begin_key() >= m_step.range.begin && (!m_step.range.end || part.end_key() <= *m_step.range.end);
}

void CompactionJob::gather() {
  for (size_t i = m_step.first; i < m_step.first + m_step.count; ++i) {
    const SortedRun& sorted_run = m_sorted_runs[i];
    const bool is_result = m_step.joins_oldest && i + 1 == m_step.first + m_step.count;
    for (size_t p = sorted_run.first_behind(m_step.range.begin); p < sorted_run.parts.size(); ++p) {
      if (!reaches_into(*sorted_run.parts[p], m_step.range)) {
        break;
      }
      m_inputs.push_back({sorted_run.id, sorted_run.parts[p], false, is_result});
    }
  }
}

void CompactionJob::find_whole_parts() {
  const bool drops_all = m_step.first + m_step.count == m_sorted_runs.size();
  std::vector<Input*> by_key;
  for (Input& input : m_inputs) {
    by_key.push_back(&input);
  }
  std::sort(by_key.begin(), by_key.end(),
            [](const Input* a, const Input* b) { return a->part->begin_key() < b->part->begin_key(); });
  std::string_view covered;  // all inputs in front of this one end here at the latest
  for (size_t i = 0; i < by_key.size(); ++i) {
    const Run& part = *by_key[i]->part;
    const bool is_alone = (i == 0 || covered <= part.begin_key()) &&
                          (i + 1 == by_key.size() || by_key[i + 1]->part->begin_key() >= part.end_key());
    const bool holds_garbage = drops_all && (part.doubtful() > 0 || !part.range_tombstones()->empty());
    by_key[i]->is_whole =
        is_alone && !holds_garbage && lies_in_range(part) && !is_small_part(part.entry_bytes(), m_step.part_bytes);
    covered = std::max<std::string_view>(covered, part.end_key());
  }
  for (Input& input : m_inputs) {
    input.stays = input.stays && input.is_whole;
  }
}

uint64_t CompactionJob::result_id() {
  const bool swaps = mutated(Mutation::step_leaves_newest_out) && m_step.first + m_step.count < m_sorted_runs.size();
  const SortedRun& oldest = m_sorted_runs[m_step.first + m_step.count - (swaps ? 0 : 1)];
  if (m_step.joins_oldest && !swaps) {
    return oldest.id;
  }
  m_edit.created = {m_context.next_id(), m_step.level, oldest.id};
  return m_edit.created->id;
}

Status CompactionJob::merge_range(const KeyRange& range, CompactionIterator* iterator, RunPartWriter* writer) {
  Runs runs;
  for (const Input& input : m_inputs) {
    if (!input.is_whole && reaches_into(*input.part, range)) {
      runs.push_back(input.part);
    }
  }
  return runs.empty()
             ? Status()
             : StitchCompaction(runs, iterator, m_context.policy, m_context.settings.pace, writer, range).run();
}

Status CompactionJob::merge_inputs() {
  std::vector<RangeTombstone> in_range;
  const std::optional<std::string_view> end =
      m_step.range.end ? std::optional<std::string_view>(*m_step.range.end) : std::nullopt;
  for (const Input& input : m_inputs) {
    if (!input.is_whole) {
      const auto cut = input.part->range_tombstones()->within(m_step.range.begin, end);
      in_range.insert(in_range.end(), cut.begin(), cut.end());
    }
  }
  const RangeTombstones tombstones(std::move(in_range));
  SortedRuns below(m_sorted_runs.begin() + static_cast<ptrdiff_t>(m_step.first + m_step.count), m_sorted_runs.end());
  if (mutated(Mutation::tombstone_dropped_above)) {
    below.clear();
  }
  const OlderRuns older(std::move(below), m_context.range_reads_max, m_context.settings.pace);
  CompactionIterator iterator(&m_snapshots, &tombstones, &older, m_observer);
  const auto left = iterator.tombstones_left();
  VTKV_RETURN_IF_ERROR(older.status());
  const ZoneStream stream = m_step.level == kLastLevel ? ZoneStream::last : ZoneStream::tier;
  RunPartWriter writer(
      m_context.env, m_context.reader, [&] { return settings_of(m_step.level, stream); }, m_step.part_bytes,
      m_step.range, *left);

  std::vector<const Input*> whole;
  for (const Input& input : m_inputs) {
    if (input.is_whole) {
      whole.push_back(&input);
    }
  }
  std::sort(whole.begin(), whole.end(),
            [](const Input* a, const Input* b) { return a->part->begin_key() < b->part->begin_key(); });
  KeyRange between = m_step.range;
  for (const Input* input : whole) {
    between.end = input->part->begin_key();
    VTKV_RETURN_IF_ERROR(merge_range(between, &iterator, &writer));
    VTKV_RETURN_IF_ERROR(input->stays ? writer.pass(*input->part)
                                      : writer.take_whole(input->part, m_snapshots, m_observer));
    between.begin = input->part->end_key();
  }
  between.end = m_step.range.end;
  VTKV_RETURN_IF_ERROR(merge_range(between, &iterator, &writer));
  VTKV_RETURN_IF_ERROR(older.status());
  Runs parts;
  VTKV_RETURN_IF_ERROR(writer.finish(&parts));
  m_written_bytes += writer.written_bytes();
  m_stitched_bytes += writer.stitched_bytes();
  m_filter_read_bytes += writer.filter_read_bytes();
  if (!parts.empty()) {
    const uint64_t id = result_id();
    for (auto& part : parts) {
      m_edit.added.push_back({id, std::move(part)});
    }
  }
  return {};
}

Status CompactionJob::write_rest(const Input& input, const KeyRange& rest) {
  const Run& old = *input.part;
  if (!reaches_into(old, rest)) {
    return {};
  }
  const std::optional<std::string_view> end = rest.end ? std::optional<std::string_view>(*rest.end) : std::nullopt;
  auto tombstones = mutated(Mutation::range_tombstone_not_cut)
                        ? std::make_shared<RangeTombstones>()
                        : std::make_shared<RangeTombstones>(old.range_tombstones()->within(rest.begin, end));
  RunWriter writer(m_context.env, m_context.reader, settings_of(old.location().level, ZoneStream::rest));
  const RangeTombstones none;
  const CompactionIterator::AnythingOlder anything;
  CompactionIterator iterator(&m_snapshots, &none, &anything, m_observer);
  StitchPolicy policy;
  policy.bytes_min = 0;
  policy.drops_tombstones = false;
  VTKV_RETURN_IF_ERROR(StitchCompaction({input.part}, &iterator, policy, m_context.settings.pace, &writer, rest).run());
  std::shared_ptr<const Run> left;
  VTKV_RETURN_IF_ERROR(writer.finish_as(old, {}, std::move(tombstones), &left));
  m_written_bytes += writer.written_bytes();
  m_stitched_bytes += writer.stitched_bytes();
  if (left && m_step.renews_filters && is_mostly_surplus(*left)) {
    const Status renewed = renew_filter(&left);
    // A filter with too much in it is right, too.
    const bool keeps_old = renewed.is_corruption() || renewed.is_no_space() || renewed.code() == Status::Code::io_error;
    VTKV_RETURN_IF_ERROR(keeps_old ? Status() : renewed);
  }
  if (left) {
    m_edit.added.push_back({input.sorted_run_id, std::move(left)});
  }
  return {};
}

// Reads all of the part and writes a little. After an error the part is as it was.
Status CompactionJob::renew_filter(std::shared_ptr<const Run>* part) {
  const RangeTombstones none;
  const CompactionIterator::AnythingOlder anything;
  CompactionIterator iterator(&m_snapshots, &none, &anything);
  StitchPolicy policy;
  policy.bytes_min = 0;
  policy.drops_tombstones = false;
  const KeyRange everything;
  const uint32_t level = (*part)->location().level;
  RunPartWriter writer(
      m_context.env, m_context.reader, [&] { return settings_of(level, ZoneStream::rest); }, UINT64_MAX, everything,
      *(*part)->range_tombstones());
  VTKV_RETURN_IF_ERROR(StitchCompaction({*part}, &iterator, policy, m_context.settings.pace, &writer).run());
  Runs renewed;
  VTKV_RETURN_IF_ERROR(writer.finish(&renewed));
  m_written_bytes += writer.written_bytes();
  m_filter_read_bytes += writer.filter_read_bytes();
  *part = renewed.front();
  return {};
}

Status CompactionJob::cut(const Input& input) {
  if (!m_step.range.begin.empty()) {
    VTKV_RETURN_IF_ERROR(write_rest(input, {"", m_step.range.begin}));
  }
  return m_step.range.end ? write_rest(input, {*m_step.range.end, {}}) : Status();
}

Status CompactionJob::run() {
  gather();
  find_whole_parts();
  VTKV_RETURN_IF_ERROR(merge_inputs());
  for (const Input& input : m_inputs) {
    if (input.stays) {
      continue;
    }
    m_edit.removed.push_back(input.part);
    if (!lies_in_range(*input.part)) {
      VTKV_RETURN_IF_ERROR(cut(input));
    }
  }
  return {};
}

}  // namespace vtkv
