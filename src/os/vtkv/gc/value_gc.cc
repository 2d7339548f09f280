// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/value_gc.h"

#include <algorithm>
#include <set>

#include "vtkv/gc/value_collector.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"
#include "vtkv/wal/log_sweep.h"
#include "vtkv/wal/write_buffer.h"

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
constexpr uint64_t kWaitingShare = 12;              // of the log: emptied and waiting for a checkpoint

}  // namespace

ValueGc::ValueGc(const Options& options, Tree* tree, SegmentPool* pool, const ValueReader* reader,
                 ValueFetcher* fetcher, ValueGcHost* host)
    : m_options(options), m_tree(tree), m_pool(pool), m_host(host), m_scan(reader, fetcher, &m_stop) {}

uint64_t ValueGc::request(Request what) {
  // One that nobody has taken up yet is served as well: the kinds grow with what they do.
  Request asked = m_request.load();
  while (asked < what && !m_request.compare_exchange_weak(asked, what)) {
  }
  return m_requested.fetch_add(1) + 1;
}

Status ValueGc::error() const {
  MutexLock lock(m_error_lock);
  return m_error;
}

// --- steps -----------------------------------------------------------------------------------------------

// `choice`: best first, not empty.
void ValueGc::start(const std::vector<SegmentValues>& choice) {
  GcPlan planned = plan(choice);
  m_way = planned.way;
  m_candidates = std::move(planned.candidates);
  if (m_way == Way::whole) {
    start_reading(choice.front());
    return;
  }
  std::vector<uint64_t> epochs;
  for (const SegmentValues& values : m_candidates) {
    epochs.push_back(values.epoch);
  }
  m_flushed = m_tree->newest_log_position().sequence;
  m_addresses.clear();
  m_scan.start(std::move(epochs));
  m_phase = Phase::scanning;
}

void ValueGc::start_reading(const SegmentValues& values) {
  m_flushed = m_tree->newest_log_position().sequence;
  m_way = m_addresses.contains(values.epoch) ? Way::index_filtered : Way::whole;
  m_candidates.assign(1, values);
  m_segment = m_pool->find(values.segment_id);
  m_offset = kLogBlockBytes;
  m_phase = Phase::reading;
}

void ValueGc::take_request() {
  if (m_serving == 0 && m_requested.load() > m_served.load()) {
    m_serving = m_requested.load();
    m_serving_what = m_request.exchange(Request::settle);
    m_full_below = m_tree->newest_log_position().epoch;
    if (m_serving_what == Request::full) {
      m_quarantine.hurry(m_host->gc_now_us());
    }
    m_failures_before = m_quarantine.failures();
    MutexLock lock(m_error_lock);
    m_error = Status();
  }
}

void ValueGc::end_request() {
  VTKV_ASSERT(m_serving > m_served.load());
  m_served.store(m_serving);
  m_serving = 0;
  m_host->gc_finished();
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
  if (status.ok() && (m_serving == 0 || m_serving_what != Request::settle) && try_or_start()) {
    return NextStep::now();
  }
  m_bytes = AlignedBuffer();
  if (!m_reader.reading()) {
    m_reader.clear();
  }
  m_scan.clear();
  m_values = {};
  if (m_serving > 0) {
    end_request();
    return NextStep::now();
  }
  // Otherwise a flush, a released snapshot or a request wakes us; a reader that ends does not.
  const bool waits = std::any_of(m_pending_free.begin(), m_pending_free.end(),
                                 [](const PendingFree& pending) { return pending.in_reader_epoch; });
  const auto retry = status.ok() ? m_quarantine.wait(m_host->gc_now_us()) : std::nullopt;
  if (did || !(waits || retry)) {
    return did ? NextStep::now() : NextStep::on_event();
  }
  return NextStep::later(waits && retry ? std::min(wait, *retry) : waits ? wait : *retry);
}

// How long to wait before segments are freed again.
std::chrono::microseconds ValueGc::note_freeing(const Status& status) {
  if (!status.ok() || !m_freeing.ok()) {
    m_freeing = status;
    const std::chrono::microseconds wait = tell();
    if (!status.ok()) {
      MutexLock lock(m_error_lock);
      m_error = status;
      return wait;
    }
  }
  return kReadersGone;
}

CandidateReader::Slice ValueGc::slice_of(const SegmentValues& values, uint64_t offset) const {
  LogSegment* const segment = m_pool->find(values.segment_id);
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
  if (m_chosen.empty() && m_serving == 0) {
    std::vector<SegmentValues> choice = choose();
    std::erase_if(choice, [this](const SegmentValues& values) { return values.epoch == candidate().epoch; });
    if (!choice.empty() && plan(choice).way == Way::whole) {
      m_chosen.push_back(choice.front());
    }
  }
  if (!m_chosen.empty()) {
    m_reader.start(io, slice_of(m_chosen.front(), kLogBlockBytes));
  }
}

// Takes the records from m_offset on, of which `slice` bytes were read, as many as are whole.
Status ValueGc::parse_slice(uint64_t slice) {
  const uint64_t left = m_segment->bytes - m_offset;
  m_values.clear();
  const auto addresses = m_addresses.find(candidate().epoch);
  ValueCollector collector(addresses == m_addresses.end() ? nullptr : &addresses->second, m_offset, &m_values);
  uint64_t used = 0;
  for (bool more = true; more;) {
    more = false;
    record_header_t header;
    while (used + kLogBlockBytes <= slice &&
           decode_record_header({m_bytes.data() + used, kLogBlockBytes}, m_pool->uuid(), &header) &&
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
  std::sort(m_values.begin(), m_values.end(), [](const Relocation& a, const Relocation& b) {
    return a.key != b.key ? a.key < b.key : a.pointer.offset < b.pointer.offset;
  });
  m_next_value = 0;
  m_checked = 0;
  m_phase = Phase::moving;
  return Status();
}

// Looks for what the tree points to next in the candidates.
NextStep ValueGc::scanning_step() {
  m_values.clear();
  m_next_value = 0;
  m_checked = 0;
  Status status;
  if (!m_scan.at_end()) {
    const auto version = m_tree->current();
    status = m_way == Way::index_filtered ? m_scan.find_addresses(*version, &m_addresses)
                                          : m_scan.find(*version, kSliceBytes, &m_values);
  }
  if (!status.ok()) {
    m_addresses.clear();  // not all of them
    m_scan_failed_at = m_scan.next_key();
    give_up(kScan, status);
  } else if (!m_values.empty()) {
    m_fetched = false;
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
  m_fetched = true;
  m_phase = Phase::moving;
  for (size_t i = 0; i < m_values.size(); ++i) {
    if (const Status status = m_scan.take(i, &m_values[i]); !status.ok()) {
      give_up(m_values[i].pointer.epoch,
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

// Keeps of the values from m_next_value on those that are alive. Code::busy: ask again soon. Any other error is of the
// value that m_next_value then names.
Status ValueGc::check_slice() {
  SequenceNumber checked = 0;
  const std::shared_ptr<const ReadState> state = m_host->gc_read_state(&checked);
  // A memtable whose flush has just ended still hides what it became: its values are not pointers.
  const bool hides = std::any_of(state->memtables.begin(), state->memtables.end(), [this](const auto& memtable) {
    return !memtable->empty() && memtable->last_sequence() <= m_flushed;
  });
  if (hides && !mutated(Mutation::candidate_looked_up_behind_memtable)) {
    return Status::busy("a memtable that was flushed is still being read");
  }
  const std::unique_ptr<AscendingLookups> lookups = state->version->ascending_lookups();
  std::vector<Relocation> live;
  m_lookups.fetch_add(m_values.size() - m_next_value, std::memory_order_relaxed);
  for (size_t i = m_next_value; i < m_values.size(); ++i) {
    if (m_stop.load(std::memory_order_relaxed)) {
      return Status::failed("the database is being closed");
    }
    bool is = false;
    if (const Status status = is_live(*state, lookups.get(), m_values[i], &is); !status.ok()) {
      m_next_value = i;
      return status;
    }
    if (is) {
      live.push_back(m_values[i]);
    }
  }
  m_values = std::move(live);
  m_next_value = 0;
  m_checked = checked;
  return Status();
}

// False: the log's progress will wake us. It looks at the flag after it has moved on, we look after we have set it.
bool ValueGc::may_relocate() {
  m_waits_for_log.store(true);
  const SequenceNumber logged = m_host->gc_logged_sequence();
  while (!m_relocating.empty() && m_relocating.front().last <= logged) {
    m_relocating_bytes -= m_relocating.front().bytes;
    m_relocating.pop_front();
  }
  if (m_relocating_bytes >= unwritten_bytes_most(m_options.memtable_bytes) / kUnwrittenShare) {
    return false;
  }
  m_waits_for_log.store(false);
  return true;
}

NextStep ValueGc::moving_step() {
  if (m_checked == 0) {
    const Status status = check_slice();
    if (status.code() == Status::Code::busy) {
      return NextStep::later(kCheckAgain);
    }
    if (!status.ok()) {
      give_up(m_values[m_next_value].pointer.epoch,
              Status::make(status.code(), std::string(status.message()) + "; a segment of the log is not collected"));
    }
    return NextStep::now();  // the look-ups took a while
  }
  if (m_way == Way::sparse && !m_fetched) {
    m_scan.read(m_values, [this] { m_host->gc_wake(); });
    m_phase = Phase::fetching;
    return NextStep::now();
  }
  while (m_next_value < m_values.size()) {
    if (!may_relocate()) {
      return NextStep::on_event();
    }
    const size_t first = m_next_value;
    size_t bytes = 0;
    size_t end = first;
    for (; end < m_values.size() && end - first < kBatchValues && bytes < kBatchBytes; ++end) {
      bytes += m_values[end].key.size() + m_values[end].value.size();
    }
    SequenceNumber last = 0;
    const Status status = m_host->gc_relocate(&m_values[first], end - first, m_checked, &last);
    if (status.ok()) {
      m_next_value = end;
      m_relocating.push_back({last, bytes});
      m_relocating_bytes += bytes;
      m_moved_bytes.fetch_add(bytes, std::memory_order_relaxed);
      continue;
    }
    if (status.code() == Status::Code::busy) {
      m_checked = 0;
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
  MutexLock lock(m_error_lock);
  m_error = status;
}

void ValueGc::finish_candidates() {
  SequenceNumber now = 0;
  (void)m_host->gc_read_state(&now);
  VTKV_ASSERT(now >= m_flushed);
  for (const SegmentValues& candidate : m_candidates) {
    VTKV_ASSERT(!is_pending_free(candidate.epoch));
    m_pending_free.push_back({candidate.epoch, now, false, 0});
    m_addresses.erase(candidate.epoch);
    release_from_quarantine(candidate.epoch);
  }
  m_phase = Phase::idle;
  if (m_serving > 0 && m_serving_what == Request::round) {
    end_request();
  }
}

// --- freeing ------------------------------------------------------------------------------------------

// Without one, what was emptied would wait for the next that comes by itself, and the log be larger by so much.
void ValueGc::ask_for_checkpoint(SequenceNumber checkpoint) {
  uint64_t waiting_bytes = 0;
  SequenceNumber newest = 0;
  for (const PendingFree& pending : m_pending_free) {
    if (pending.gc_seq > checkpoint) {
      waiting_bytes += m_pool->bytes_of_epoch(pending.epoch);
      newest = std::max(newest, pending.gc_seq);
    }
  }
  if (waiting_bytes * kWaitingShare >= m_pool->used_bytes() && m_asked <= checkpoint && newest > 0) {
    m_asked = newest;
    m_host->gc_request_flush();
  }
}

// The four steps of the header's comment.
Status ValueGc::free_pending(bool* did) {
  if (m_pending_free.empty()) {
    return Status();
  }
  const SequenceNumber checkpoint = m_tree->newest_log_position().sequence;
  const SequenceNumber snapshot = m_host->gc_oldest_snapshot();
  ask_for_checkpoint(checkpoint);
  std::vector<PendingFree*> ready;
  for (PendingFree& pending : m_pending_free) {
    const bool safe =
        mutated(Mutation::segment_recycled_early) || (pending.gc_seq <= checkpoint && pending.gc_seq <= snapshot);
    if (!pending.in_reader_epoch && safe) {
      ready.push_back(&pending);
    }
  }
  if (!ready.empty()) {
    const uint64_t reader_epoch = m_host->gc_start_reader_epoch();
    for (PendingFree* pending : ready) {
      pending->in_reader_epoch = true;
      pending->reader_epoch = reader_epoch;
    }
  }
  std::set<uint64_t> epochs;
  for (const PendingFree& pending : m_pending_free) {
    if (pending.in_reader_epoch && m_host->gc_reader_epoch_has_ended(pending.reader_epoch)) {
      epochs.insert(pending.epoch);
    }
  }
  if (epochs.empty()) {
    return Status();
  }
  VTKV_RETURN_IF_ERROR(m_tree->forget_segments(epochs));
  std::erase_if(m_pending_free, [&](const PendingFree& pending) { return epochs.contains(pending.epoch); });
  m_freed_segments.fetch_add(epochs.size(), std::memory_order_relaxed);
  m_host->gc_released();
  *did = true;
  return Status();
}

}  // namespace vtkv
