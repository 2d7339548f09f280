// SPDX-License-Identifier: LGPL-2.1-or-later
// A recorded run in the words of the log's model (qa/model/one_log.pml), for qa/model/check_traces.py to ask whether
// the model allows it.
//
// Nothing in the engine tells what it does: the events come from the writes and syncs that a SimEnv recorded, from
// the log's and the manifest's own bytes, and from marks that the load sets. What is durable is what SimEnv says, not
// what the engine takes for durable. Records are numbered in the order in which they were submitted, in all runs of one
// trace together; 1 is the empty database's start. Sequences are renumbered: a record's is its predecessor's plus one.
//
//   data SLOT RECORD       a write to a slot, of that record's data; kNoRecord's: of a record that was never formed
//   record ID PREDECESSOR SEQUENCE SEGMENT BLOCK EPOCH DURABLE WRITES FREES IS_RECOVERY
//                          submitted; WRITES and FREES are sets of slots, as bits
//   checkpoint RECORD      a checkpoint at that record's end is submitted
//   flush CELLS            these writes are durable from here on
//   acknowledge RECORD     something in it was acknowledged
//   erase SEGMENT          zeros are written to it
//   unflushed              a recovery record was submitted before every file that recovery reads was synced
//   refused                the database does not open
//   crash CELL=VALUE ...   what is on disk, of all that is not 0
//
// A cell is L<segment>.<block> (VALUE: a record, or one + kTornRecord), S<slot> (the record whose data it holds),
// H<segment> (its epoch), C (the record that the checkpoint ends with). VALUE is kUnknown where nobody can tell or it
// does not matter, kOlder where it is neither the last thing written there nor anything whole.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vtkv/testing/sim_trace.h"
#include "vtkv/wal/log_format.h"

namespace vtkv {

// Marks that a load sets for its trace.
inline constexpr uint64_t kFreedMark = 4ull << 32;  // text: the sequence that frees slots, then the slots
// A mark's kind is the upper half of its id.
inline uint64_t mark_kind(const SimMark& mark) { return mark.id & ~uint64_t{UINT32_MAX}; }

class LogTrace {
 public:
  static constexpr unsigned kTornRecord = 128;
  static constexpr unsigned kNoRecord = 127;
  static constexpr unsigned kUnknown = 255;
  static constexpr unsigned kOlder = 254;

  struct Files {
    std::string log_directory;
    std::string manifest;
    std::string slots;  // of kLogBlockBytes each
  };
  // What the model can hold.
  struct Bounds {
    unsigned records = 100;
    unsigned segments = 12;
    unsigned blocks = 3;  // of a segment, without its header's
    unsigned slots = 10;
  };

  LogTrace(Files files, const Bounds& bounds) : m_files(std::move(files)), m_bounds(bounds) {}

  // What the trace holds up to `cut`. `acknowledged_mark`: the kind of the marks whose text is a durable sequence.
  void add_run(const SimTrace& trace, uint64_t cut, uint64_t acknowledged_mark);
  // What the crash that ended the last run left.
  void add_crash(const SimImage& disk);
  void add_refusal() { m_lines.push_back("refused"); }

  const std::vector<std::string>& lines() const { return m_lines; }
  // Why the model has no words for it; "" when it has.
  const std::string& beyond() const { return m_beyond; }

 private:
  struct Cell {
    char kind = 0;
    uint64_t number = 0;
    uint64_t block = 0;
    auto operator<=>(const Cell&) const = default;
    std::string name() const;
  };
  struct Record {
    uint32_t checksum = 0;
    unsigned predecessor = 0;
    unsigned sequence = 0;
    SequenceNumber first = 0;
    SequenceNumber last = 0;
  };
  struct Event {
    uint64_t time = 0;
    std::string line;
  };
  struct Run;

  void find_files(const SimTrace& trace);
  void find_records(Run& run);
  void add_record(Run& run, const SimOp& op, uint32_t index, uint64_t offset, uint64_t segment);
  void add_segment_write(Run& run, const SimOp& op, uint32_t index, uint64_t segment);
  void add_slot_write(Run& run, const SimOp& op, uint32_t index);
  void add_checkpoint(Run& run, const SimOp& op, uint32_t index);
  void add_flushes(Run& run);
  void add_marks(Run& run, uint64_t acknowledged_mark);
  bool everything_is_synced(const Run& run, uint64_t time) const;
  unsigned find_by_checksum(uint32_t checksum) const;
  unsigned to_model_sequence(unsigned record, SequenceNumber sequence) const;
  unsigned log_cell(const SimInode& file, uint64_t block, const Cell& cell) const;
  unsigned checkpoint_cell(const SimInode& file) const;
  void say_beyond(std::string text);

  const Files m_files;
  const Bounds m_bounds;
  std::vector<Record> m_records{{}, {}};  // by number
  std::map<uint32_t, unsigned> m_by_checksum;
  std::map<std::pair<uint64_t, uint32_t>, unsigned> m_slot_content;  // slot and crc: whose data
  std::map<uint64_t, uint64_t> m_segments;  // by inode
  uint64_t m_manifest = 0;
  uint64_t m_slot_file = 0;
  std::optional<Uuid> m_uuid;
  unsigned m_checkpoint = 1;
  std::set<Cell> m_erased;
  std::vector<std::string> m_lines;
  std::string m_beyond;
};

}  // namespace vtkv
