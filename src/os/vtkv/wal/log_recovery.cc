// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/log_recovery.h"

#include <algorithm>

#include "vtkv/util/crc32c.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

LogRecovery::LogRecovery(SegmentPool* pool, const Uuid& uuid, const Options& options, const LogPosition& checkpoint,
                         std::set<uint64_t> listed)
    : m_pool(pool), m_uuid(uuid), m_options(options), m_checkpoint(checkpoint), m_listed(std::move(listed)) {}

// Nothing was written to a listed segment since the log left it (value_gc.h, 4), and the checkpoint lies in a
// later one: each of its records is at or below the checkpoint, so that its durable_seq is below any end that
// this recovery can find, and its epoch is the segment's. There is nothing to learn from reading it.
bool LogRecovery::is_sealed(const LogSegment& segment) const {
  return segment.epoch < m_checkpoint.epoch && m_listed.contains(segment.epoch);
}

void LogRecovery::note_unreadable(const LogSegment& segment, const UnreadableBlocks& unreadable) const {
  if (!unreadable.empty()) {
    m_notes->push_back(std::to_string(unreadable.size()) + " blocks of " + segment.path +
                       " cannot be read, the first: " + unreadable.begin()->second);
  }
}

Status LogRecovery::do_without(const Status& status) const {
  if (status.ok() || !m_notes) {
    return status;
  }
  m_notes->emplace_back(status.message());
  return Status();
}

Status LogRecovery::sweep() {
  for (LogSegment* segment : m_pool->segments()) {
    m_greatest_epoch = std::max<uint64_t>(m_greatest_epoch, segment->epoch);
    if (is_sealed(*segment)) {
      continue;
    }
    UnreadableBlocks unreadable;
    const Status status =
        sweep_segment(segment, m_uuid, &m_records[segment->id], &m_greatest_epoch, m_notes ? &unreadable : nullptr);
    // A segment that no recovery needs may be unreadable.
    if (segment->epoch >= m_checkpoint.epoch) {
      VTKV_RETURN_IF_ERROR(status);
      note_unreadable(*segment, unreadable);
    }
  }
  return Status();
}

bool LogRecovery::continues(const FoundRecord& record, const LogPosition& position) const {
  return record.header.epoch == record.segment->epoch && record.header.first_sequence == position.sequence + 1 &&
         (record.header.previous_crc == position.header_checksum || mutated(Mutation::previous_checksum_dropped));
}

// The mutation: the newest segment, whatever its first record follows.
const FoundRecord* LogRecovery::find_in_newest_segment(const LogPosition& position) const {
  const FoundRecord* newest = nullptr;
  for (const auto& [id, records] : m_records) {
    const auto first = records.find(kLogBlockBytes);
    if (id != position.segment_id && first != records.end() && first->second.header.epoch > position.epoch &&
        (!newest || first->second.header.epoch > newest->header.epoch)) {
      newest = &first->second;
    }
  }
  return newest && continues(*newest, position) ? newest : nullptr;
}

const FoundRecord* LogRecovery::find_in_other_segment(const LogPosition& position) const {
  if (mutated(Mutation::next_segment_by_epoch_alone)) {
    return find_in_newest_segment(position);
  }
  const FoundRecord* best = nullptr;
  for (const auto& [id, records] : m_records) {
    const auto first = records.find(kLogBlockBytes);
    if (id != position.segment_id && first != records.end() && continues(first->second, position) &&
        (!best || first->second.segment->epoch > best->segment->epoch)) {
      best = &first->second;
    }
  }
  return best;
}

const FoundRecord* LogRecovery::find_in_same_segment(const LogPosition& position) const {
  const auto records = m_records.find(position.segment_id);
  if (records == m_records.end()) {
    return nullptr;
  }
  const auto found = records->second.find(position.end_offset);
  return found != records->second.end() && continues(found->second, position) ? &found->second : nullptr;
}

// Where the log does not go on in its segment it enters another one, perhaps one that an earlier recovery has left
// behind; or it ends, and a record is written there. So what one read did not show is looked for again first: here, and
// once at the begin of each other segment.
Status LogRecovery::find_next(const LogPosition& position, const FoundRecord** next) {
  *next = find_in_same_segment(position);
  if (*next) {
    return {};
  }
  for (LogSegment* segment : m_pool->segments()) {
    const uint64_t offset = segment->id == position.segment_id ? position.end_offset : kLogBlockBytes;
    SegmentRecords& records = m_records[segment->id];
    if (is_sealed(*segment) || offset + kLogBlockBytes > segment->bytes || records.contains(offset) ||
        !m_looked_again.emplace(segment->id, offset).second) {
      continue;
    }
    const Status status = look_again(segment, m_uuid, offset, &records, &m_greatest_epoch);
    // As in the sweep. Where the log is read without what cannot be read, that is known already.
    if (segment->epoch >= m_checkpoint.epoch && (status.code() == Status::Code::unsupported || !m_notes)) {
      VTKV_RETURN_IF_ERROR(status);
    }
  }
  *next = find_in_same_segment(position);
  if (!*next) {
    *next = find_in_other_segment(position);
  }
  return {};
}

namespace {

constexpr std::string_view kAsBefore =
    " are not seen: what they changed is as it was before, and what they made is not there";

}  // namespace

Status LogRecovery::report_orphans() const {
  if (m_notes) {
    return note_what_follows();
  }
  for (const auto& [id, records] : m_records) {
    for (const auto& [offset, record] : records) {
      if (record.header.durable_seq > m_structural_end) {
        return Status::corruption(record.segment->path + ": the log ends at sequence " +
                                  std::to_string(m_structural_end) + " but a record at offset " +
                                  std::to_string(offset) + " knows that sequence " +
                                  std::to_string(record.header.durable_seq) +
                                  " was durable: the log is damaged before it; restore the database from a copy");
      }
    }
  }
  return Status();
}

Status LogRecovery::note_what_follows() const {
  const std::string behind = "behind sequence " + std::to_string(m_structural_end);
  SequenceNumber last = m_structural_end;
  for (const auto& [id, records] : m_records) {
    for (const auto& [offset, record] : records) {
      const bool is_of_now = record.header.epoch == record.segment->epoch && record.header.epoch >= m_position.epoch;
      last = std::max(last, is_of_now ? record.header.last_sequence() : 0);
    }
  }
  if (last > m_structural_end) {
    m_notes->push_back("the log is broken " + behind + ": " + std::to_string(last - m_structural_end) +
                       " changes or more that lie there" + std::string(kAsBefore));
    return Status();
  }
  for (LogSegment* const segment : m_pool->segments()) {
    if (segment->epoch > m_position.epoch) {
      m_notes->push_back("the log goes on in " + segment->path + " " + behind +
                         ", and cannot be read there: changes that lie there" + std::string(kAsBefore));
      return Status();
    }
  }
  bool ends = true;
  VTKV_RETURN_IF_ERROR(ends_cleanly(&ends));
  if (!ends) {
    m_notes->push_back(
        "at offset " + std::to_string(m_position.end_offset) + " of log segment " +
        std::to_string(m_position.segment_id) + " lies, " + behind +
        ", what is no record: the beginning of one that a crash cut short, which nobody misses, or of an "
        "earlier use of the file, or the last record, damaged. The changes of that one" +
        std::string(kAsBefore));
  }
  return Status();
}

// Zeros, or a record of an earlier use of the segment.
Status LogRecovery::ends_cleanly(bool* ends) const {
  *ends = true;
  const LogSegment* segment = m_pool->find(m_position.segment_id);
  if (!segment || segment->epoch != m_position.epoch || m_position.end_offset + kLogBlockBytes > segment->bytes) {
    return Status();
  }
  AlignedBuffer block(kLogBlockBytes);
  record_header_t header;
  if (!segment->file->read(m_position.end_offset, kLogBlockBytes, block.data()).ok()) {
    *ends = false;
    return Status();
  }
  const bool is_record = decode_record_header({block.data(), kLogBlockBytes}, m_uuid, &header);
  *ends = is_record ? header.epoch < segment->epoch
                    : std::all_of(block.data(), block.data() + kLogBlockBytes, [](char byte) { return byte == 0; });
  return Status();
}

Status LogRecovery::read_chain() {
  const LogSegment* segment = m_pool->find(m_checkpoint.segment_id);
  if (!segment || segment->epoch != m_checkpoint.epoch || m_checkpoint.end_offset > segment->bytes) {
    const std::string what = "log segment " + std::to_string(m_checkpoint.segment_id) +
                             ", which the newest checkpoint needs, is missing or was replaced";
    if (!m_notes) {
      return Status::corruption(what + "; restore it");
    }
    m_notes->push_back(what + ": changes behind sequence " + std::to_string(m_checkpoint.sequence) +
                       std::string(kAsBefore) + "; restore it if it is anywhere");
  }
  VTKV_RETURN_IF_ERROR(sweep());
  m_watermark = m_checkpoint.sequence;
  m_end = m_checkpoint;
  for (const FoundRecord* next = nullptr;;) {
    VTKV_RETURN_IF_ERROR(find_next(m_end, &next));
    if (!next) {
      break;
    }
    m_chain.push_back(*next);
    m_watermark = std::max(m_watermark, next->header.durable_seq);
    m_end = next->position_after();
  }
  m_structural_end = m_end.sequence;
  m_position = m_end;
  drop_half_batch();
  return Status();
}

// Nobody was told of a batch of which a fragment is missing, and durable_seq does not lie in it.
void LogRecovery::drop_half_batch() {
  while (!m_chain.empty() && (m_chain.back().header.flags & kContinues) && !mutated(Mutation::half_batch_kept)) {
    m_half_batch.push_back(m_chain.back());
    m_chain.pop_back();
  }
  m_end = m_chain.empty() ? m_checkpoint : m_chain.back().position_after();
}

// By mutations only.
bool LogRecovery::trusted(size_t index) const {
  return mutated(Mutation::data_crc_not_checked) ||
         (mutated(Mutation::tail_record_trusted) && index + 1 == m_chain.size());
}

void LogRecovery::note_not_arrived(size_t records) {
  if (m_notes) {
    m_notes->push_back("the last " + std::to_string(records) +
                       " records of the log are left out, as a recovery does it: the data of the first of them had not "
                       "arrived");
  }
}

Status LogRecovery::check_data(bool assume_written) {
  size_t kept = 0;
  for (; kept < m_chain.size(); ++kept) {
    const FoundRecord& record = m_chain[kept];
    if (record.header.last_sequence() > m_watermark && !trusted(kept)) {
      bool arrived = false;
      const Status asked = data_arrived(record, assume_written, &arrived);
      VTKV_RETURN_IF_ERROR(do_without(asked));
      if (!asked.ok()) {
        break;
      }
      if (!arrived) {
        note_not_arrived(m_chain.size() - kept);
        break;
      }
    }
  }
  m_chain.resize(kept);
  drop_half_batch();
  if (m_end.sequence < m_watermark) {
    return do_without(Status::corruption("the log ends at sequence " + std::to_string(m_end.sequence) +
                                         " but sequence " + std::to_string(m_watermark) +
                                         " was durable; restore the database from a copy"));
  }
  return Status();
}

namespace {

// Asks the external store about every external write of a record.
class DataCheck final : public BatchVisitor, public WriteBatch::Handler {
 public:
  explicit DataCheck(ExternalStore* store) : m_store(store) {}
  bool arrived() const { return m_arrived; }

  Status batch(SequenceNumber, uint32_t, std::string_view encoded, const LogAddress&) override {
    VTKV_RETURN_IF_ERROR(WriteBatch::iterate(encoded, *this));
    return m_status;
  }
  void external_write(const ExternalWrite& write) override {
    if (!m_store) {
      m_status = Status::invalid_argument("the log holds external writes; open it with its external store");
      return;
    }
    bool could_be_read = false;
    for (int tries = 0; tries < kReadTries; ++tries) {
      bool matches = false;
      const bool was_read = m_store->verify(write, &matches).ok();
      if (was_read && matches) {
        return;
      }
      could_be_read |= was_read;
    }
    if (could_be_read) {
      m_arrived = false;
    } else {
      m_store->mark_damaged(write);
    }
  }

 private:
  ExternalStore* const m_store;
  Status m_status;
  bool m_arrived = true;
};

}  // namespace

Status LogRecovery::data_arrived(const FoundRecord& record, bool assume_written, bool* arrived) {
  if (assume_written && !m_options.external_store) {
    *arrived = true;
    return Status();
  }
  DataCheck check(m_options.external_store);
  VTKV_RETURN_IF_ERROR(visit(record, check));
  *arrived = check.arrived();
  return Status();
}

Status LogRecovery::visit(const FoundRecord& record, BatchVisitor& visitor) {
  if (m_window_segment != record.segment) {
    m_window = std::make_unique<FileWindow>(record.segment->file.get(), record.segment->bytes, kLogReadBytes,
                                            m_notes ? &m_unreadable : nullptr);
    m_window_segment = record.segment;
    m_unreadable.clear();
  }
  std::string_view bytes;
  for (int tries = 1;; ++tries) {
    VTKV_RETURN_IF_ERROR(m_window->view(record.offset, sizeof(record_header_t) + record.header.body_bytes, &bytes));
    bytes.remove_prefix(sizeof(record_header_t));
    if (crc32c(bytes) == record.header.body_crc || mutated(Mutation::body_crc_not_checked)) {
      break;
    }
    if (tries == kReadTries || m_window->lacks(record.offset, record.header.padded_bytes())) {
      return Status::corruption(record.segment->path + ", record at offset " + std::to_string(record.offset) +
                                ": it could be read at first, and no more");
    }
    m_window->forget();
  }
  const LogAddress body{record.segment->id, record.segment->epoch, record.offset + sizeof(record_header_t)};
  const Status status = for_each_batch(record.header, bytes, body, visitor);
  if (!status.ok()) {
    return status.with_message(record.segment->path + ", record at offset " + std::to_string(record.offset) + ": " +
                               std::string(status.message()));
  }
  return Status();
}

namespace {

class Nothing final : public BatchVisitor {
 public:
  Status batch(SequenceNumber, uint32_t, std::string_view, const LogAddress&) override { return Status(); }
};

}  // namespace

void LogRecovery::cut_unreadable() {
  Nothing nothing;
  for (size_t kept = 0; kept < m_chain.size(); ++kept) {
    if (const Status status = visit(m_chain[kept], nothing); !status.ok()) {
      m_notes->push_back(std::string(status.message()) + "; the changes from there on" + std::string(kAsBefore));
      m_chain.resize(kept);
      drop_half_batch();
      return;
    }
  }
}

Status LogRecovery::replay(BatchVisitor& visitor, const std::function<Status(const LogPosition&)>& whole) {
  for (const FoundRecord& record : m_chain) {
    VTKV_RETURN_IF_ERROR(visit(record, visitor));
    if (whole && (record.header.flags & kContinues) == 0) {
      VTKV_RETURN_IF_ERROR(whole(record.position_after()));
    }
  }
  return Status();
}

}  // namespace vtkv
