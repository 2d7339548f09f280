// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes the result of one step of compaction: parts of one sorted run, each of about `part_bytes`.
//
// A part ends between two keys, never between two versions of one, and the range tombstones that are left are cut
// there as well. Not thread-safe. A writer that is dropped before finish() leaves nothing but reusable space.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "vtkv/compaction/compaction_source.h"
#include "vtkv/table/run_writer.h"
#include "vtkv/table/sorted_run.h"

namespace vtkv {

class RunPartWriter final : public EntrySink {
 public:
  using NextSettings = std::function<RunWriter::Settings()>;  // of the next part, with an id of its own
  // `tombstones`: those that are left in `range`, cut to it; they and the rest outlive the writer.
  RunPartWriter(Env* env, const SpanReader& reader, NextSettings next_settings, uint64_t part_bytes,
                const KeyRange& range, const RangeTombstones& tombstones);

  Status add(const Entry& entry) override;
  Status stitch(const Span& span, const BlockRange& blocks) override;
  uint64_t copied_bytes() const override { return m_copied_bytes + (m_writer ? m_writer->copied_bytes() : 0); }
  // All entries of `part`, which lies in the range and overlaps none that were or will be added: the result is a part
  // by itself that takes over its blocks and its filter.
  Status take_whole(const std::shared_ptr<const Run>& part, const std::vector<SequenceNumber>& snapshots,
                    EntryObserver* observer);
  // A part of the result that stays as it is, in the place where the step has come to.
  Status pass(const Run& part);
  // *parts is empty when there was nothing to write. Errors as of RunWriter::finish().
  Status finish(Runs* parts);
  // Of what is finished.
  uint64_t written_bytes() const { return m_written_bytes; }
  uint64_t stitched_bytes() const { return m_stitched_bytes; }
  uint64_t filter_read_bytes() const { return m_filter_read_bytes; }  // of stitched blocks

 private:
  Status begin_key(std::string_view key);
  RunWriter& writer();
  Status end_part(std::optional<std::string_view> end);
  void account(const RunWriter& writer);
  Status add_keys_to_filter(const Span& span, const BlockRange& blocks);

  Env* const m_env;
  const SpanReader& m_reader;
  const NextSettings m_next_settings;
  const uint64_t m_part_bytes;
  const KeyRange& m_range;
  const RangeTombstones& m_tombstones;
  std::unique_ptr<RunWriter> m_writer;  // of the part in the making; null: none was begun
  std::string m_part_begin;
  std::string m_last_key;
  Runs m_parts;
  uint64_t m_copied_bytes = 0, m_written_bytes = 0, m_stitched_bytes = 0, m_filter_read_bytes = 0;
};

}  // namespace vtkv
