// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds the recovered end of the log (doc/crash_consistency.md, The mechanism) and hands its batches back.
//
// Steps, in this order: read_chain() goes to the structural end, which yields the watermark; check_data() looks at what
// lies above it; replay(). They are separate because the salvage and the inspecting tool leave some out. Writes
// nothing. Threads: the one that opens.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vtkv/options.h"
#include "vtkv/wal/log_sweep.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class LogRecovery {
 public:
  // `listed`: epochs of the segments that the checkpoint lists as holding values.
  LogRecovery(SegmentPool* pool, const Uuid& uuid, const Options& options, const LogPosition& checkpoint,
              std::set<uint64_t> listed);

  // For reading only: where the log is damaged it ends, and `notes` gets a sentence that says how much lies behind, or
  // that this cannot be told.
  void go_on_without(std::vector<std::string>* notes) { m_notes = notes; }
  // Rules 1 to 3, from the checkpoint to the structural end; a batch whose last fragment is not there is left out.
  Status read_chain();
  // Refuses (go_on_without: notes) a log that holds, anywhere, a record which knew of something durable beyond that
  // end.
  Status report_orphans() const;
  // go_on_without: reads all of the chain once more, and ends it where that fails.
  void cut_unreadable();
  // Everything at or below it was durable, whatever is checked later.
  SequenceNumber watermark() const { return m_watermark; }
  // Rule 4 above the watermark: cuts the chain before the first record whose data did not arrive.
  // `assume_written`: where there is no external store to ask, take the data to have arrived (for looking only).
  Status check_data(bool assume_written = false);
  // Did fragments of a batch lie beyond recovered_end, but not all?
  bool dropped_half_batch() const { return !m_half_batch.empty(); }
  // Their records, and those from the checkpoint to recovered_end.
  const std::vector<FoundRecord>& half_batch() const { return m_half_batch; }
  const std::vector<FoundRecord>& chain() const { return m_chain; }
  // Where the log ends, and the position after its last record.
  const LogPosition& recovered_end() const { return m_end; }
  // Visits the batches from the checkpoint to recovered_end, in order. `whole`, unless it is null, is called behind
  // each record that no batch goes on beyond, with the position after it: a checkpoint may name it.
  Status replay(BatchVisitor& visitor, const std::function<Status(const LogPosition&)>& whole = nullptr);
  // Of every segment's and record's header on disk. A record can outlive the segment header that was written
  // with it: an epoch it names must not be given to its segment again.
  uint64_t greatest_epoch() const { return m_greatest_epoch; }

 private:
  // The status as it is, or a note of it.
  Status do_without(const Status& status) const;
  void note_unreadable(const LogSegment& segment, const UnreadableBlocks& unreadable) const;
  Status note_what_follows() const;
  Status ends_cleanly(bool* ends) const;
  bool is_sealed(const LogSegment& segment) const;
  Status sweep();
  void drop_half_batch();
  Status find_next(const LogPosition& position, const FoundRecord** next);
  const FoundRecord* find_in_same_segment(const LogPosition& position) const;
  const FoundRecord* find_in_other_segment(const LogPosition& position) const;
  const FoundRecord* find_in_newest_segment(const LogPosition& position) const;
  bool trusted(size_t index) const;
  bool continues(const FoundRecord& record, const LogPosition& position) const;
  void note_not_arrived(size_t records);
  Status data_arrived(const FoundRecord& record, bool assume_written, bool* arrived);
  Status visit(const FoundRecord& record, BatchVisitor& visitor);

  SegmentPool* const m_pool;
  const Uuid m_uuid;
  const Options& m_options;
  const LogPosition m_checkpoint;
  const std::set<uint64_t> m_listed;
  std::map<uint64_t, SegmentRecords> m_records;  // by segment id
  std::vector<FoundRecord> m_chain;
  std::vector<FoundRecord> m_half_batch;
  SequenceNumber m_watermark = 0;
  SequenceNumber m_structural_end = 0;
  LogPosition m_position;  // there
  LogPosition m_end;
  uint64_t m_greatest_epoch = 0;
  std::unique_ptr<FileWindow> m_window;  // into the segment visited last
  const LogSegment* m_window_segment = nullptr;
  std::vector<std::string>* m_notes = nullptr;
  UnreadableBlocks m_unreadable;  // of m_window_segment, met beside records that are visited: the sweep told of them
  std::set<std::pair<uint64_t, uint64_t>> m_looked_again;  // segment, offset
};

}  // namespace vtkv
