// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/value_gc.h"

#include <algorithm>
#include <set>

#include "vtkv/commit/write_buffer.h"
#include "vtkv/gc/value_collector.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"
#include "vtkv/wal/log_sweep.h"

namespace vtkv {

namespace {

constexpr uint64_t kSliceBytes = 8u << 20;          // of candidates, read and sorted at once
constexpr size_t kBatchBytes = 64u << 10;           // relocated in one batch
constexpr size_t kBatchValues = 64;                 // a lookup of each under the write lock
// Relocated and not written yet: half of what writers who do not wait may leave unwritten, so that the collector keeps
// up when the log is slower than both.
constexpr size_t kUnwrittenShare = 2;
constexpr std::chrono::milliseconds kCheckAgain{1};
constexpr std::chrono::milliseconds kReadersGone{20};  // between two looks

}  // namespace

ValueGc::ValueGc(const Options& options, Database database)
    : m_options(options),
      m_db(std::move(database)),
      m_choice(options, m_db.tree, &m_pending_free, &m_quarantine, &m_gain),
      m_scan(m_db.reader, m_db.fetcher, &m_stop) {}

// --- steps -----------------------------------------------------------------------------------------------

void ValueGc::start(GcPlan planned) {
  m_way = planned.way;
  if (m_way == Way::whole) {
    start_reading(planned.candidates.front());
    return;
  }
  m_candidates = std::move(planned.candidates);
  std::vector<uint64_t> epochs;
  for (const SegmentValues& values : m_candidates) {
    epochs.push_back(values.epoch);
  }
  m_flushed = m_db.tree->newest_log_position().sequence;
  m_addresses.clear();
  m_scan.start(std::move(epochs));
  m_phase = Phase::scanning;
}

void ValueGc::start_reading(const SegmentValues& values) {
  m_flushed = m_db.tree->newest_log_position().sequence;
  m_way = m_addresses.contains(values.epoch) ? Way::index_filtered : Way::whole;
  m_candidates.assign(1, values);
  m_segment = m_db.pool->find(values.segment_id);
  m_offset = kLogBlockBytes;
  m_phase = Phase::reading;
}

void ValueGc::take_request() {
  if (m_requests.take()) {
    m_full_below = m_db.tree->newest_log_position().epoch;
    if (m_requests.serving(GcRequest::full)) {
      m_quarantine.hurry(m_db.env->now_us());
    }
    m_failures_before = m_quarantine.failures();
    m_requests.set_error(Status());
  }
}

void ValueGc::end_request() {
  m_requests.end();
  m_db.waiters->notify();
}

NextStep ValueGc::step(IoQueue& io) {
  m_reader.reap(io);
  take_request();
  if (m_phase == Phase::moving) {
    return moving_step();
  }
  if (m_phase == Phase::reading) {
    return reading_step(io);
  }
  if (m_phase == Phase::scanning) {
    return scanning_step();
  }
  return m_phase == Phase::fetching ? fetching_step() : idle_step();
}

NextStep ValueGc::idle_step() {
  bool did = mark_unreferenced();
  const Status status = free_pending(&did);
  const std::chrono::microseconds wait = note_freeing(status);
  if (status.ok() && !m_requests.serving(GcRequest::settle) && try_or_start()) {
    return NextStep::now();
  }
  m_bytes = AlignedBuffer();
  if (!m_reader.reading()) {
    m_reader.clear();
  }
  m_scan.clear();
  m_slice.values = {};
  if (m_requests.serving()) {
    end_request();
    return NextStep::now();
  }
  if (did) {
    return NextStep::now();
  }
  // Otherwise a flush, a released snapshot, a write or a request wakes us; a reader that ends does not.
  constexpr std::chrono::microseconds kNever = std::chrono::microseconds::max();
  const auto retry = status.ok() ? m_quarantine.wait(m_db.env->now_us()) : std::nullopt;
  const std::chrono::microseconds next = std::min(
      {m_pending_free.await_readers() ? wait : kNever, retry.value_or(kNever), look_at_memtable().value_or(kNever)});
  return next == kNever ? NextStep::on_event() : NextStep::later(next);
}

// Has a memtable flushed that nobody else would flush. A write after the look wakes us.
std::optional<std::chrono::microseconds> ValueGc::look_at_memtable() {
  if (m_options.space_amplification_target <= 0 || m_options.value_separation_bytes == 0) {
    return std::nullopt;
  }
  m_awaits_writes.store(false);
  bool worth_flushing = false;
  const auto wait = m_memtable_garbage.look(*m_db.states->current(), m_db.states->visible(), m_db.env->now_us(),
                                            m_db.pool->segment_bytes(), &worth_flushing);
  if (worth_flushing) {
    m_db.request_flush();
  }
  m_awaits_writes.store(!wait);
  return wait;
}

// How long to wait before segments are freed again.
std::chrono::microseconds ValueGc::note_freeing(const Status& status) {
  if (!status.ok() || !m_freeing.ok()) {
    m_freeing = status;
    const std::chrono::microseconds wait = tell();
    if (!status.ok()) {
      m_requests.set_error(status);
      return wait;
    }
  }
  return kReadersGone;
}

CandidateReader::Slice ValueGc::slice_of(const SegmentValues& values, uint64_t offset) const {
  LogSegment* const segment = m_db.pool->find(values.segment_id);
  return {segment, values.epoch, offset, std::min(kSliceBytes, segment->bytes - offset)};
}

NextStep ValueGc::reading_step(IoQueue& io) {
  if (m_offset >= candidate().end) {
    finish_candidates();
    return NextStep::now();
  }
  if (m_reader.reading()) {
    return NextStep::on_event();
  }
  const CandidateReader::Slice slice = slice_of(candidate(), m_offset);
  m_reader.start(io, slice);
  if (m_reader.reading()) {
    return NextStep::on_event();
  }
  Status status = m_reader.take(&m_bytes);
  if (status.ok()) {
    status = parse_slice(slice.bytes);
  }
  if (!status.ok()) {
    give_up(candidate().epoch, status);
  } else if (m_phase == Phase::moving) {
    read_ahead(io);
  }
  return NextStep::now();
}

// Of this candidate, or of the next one: which nobody else marks pending-free while it is being read.
void ValueGc::read_ahead(IoQueue& io) {
  if (m_offset < candidate().end) {
    m_reader.start(io, slice_of(candidate(), m_offset));
    return;
  }
  if (m_chosen.empty() && !m_requests.serving()) {
    const LogFiles files = m_db.pool->files();
    std::vector<SealedSegment> choice = choose(files);
    std::erase_if(choice, [this](const SealedSegment& one) { return one.values.epoch == candidate().epoch; });
    if (!choice.empty() && plan(choice, files).way == Way::whole) {
      m_chosen.push_back(choice.front().values);
    }
  }
  if (!m_chosen.empty()) {
    m_reader.start(io, slice_of(m_chosen.front(), kLogBlockBytes));
  }
}

// Takes the records from m_offset on, of which `slice` bytes were read, as many as are whole.
Status ValueGc::parse_slice(uint64_t slice) {
  const uint64_t left = m_segment->bytes - m_offset;
  m_slice.begin();
  const auto addresses = m_addresses.find(candidate().epoch);
  ValueCollector collector(addresses == m_addresses.end() ? nullptr : &addresses->second, m_offset, &m_slice.values);
  uint64_t used = 0;
  for (bool more = true; more;) {
    more = false;
    record_header_t header;
    while (used + kLogBlockBytes <= slice &&
           decode_record_header({m_bytes.data() + used, kLogBlockBytes}, m_db.pool->uuid(), &header) &&
           header.epoch == candidate().epoch && header.padded_bytes() <= left - used) {
      if (header.padded_bytes() > slice - used) {
        if (used == 0) {  // one record larger than a slice
          slice = header.padded_bytes();
          m_bytes.reserve(slice);
          VTKV_RETURN_IF_ERROR(m_segment->file->read(m_offset, slice, m_bytes.data()));
          more = true;
        }
        break;
      }
      const std::string_view body(m_bytes.data() + used + sizeof(header), header.body_bytes);
      if (crc32c(body) != header.body_crc) {
        break;
      }
      const LogAddress address{candidate().segment_id, candidate().epoch, m_offset + used + sizeof(header)};
      VTKV_RETURN_IF_ERROR(for_each_batch(header, body, address, collector));
      used += header.padded_bytes();
    }
  }
  if (used == 0) {
    return Status::corruption(m_segment->path + ": the record at offset " + std::to_string(m_offset) +
                              " is damaged; the segment is not collected");
  }
  m_offset += used;
  std::sort(m_slice.values.begin(), m_slice.values.end(), [](const Relocation& a, const Relocation& b) {
    return a.key != b.key ? a.key < b.key : a.pointer.offset < b.pointer.offset;
  });
  m_phase = Phase::moving;
  return Status();
}

// Looks for what the tree points to next in the candidates.
NextStep ValueGc::scanning_step() {
  m_slice.begin();
  Status status;
  if (!m_scan.at_end()) {
    const auto version = m_db.tree->current();
    status = m_way == Way::index_filtered ? m_scan.find_addresses(*version, &m_addresses)
                                          : m_scan.find(*version, kSliceBytes, &m_slice.values);
  }
  if (!status.ok()) {
    m_addresses.clear();  // not all of them
    m_scan_failed_at = m_scan.next_key();
    give_up(kScan, status);
  } else if (!m_slice.values.empty()) {
    m_slice.fetched = false;
    m_phase = Phase::moving;
  } else if (m_scan.at_end()) {
    m_way == Way::index_filtered ? sort_addresses() : finish_candidates();
  }
  return NextStep::now();
}

// The candidates are read next, one after the other.
void ValueGc::sort_addresses() {
  for (const SegmentValues& values : m_candidates) {
    std::vector<uint64_t>& addresses = m_addresses[values.epoch];
    std::sort(addresses.begin(), addresses.end());
  }
  m_chosen.assign(m_candidates.begin(), m_candidates.end());
  m_candidates.clear();
  m_phase = Phase::idle;
}

// What was found alive is on its way.
NextStep ValueGc::fetching_step() {
  if (m_scan.reading()) {
    return NextStep::on_event();
  }
  m_slice.fetched = true;
  m_phase = Phase::moving;
  for (size_t i = 0; i < m_slice.values.size(); ++i) {
    if (const Status status = m_scan.take(i, &m_slice.values[i]); !status.ok()) {
      give_up(m_slice.values[i].pointer.epoch,
              Status::make(status.code(), std::string(status.message()) + "; the segment is not collected"));
      break;
    }
  }
  return NextStep::now();
}

// Most are dead, and most of these by what the tree knows.
Status ValueGc::is_live(const ReadState& state, AscendingLookups* lookups, const Relocation& value, bool* live) const {
  Lookup result = Lookup::absent;
  std::string found;
  VTKV_RETURN_IF_ERROR(lookups->get(value.key, &result, &found));
  ValuePointer pointer;
  *live = result == Lookup::pointer && pointer.decode(found) && pointer.epoch == value.pointer.epoch &&
          pointer.offset == value.pointer.offset &&
          // What a memtable knows of the key is newer than anything in the candidate: that is in the tree.
          std::none_of(state.memtables.begin(), state.memtables.end(),
                       [&](const auto& memtable) { return memtable->touches(value.key, 0); });
  return Status();
}

// Keeps of the values from m_slice.next on those that are alive. Code::busy: ask again soon. Any other error is of the
// value that m_slice.next then names.
Status ValueGc::check_slice() {
  SequenceNumber checked = 0;
  const std::shared_ptr<const ReadState> state = m_db.states->checked_state(&checked);
  // A memtable whose flush has just ended still hides what it became: its values are not pointers.
  const bool hides = std::any_of(state->memtables.begin(), state->memtables.end(), [this](const auto& memtable) {
    return !memtable->empty() && memtable->last_sequence() <= m_flushed;
  });
  if (hides && !mutated(Mutation::candidate_looked_up_behind_memtable)) {
    return Status::busy("a memtable that was flushed is still being read");
  }
  const std::unique_ptr<AscendingLookups> lookups = state->version->ascending_lookups();
  std::vector<Relocation> live;
  m_lookups.fetch_add(m_slice.values.size() - m_slice.next, std::memory_order_relaxed);
  for (size_t i = m_slice.next; i < m_slice.values.size(); ++i) {
    if (m_stop.load(std::memory_order_relaxed)) {
      return Status::failed("the database is being closed");
    }
    bool is = false;
    if (const Status status = is_live(*state, lookups.get(), m_slice.values[i], &is); !status.ok()) {
      m_slice.next = i;
      return status;
    }
    if (is) {
      live.push_back(m_slice.values[i]);
    }
  }
  m_slice.values = std::move(live);
  m_slice.next = 0;
  m_slice.checked = checked;
  return Status();
}

// False: the log's progress, or a memtable's flush, will wake us. The log looks at the flag after it has moved on, we
// look after we have set it.
bool ValueGc::may_relocate() {
  m_waits_for_log.store(true);
  m_unwritten.forget_logged(m_db.pipeline->logged_sequence());
  if (m_unwritten.bytes() >= unwritten_bytes_most(m_options.memtable_bytes) / kUnwrittenShare ||
      m_db.states->memtables_are_crowded(m_options.memtable_bytes)) {
    return false;
  }
  m_waits_for_log.store(false);
  return true;
}

NextStep ValueGc::moving_step() {
  if (m_slice.checked == 0) {
    const Status status = check_slice();
    if (status.code() == Status::Code::busy) {
      return NextStep::later(kCheckAgain);
    }
    if (!status.ok()) {
      give_up(m_slice.values[m_slice.next].pointer.epoch,
              Status::make(status.code(), std::string(status.message()) + "; a segment of the log is not collected"));
    }
    return NextStep::now();  // the look-ups took a while
  }
  if (m_way == Way::sparse && !m_slice.fetched) {
    m_scan.read(m_slice.values, [this] { m_db.workers->wake(Workers::Role::gc); });
    m_phase = Phase::fetching;
    return NextStep::now();
  }
  while (m_slice.next < m_slice.values.size()) {
    if (!may_relocate()) {
      return NextStep::on_event();
    }
    const size_t first = m_slice.next;
    size_t bytes = 0;
    size_t end = first;
    for (; end < m_slice.values.size() && end - first < kBatchValues && bytes < kBatchBytes; ++end) {
      bytes += m_slice.values[end].key.size() + m_slice.values[end].value.size();
    }
    Relocated relocated;
    const Status status = m_db.relocator->relocate({&m_slice.values[first], end - first}, m_slice.checked, &relocated);
    if (status.ok()) {
      m_slice.next = end;
      m_unwritten.add(relocated.last, relocated.bytes);
      m_moved_bytes.fetch_add(relocated.bytes, std::memory_order_relaxed);
      m_moved_values += relocated.values;
      continue;
    }
    if (status.code() == Status::Code::busy) {
      m_slice.checked = 0;
      return NextStep::now();
    }
    stop_with(status);
    return NextStep::now();
  }
  m_phase = m_way == Way::sparse ? Phase::scanning : Phase::reading;
  return NextStep::now();
}

void ValueGc::stop_with(const Status& status) {
  m_phase = Phase::idle;
  m_requests.set_error(status);
}

void ValueGc::finish_candidates() {
  const SequenceNumber now = m_db.states->visible();
  VTKV_ASSERT(now >= m_flushed);
  for (const SegmentValues& candidate : m_candidates) {
    m_pending_free.add(candidate.epoch, now);
    m_gain.emptied(m_db.pool->find(candidate.segment_id)->bytes);
    m_addresses.erase(candidate.epoch);
    release_from_quarantine(candidate.epoch);
  }
  m_phase = Phase::idle;
  if (m_requests.serving(GcRequest::round)) {
    end_request();
  }
}

// --- freeing ------------------------------------------------------------------------------------------

// The four steps of the header's comment.
Status ValueGc::free_pending(bool* did) {
  if (m_pending_free.empty()) {
    return Status();
  }
  SequenceNumber checkpoint = m_db.tree->newest_log_position().sequence;
  SequenceNumber snapshot = m_db.states->oldest_snapshot();
  if (m_pending_free.wants_checkpoint(checkpoint, m_db.pool->files())) {
    m_db.request_flush();
  }
  if (mutated(Mutation::segment_recycled_early)) {
    checkpoint = snapshot = UINT64_MAX;
  }
  if (m_pending_free.any_unneeded(checkpoint, snapshot)) {
    m_pending_free.enter_reader_epoch(checkpoint, snapshot, m_db.states->start_reader_epoch());
  }
  const std::set<uint64_t> epochs = m_pending_free.unread(
      [this](uint64_t reader_epoch) { return m_db.states->reader_epoch_has_ended(reader_epoch); });
  if (epochs.empty()) {
    return Status();
  }
  VTKV_RETURN_IF_ERROR(m_db.tree->forget_segments(epochs));
  m_pending_free.remove(epochs);
  m_freed_segments.fetch_add(epochs.size(), std::memory_order_relaxed);
  m_db.segments_freed();
  *did = true;
  return Status();
}

}  // namespace vtkv
