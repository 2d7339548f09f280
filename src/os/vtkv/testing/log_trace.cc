// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/log_trace.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "vtkv/tree/manifest.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {

namespace {

constexpr unsigned kNoSequence = 255;  // one that no record has: the model refuses it

std::string bytes_of(const SimData& data, uint64_t from, size_t length) {
  std::string bytes(length, '\0');
  data.copy(from, length, bytes.data());
  return bytes;
}

std::string bytes_of(const SimInode& file, uint64_t offset, size_t length) {
  std::string bytes(length, '\0');
  if (offset + length <= file.size()) {
    file.read(offset, length, bytes.data());
  }
  return bytes;
}

bool is_blank(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

class ExternalWrites final : public BatchVisitor, public WriteBatch::Handler {
 public:
  Status batch(SequenceNumber, uint32_t, std::string_view encoded, const LogAddress&) override {
    return WriteBatch::iterate(encoded, *this);
  }
  void external_write(const ExternalWrite& write) override { found.push_back(write); }

  std::vector<ExternalWrite> found;
};

}  // namespace

std::string LogTrace::Cell::name() const {
  return kind == 'C'   ? "C"
         : kind == 'L' ? "L" + std::to_string(number) + "." + std::to_string(block)
                       : kind + std::to_string(number);
}

// One life of the process, as far as it got.
struct LogTrace::Run {
  const SimTrace& trace;
  uint64_t cut = 0;
  std::vector<std::pair<SequenceNumber, uint64_t>> freed;  // sequence and slot
  std::map<uint32_t, unsigned> record_of;                  // by index of its write
  std::map<uint32_t, std::vector<Cell>> cells_of;          // likewise of any write
  std::map<Cell, std::vector<uint32_t>> writes_of;         // ascending
  std::vector<Event> events;
};

void LogTrace::say_beyond(std::string text) {
  if (m_beyond.empty()) {
    m_beyond = std::move(text);
  }
}

void LogTrace::find_files(const SimTrace& trace) {
  for_each_file(trace, [this](const std::string& path, uint64_t inode) {
    if (path == m_files.manifest) {
      m_manifest = inode;
    } else if (path == m_files.slots) {
      m_slot_file = inode;
    } else if (path.starts_with(m_files.log_directory + "/") && path.ends_with(".log")) {
      const uint64_t number = std::stoull(path.substr(m_files.log_directory.size() + 1)) - 1;
      m_segments[inode] = number;
      if (number >= m_bounds.segments) {
        say_beyond("too many log segments");
      }
    }
  });
}

unsigned LogTrace::find_by_checksum(uint32_t checksum) const {
  const auto found = m_by_checksum.find(checksum);
  return checksum == 0 ? 1 : found == m_by_checksum.end() ? 0 : found->second;
}

unsigned LogTrace::to_model_sequence(unsigned record, SequenceNumber sequence) const {
  for (; record != 0; record = m_records[record].predecessor) {
    if (m_records[record].last == sequence) {
      return m_records[record].sequence;
    }
  }
  return kNoSequence;
}

// --- what one life of the process wrote -----------------------------------------------------------------

void LogTrace::add_record(Run& run, const SimOp& op, uint32_t index, uint64_t offset, uint64_t segment) {
  const std::string bytes = bytes_of(op.data, offset - op.offset, op.offset + op.length - offset);
  record_header_t header;
  if (!m_uuid && bytes.size() >= sizeof(header)) {
    std::memcpy(&header, bytes.data(), sizeof(header));
    m_uuid = header.uuid;
  }
  if (!m_uuid || !decode_record_header(bytes, *m_uuid, &header)) {
    say_beyond("a write to the log that is no record");
    return;
  }
  const uint64_t block = offset / kLogBlockBytes - 1;
  if (m_records.size() > m_bounds.records || block >= m_bounds.blocks || header.padded_bytes() > kLogBlockBytes) {
    say_beyond(header.padded_bytes() > kLogBlockBytes ? "a record of several blocks" : "too many records");
    return;
  }
  const auto id = static_cast<unsigned>(m_records.size());
  const unsigned before = find_by_checksum(header.previous_crc);
  const bool continues = before != 0 && m_records[before].last + 1 == header.first_sequence;
  m_records.push_back({header.header_crc, before, continues ? m_records[before].sequence + 1 : kNoSequence,
                       header.first_sequence, header.last_sequence()});
  m_by_checksum[header.header_crc] = id;
  run.record_of[index] = id;

  ExternalWrites writes;
  (void)for_each_batch(header, std::string_view(bytes).substr(sizeof(header), header.body_bytes), {}, writes);
  uint64_t written = 0;
  for (const ExternalWrite& write : writes.found) {
    written |= uint64_t{1} << write.slot;
    m_slot_content[{write.slot, write.crc32c}] = id;
  }
  uint64_t freed = 0;
  for (const auto& [sequence, slot] : run.freed) {
    freed |= sequence >= header.first_sequence && sequence <= header.last_sequence() ? uint64_t{1} << slot : 0;
  }
  const bool is_recovery = (header.flags & kRecoveryRecord) != 0;
  if (is_recovery && !everything_is_synced(run, op.submitted)) {
    run.events.push_back({op.submitted, "unflushed"});
  }
  std::ostringstream line;
  line << "record " << id << ' ' << before << ' ' << m_records[id].sequence << ' ' << segment << ' ' << block << ' '
       << header.epoch << ' ' << to_model_sequence(before, header.durable_seq) << ' ' << written << ' ' << freed << ' '
       << is_recovery;
  run.events.push_back({op.submitted, line.str()});
  run.cells_of[index].push_back({'L', segment, block});
}

// Of a header alone nothing is said while no epoch is in it: the segment was just made.
void LogTrace::add_segment_write(Run& run, const SimOp& op, uint32_t index, uint64_t segment) {
  uint64_t offset = op.offset;
  if (offset == 0) {
    segment_header_t header;
    std::memcpy(&header, bytes_of(op.data, 0, sizeof(header)).data(), sizeof(header));
    if (header.epoch > 0) {
      run.cells_of[index].push_back({'H', segment, 0});
    }
    offset = kLogBlockBytes;
  }
  if (offset < op.offset + op.length) {
    add_record(run, op, index, offset, segment);
  }
}

// Records first: a slot's data may be written before the record that names it.
void LogTrace::find_records(Run& run) {
  for (const SimMark& mark : run.trace.marks) {
    if (mark_kind(mark) == kFreedMark) {
      std::istringstream words(mark.text);
      SequenceNumber sequence = 0;
      words >> sequence;
      for (uint64_t slot; words >> slot;) {
        run.freed.emplace_back(sequence, slot);
      }
    }
  }
  for (uint32_t i = 0; i < run.trace.ops.size() && run.trace.ops[i].submitted <= run.cut; ++i) {
    const SimOp& op = run.trace.ops[i];
    const auto segment = m_segments.find(op.inode);
    if (segment == m_segments.end() || op.length == 0) {
      continue;
    }
    if (op.kind == SimOp::Kind::write) {
      add_segment_write(run, op, i, segment->second);
    } else if (op.kind == SimOp::Kind::zeros) {
      run.events.push_back({op.submitted, "erase " + std::to_string(segment->second)});
    }
  }
}

void LogTrace::add_slot_write(Run& run, const SimOp& op, uint32_t index) {
  for (uint64_t at = 0; at < op.length; at += kLogBlockBytes) {
    const uint64_t slot = (op.offset + at) / kLogBlockBytes;
    const uint32_t crc = crc32c(bytes_of(op.data, at, kLogBlockBytes));
    const unsigned record = m_slot_content.try_emplace({slot, crc}, kNoRecord).first->second;
    run.events.push_back({op.submitted, "data " + std::to_string(slot) + " " + std::to_string(record)});
    run.cells_of[index].push_back({'S', slot, 0});
  }
}

void LogTrace::add_checkpoint(Run& run, const SimOp& op, uint32_t index) {
  Checkpoint checkpoint;
  if (!Checkpoint::decode(bytes_of(op.data, 0, op.length), &checkpoint).ok()) {
    say_beyond("a write to the manifest that is no checkpoint");
    return;
  }
  const unsigned record = find_by_checksum(checkpoint.position.header_checksum);
  if (record != m_checkpoint) {
    m_checkpoint = record;
    run.events.push_back({op.submitted, "checkpoint " + std::to_string(record)});
    run.cells_of[index].push_back({'C', 0, 0});
  }
}

bool LogTrace::everything_is_synced(const Run& run, uint64_t time) const {
  std::set<uint64_t> files{m_manifest, m_slot_file};
  for (const auto& [path, inode] : run.trace.base.names) {
    segment_header_t header;
    if (m_segments.contains(inode) && decode_segment_header(bytes_of(run.trace.base.inode(inode), 0, sizeof(header)),
                                                            *m_uuid, &header) == HeaderState::valid) {
      files.insert(inode);
    }
  }
  for (const SimSync& sync : run.trace.syncs) {
    if (sync.completed < time) {
      files.erase(sync.inode);
    }
  }
  return files.empty();
}

// A write is durable with the first sync that covers it (CrashImages). Where another write to the same place is under
// way by then, the model is free to say which of the two the place holds.
void LogTrace::add_flushes(Run& run) {
  std::map<uint64_t, std::string> lines;  // by time
  for (const auto& [index, cells] : run.cells_of) {
    const SimOp& op = run.trace.ops[index];
    uint64_t durable_at = kSimNever;
    for (const SimSync& sync : run.trace.syncs) {
      if (sync.completed != kSimNever && op.completed <= sync.submitted && !op.spoiled &&
          sim_covers(run.trace.profile, sync, op)) {
        durable_at = std::min(durable_at, sync.completed);
      }
    }
    if (durable_at > run.cut) {
      continue;
    }
    for (const Cell& cell : cells) {
      const std::vector<uint32_t>& writes = run.writes_of[cell];
      const bool overtaken = std::any_of(writes.begin(), writes.end(), [&](uint32_t other) {
        return other > index && run.trace.ops[other].submitted < durable_at;
      });
      lines[durable_at] += overtaken ? "" : " " + cell.name();
    }
  }
  for (const auto& [time, cells] : lines) {
    if (!cells.empty()) {
      run.events.push_back({time, "flush" + cells});
    }
  }
}

void LogTrace::add_marks(Run& run, uint64_t acknowledged_mark) {
  for (const SimMark& mark : run.trace.marks) {
    if (mark.time > run.cut || mark_kind(mark) != acknowledged_mark) {
      continue;
    }
    const SequenceNumber sequence = std::stoull(mark.text);
    unsigned record = 0;
    for (const auto& [index, id] : run.record_of) {
      record = m_records[id].first <= sequence && sequence <= m_records[id].last ? id : record;
    }
    run.events.push_back({mark.time, "acknowledge " + std::to_string(record)});
  }
}

void LogTrace::add_run(const SimTrace& trace, uint64_t cut, uint64_t acknowledged_mark) {
  Run run{trace, cut, {}, {}, {}, {}, {}};
  find_files(trace);
  find_records(run);
  for (uint32_t i = 0; i < trace.ops.size() && trace.ops[i].submitted <= cut; ++i) {
    const SimOp& op = trace.ops[i];
    if (op.kind == SimOp::Kind::write && op.length > 0) {
      if (op.inode == m_slot_file) {
        add_slot_write(run, op, i);
      } else if (op.inode == m_manifest) {
        add_checkpoint(run, op, i);
      }
    }
    if (const auto segment = m_segments.find(op.inode); segment != m_segments.end() && op.kind == SimOp::Kind::zeros) {
      for (uint64_t block = 0; block < m_bounds.blocks; ++block) {
        const uint64_t offset = (block + 1) * kLogBlockBytes;
        if (offset + kLogBlockBytes > op.offset && offset < op.offset + op.length) {
          m_erased.insert({'L', segment->second, block});
        }
      }
    }
    for (const Cell& cell : run.cells_of[i]) {
      run.writes_of[cell].push_back(i);
      m_erased.erase(cell);
    }
  }
  add_flushes(run);
  add_marks(run, acknowledged_mark);
  std::stable_sort(run.events.begin(), run.events.end(),
                   [](const Event& a, const Event& b) { return a.time < b.time; });
  for (Event& event : run.events) {
    m_lines.push_back(std::move(event.line));
  }
}

// --- what a crash left ------------------------------------------------------------------------------------

unsigned LogTrace::log_cell(const SimInode& file, uint64_t block, const Cell& cell) const {
  if (m_erased.contains(cell)) {
    return kUnknown;
  }
  const std::string bytes = bytes_of(file, (block + 1) * kLogBlockBytes, kLogBlockBytes);
  record_header_t header;
  if (!m_uuid || !decode_record_header(bytes, *m_uuid, &header)) {
    return 0;
  }
  const unsigned record = find_by_checksum(header.header_crc);
  const std::string_view body = std::string_view(bytes).substr(sizeof(header), header.body_bytes);
  return crc32c(body.data(), body.size()) == header.body_crc ? record : record + kTornRecord;
}

unsigned LogTrace::checkpoint_cell(const SimInode& file) const {
  Checkpoint newest;
  for (const uint64_t slot : {uint64_t{0}, file.size() / 2}) {
    Checkpoint checkpoint;
    if (Checkpoint::decode(bytes_of(file, slot, file.size() / 2), &checkpoint).ok() &&
        checkpoint.epoch > newest.epoch) {
      newest = std::move(checkpoint);
    }
  }
  return find_by_checksum(newest.position.header_checksum);
}

void LogTrace::add_crash(const SimImage& disk) {
  std::ostringstream line;
  line << "crash";
  const auto add = [&line](const Cell& cell, uint64_t value) {
    if (value != 0) {
      line << ' ' << cell.name() << '=' << value;
    }
  };
  std::set<uint64_t> present;
  for (const auto& [path, inode] : disk.names) {
    const auto segment = m_segments.find(inode);
    if (segment == m_segments.end()) {
      continue;
    }
    present.insert(segment->second);
    const SimInode& file = disk.inode(inode);
    segment_header_t header;
    std::memcpy(&header, bytes_of(file, 0, sizeof(header)).data(), sizeof(header));
    add({'H', segment->second, 0}, header.epoch);
    for (uint64_t block = 0; block < m_bounds.blocks; ++block) {
      const Cell cell{'L', segment->second, block};
      add(cell, log_cell(file, block, cell));
    }
  }
  for (const auto& [inode, segment] : m_segments) {
    if (!present.contains(segment)) {
      add({'H', segment, 0}, kUnknown);
      for (uint64_t block = 0; block < m_bounds.blocks; ++block) {
        add({'L', segment, block}, kUnknown);
      }
    }
  }
  for (uint64_t slot = 0; slot < m_bounds.slots; ++slot) {
    const std::string bytes = bytes_of(disk.inode(m_slot_file), slot * kLogBlockBytes, kLogBlockBytes);
    const auto found = m_slot_content.find({slot, crc32c(bytes)});
    add({'S', slot, 0}, found != m_slot_content.end() ? found->second : is_blank(bytes) ? 0 : kOlder);
  }
  m_checkpoint = checkpoint_cell(disk.inode(m_manifest));
  add({'C', 0, 0}, m_checkpoint);
  m_lines.push_back(line.str());
}

}  // namespace vtkv
