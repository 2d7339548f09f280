// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_pipeline.h"

#include <algorithm>

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {

constexpr size_t kMaxBodyBytes = 1u << 20;       // of a record, unless one batch is larger
constexpr size_t kMaxUnflushedGroups = 1;        // besides the ones being flushed
constexpr size_t kMaxUnflushedHeavy = 16;        // under a heavy load
constexpr size_t kMaxLogWritesHeavy = 3;         // in flight
constexpr size_t kHeavyBytes = 256u << 10;       // waiting for a record
// Queued data that is not left until the worker wakes up by itself. Less is written beside the record that waits, too,
// in hardly more time than that takes; the worker is woken less often, and neighbours share more requests.
constexpr size_t kEarlyDataBytes = 128u << 10;

}  // namespace

CommitPipeline::CommitPipeline(Env* env, const Options& options, SegmentPool* pool, const Uuid& uuid,
                               const LogPosition& start, SequenceNumber horizon, CommitObserver* observer)
    : m_env(env),
      m_options(options),
      m_observer(observer),
      m_writer(env, pool, uuid),
      // Beside the memtable that refers to it, it is small.
      m_queue(std::clamp<size_t>(std::min<size_t>(pool->segment_bytes() / 32, options.memtable_bytes / 8), 4096,
                                 WriteBuffer::kUsualBytes)),
      m_progress(start.sequence, horizon),
      m_data(options, &m_requests, &m_counters),
      m_flush(options, pool),
      m_horizon_told(horizon) {
  m_writer.start_after(start);
  m_queue.start_after(start);
}

CommitPipeline::~CommitPipeline() = default;

void CommitPipeline::start() {
  m_worker.start(m_env, m_options.io_depth, [this](IoQueue& io) { return step(io); });
}

void CommitPipeline::stop() { m_worker.stop(); }

// --- called by the database ---------------------------------------------------------------------------

// With step(): this looks at the threshold after the queue has the submission, the worker at the queue after it has
// set the threshold. So one of them sees the other.
bool CommitPipeline::enqueue(Submission* submission) {
  const bool relaxed = submission->relaxed;  // from here on it may end at any time
  m_outstanding.fetch_add(1);
  m_progress.enqueued(submission->last_sequence);
  const CommitQueue::Waiting waiting = m_queue.enqueue(submission);
  return relaxed || waiting.data_bytes >= kEarlyDataBytes || waiting.submissions >= m_wake_at.load();
}

void CommitPipeline::want_durable(SequenceNumber sequence) {
  SequenceNumber wanted = m_wanted_durable.load();
  while (wanted < sequence && !m_wanted_durable.compare_exchange_weak(wanted, sequence)) {
  }
}

bool CommitPipeline::append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last,
                            std::shared_ptr<WriteBuffer>* write_buffer, std::string_view* copy) {
  m_write_buffer_bytes.fetch_add(encoded.size());
  m_progress.enqueued(last);
  // Counted before the worker can see it.
  m_outstanding.fetch_add(1);
  const bool opened = m_queue.append(encoded, sequence_count, last, m_env->now_us(), write_buffer, copy);
  if (!opened) {
    m_outstanding.fetch_sub(1);
  }
  return opened;
}

void CommitPipeline::checkpoint_advanced(SequenceNumber sequence) {
  if (m_progress.raise_horizon(sequence)) {
    wake_unless_stopped();
  }
}

void CommitPipeline::fail(const Status& status) {
  m_failure.set(status);
  wake_unless_stopped();
}

void CommitPipeline::add_statistics(DBStatistics* statistics) const {
  statistics->durable_sequence = m_progress.durable();
  m_counters.add_to(statistics);
}

// --- the worker ---------------------------------------------------------------------------------------

NextStep CommitPipeline::step(IoQueue& io) {
  const NextStep next = do_step(io);
  tell_pacer();
  return next;
}

NextStep CommitPipeline::do_step(IoQueue& io) {
  std::chrono::microseconds wait{0};
  std::chrono::microseconds linger{0};
  std::chrono::microseconds flush_due{0};
  for (bool progress = true; progress;) {
    progress = reap(io);
    if (failed()) {
      m_wake_at.store(0);
      drain_failed(io);
      return NextStep::on_event();
    }
    progress |= dequeue(io, &linger);
    progress |= start_flush(io, &flush_due);
    progress |= may_form(&wait) && form_record(io);
    tell_horizon();
    if (!progress) {
      m_wake_at.store(wake_threshold());
      const size_t waiting = m_queue.waiting();
      progress = waiting > 0 && waiting >= m_wake_at.load();
    }
  }
  if (m_groups.size() == 1 && !m_groups.flushing() && m_dequeued.ungrouped() == 0) {
    io.await_all();  // what the flush of that group waits for
  }
  for (const std::chrono::microseconds other : {linger, flush_due}) {
    if (wait.count() == 0 || (other.count() > 0 && other < wait)) {
      wait = other;
    }
  }
  return wait.count() > 0 ? NextStep::later(wait) : NextStep::on_event();
}

void CommitPipeline::tell_horizon() {
  if (const SequenceNumber horizon = reuse_horizon(); horizon != m_horizon_told) {
    m_horizon_told = horizon;
    if (m_options.on_reuse_horizon) {
      m_options.on_reuse_horizon(horizon);
    }
  }
}

bool CommitPipeline::dequeue(IoQueue& io, std::chrono::microseconds* wait) {
  const size_t first = m_dequeued.size();
  if (!m_dequeued.take(m_queue, m_env->now_us(), wait)) {
    return false;
  }
  m_data.start(io, m_dequeued, first);
  return true;
}

// --- records ------------------------------------------------------------------------------------------

// Should what waits for a record wait on, for the end of the flush or for more? *wait: at most so long; 0: for the
// flush. A full record goes at once, and so does one that nobody waits for.
bool CommitPipeline::delays_group_commit(std::chrono::microseconds* wait) {
  if (m_dequeued.ungrouped_waiters() == 0 || m_dequeued.ungrouped_bytes() >= kMaxBodyBytes) {
    return false;
  }
  if (awaits_flush()) {
    return true;
  }
  tell_pacer();
  *wait = m_pacer->hold(m_paced, m_env->now_us());
  m_is_held = wait->count() > 0;
  return m_is_held;
}

// A record that needs a sync of its own files will not ask for a flush that others could share.
void CommitPipeline::tell_pacer(size_t more_waiting) {
  const bool asks_soon = !failed() && !m_groups.flushing() && m_groups.unflushed_strict() > 0 &&
                         !m_flush.needs_own_sync(m_groups[m_groups.size() - 1]);
  m_pacer->update(&m_paced, m_dequeued.ungrouped_waiters() + more_waiting, asks_soon);
}

void CommitPipeline::be_paced_by(GroupPacer* pacer) {
  if (pacer != m_pacer) {
    m_pacer->leave(&m_paced);
    m_pacer = pacer;
  }
}

// See m_wake_at. Nothing is formed before the log is written and flushed, or else when all who are expected are there.
size_t CommitPipeline::wake_threshold() const {
  if (awaits_flush() || m_groups.log_writes() > 0 || m_awaits_memory) {
    return SIZE_MAX;
  }
  return m_is_held ? m_pacer->missing_of_each() : 0;
}

// Records up to the newest flush point are formed all the same: without them no memtable could be flushed.
bool CommitPipeline::awaits_memory() const {
  return m_dequeued.ungrouped() > 0 &&
         m_dequeued[m_dequeued.first_ungrouped()].last_sequence > m_queue.newest_flush_point() &&
         m_observer->memtables_are_crowded();
}

bool CommitPipeline::may_form(std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  m_is_held = false;
  m_awaits_memory = awaits_memory();
  const bool heavy = m_dequeued.ungrouped_bytes() >= kHeavyBytes;
  const size_t unflushed_max =
      (heavy ? kMaxUnflushedHeavy : kMaxUnflushedGroups) + (mutated(Mutation::watermark_per_group) ? 1 : 0);
  const size_t held_back = m_groups.written_are_relaxed() ? m_groups.written_unflushed() : 0;
  if (m_awaits_memory || m_dequeued.ungrouped() == 0 || m_groups.log_writes() >= (heavy ? kMaxLogWritesHeavy : 1) ||
      m_groups.unflushed() - held_back >= unflushed_max || held_back >= kMaxRelaxedGroups ||
      (held_back > 0 && m_groups.written_bytes() >= kMaxRelaxedBytes)) {
    return false;
  }
  // What comes during a slow flush shares the next one; and large data would hold up its whole group.
  const DequeuedWrite& first = m_dequeued[m_dequeued.first_ungrouped()];
  if ((m_flush.is_slow() && !first.is_relaxed()) || (m_dequeued.size() > 1 && first.awaits_large_data())) {
    return false;
  }
  if (delays_group_commit(wait)) {
    return false;
  }
  const std::chrono::microseconds delay = m_observer->throttle_delay();
  if (delay.count() > 0) {
    *wait = m_interval.hold(delay, m_env->now_us());
  }
  return wait->count() == 0;
}

size_t CommitPipeline::choose_batches(size_t* chosen_bytes) {
  // A flush point asked for after this look is that of the newest submission; nothing newer can be among
  // the dequeued ones, so the record ends with it or before it in any case.
  const SequenceNumber flush_point = m_queue.next_flush_point();
  size_t bytes = 0;
  size_t count = 0;
  uint64_t limit = kMaxBodyBytes;
  m_views.clear();
  *chosen_bytes = 0;
  for (size_t i = m_dequeued.first_ungrouped(); i < m_dequeued.size(); ++i) {
    const DequeuedWrite& dequeued = m_dequeued[i];
    if (count > 0 && (dequeued.fragment || dequeued.awaits_large_data())) {
      break;
    }
    bytes += sizeof(batch_frame_t) + dequeued.encoded().size();
    if (count == 0) {
      limit = std::min(limit, bytes <= m_writer.room() ? m_writer.room() : m_writer.segment_room());
    } else if (bytes > limit) {
      break;
    }
    m_views.push_back({dequeued.sequence_count(), dequeued.encoded(), dequeued.address()});
    *chosen_bytes += dequeued.encoded().size();
    ++count;
    if (dequeued.fragment || dequeued.last_sequence == flush_point) {
      break;
    }
  }
  return count;
}

bool CommitPipeline::form_record(IoQueue& io) {
  size_t bytes = 0;
  const size_t count = choose_batches(&bytes);
  CommitGroup& group = m_groups.open();
  const size_t first = m_dequeued.first_ungrouped();
  SequenceNumber durable_seq = durable_sequence();
  if (mutated(Mutation::watermark_ahead_of_flush) && first > 0) {
    durable_seq = m_dequeued[first - 1].last_sequence;
  }
  group.begin(m_dequeued[first], count);
  WriteBuffer* const lone = count == 1 ? m_dequeued[first].write_buffer.get() : nullptr;
  const Status status = m_writer.form(m_views, durable_seq, group.continues ? kContinues : 0, &group.record,
                                      lone ? lone->buffer().data() : nullptr);
  if (!status.ok()) {
    fail(status);
    return true;
  }
  for (size_t i = first; i < first + count; ++i) {
    group.add(m_dequeued[i]);
  }
  group.bytes += group.record.write_bytes;
  group.formed_us = group.relaxed ? m_env->now_us() : 0;
  m_groups.formed(group);
  m_dequeued.grouped(count, group.waiters, bytes);
  if (!group.relaxed) {
    m_pacer->record_formed();
  }
  m_queue.record_formed(group.record.position);
  write_record(io, &group);
  return true;
}

void CommitPipeline::write_record(IoQueue& io, CommitGroup* group) {
  const FormedRecord& record = group->record;
  CommitRequest* const request =
      m_requests.take(CommitRequest::Kind::log, IoRequest::Op::write, record.segment->file.get(), record.write_offset);
  request->group = group;
  request->io.buffers.push_back({const_cast<char*>(record.data), record.write_bytes});
  m_groups.log_write_began();
  if (uint64_t held_us = 0; m_interval.formed(m_env->now_us(), &held_us)) {
    m_counters.count_throttled(held_us);
  }
  m_counters.count_group(record.write_bytes);
  io.submit(&request->io);
}

}  // namespace vtkv
