// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/commit_pipeline.h"

#include <algorithm>

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"
#include "vtkv/wal/commit_group.h"

namespace vtkv {

namespace {

constexpr size_t kMaxBodyBytes = 1u << 20;       // of a record, unless one batch is larger
constexpr size_t kMaxRequestBuffers = 512;       // of one coalesced data write
constexpr size_t kMaxRequestBytes = 1u << 20;    // beyond this, joining requests gains nothing
constexpr size_t kMaxUnflushedGroups = 1;        // besides the ones being flushed
constexpr size_t kMaxUnflushedHeavy = 16;        // under a heavy load
constexpr size_t kMaxLogWritesHeavy = 3;         // in flight
constexpr size_t kHeavyBytes = 256u << 10;       // waiting for a record

}  // namespace

CommitPipeline::CommitPipeline(Env* env, const Options& options, SegmentPool* pool, const Uuid& uuid,
                               const LogPosition& start, SequenceNumber horizon, CommitObserver* observer)
    : m_env(env),
      m_options(options),
      m_observer(observer),
      m_pool(pool),
      m_writer(env, pool, uuid),
      m_queue(std::clamp<size_t>(pool->segment_bytes() / 32, 4096, WriteBuffer::kUsualBytes)),
      m_durable(start.sequence),
      m_logged(start.sequence),
      m_horizon(horizon),
      m_enqueued(start.sequence),
      m_horizon_told(horizon) {
  m_writer.start_after(start);
  m_queue.start_after(start);
}

CommitPipeline::~CommitPipeline() = default;

void CommitPipeline::start() {
  MutexLock lock(m_stop_lock);  // other workers may fail meanwhile
  m_worker = m_env->start_worker("vtkv_commit", m_options.io_depth, [this](IoQueue& io) { return step(io); });
}

void CommitPipeline::stop() {
  {
    MutexLock lock(m_stop_lock);
    m_stopped = true;
  }
  m_worker.reset();
}

void CommitPipeline::wake_unless_stopped() {
  MutexLock lock(m_stop_lock);
  if (!m_stopped && m_worker) {  // in this order: stop() resets it without the lock
    m_worker->wake();
  }
}

// --- called by the database ---------------------------------------------------------------------------

// With step(): this looks at the threshold after the queue has the submission, the worker at the queue after it has
// set the threshold. So one of them sees the other.
bool CommitPipeline::enqueue(Submission* submission) {
  const bool has_data = !submission->data.empty();
  m_outstanding.fetch_add(1);
  VTKV_ASSERT(submission->last_sequence >= m_enqueued.load());
  m_enqueued.store(submission->last_sequence);
  const size_t waiting = m_queue.enqueue(submission);
  return has_data || waiting >= m_wake_at.load();
}

bool CommitPipeline::append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last,
                            std::shared_ptr<WriteBuffer>* write_buffer, std::string_view* copy) {
  m_write_buffer_bytes.fetch_add(encoded.size());
  VTKV_ASSERT(last >= m_enqueued.load());
  m_enqueued.store(last);
  // Counted before the worker can see it.
  m_outstanding.fetch_add(1);
  const bool opened = m_queue.append(encoded, sequence_count, last, m_env->now_us(), write_buffer, copy);
  if (!opened) {
    m_outstanding.fetch_sub(1);
  }
  return opened;
}

SequenceNumber CommitPipeline::reuse_horizon() const {
  return mutated(Mutation::slot_reused_at_once) ? m_enqueued.load() : m_horizon.load();
}

// It never moves back. (Where a mutation moves it over a later group first, the earlier ones change nothing.)
void CommitPipeline::advance_durable(SequenceNumber to) {
  const SequenceNumber before = m_durable.load();
  VTKV_ASSERT(to >= before || mutated(Mutation::watermark_per_group));
  VTKV_ASSERT(to <= m_enqueued.load());
  m_durable.store(std::max(before, to));
}

bool CommitPipeline::raise_horizon(SequenceNumber horizon) {
  VTKV_ASSERT(horizon <= m_durable.load() || mutated(Mutation::memtable_flushed_early) ||
              mutated(Mutation::watermark_ahead_of_flush));
  SequenceNumber before = m_horizon.load();
  while (before < horizon) {
    if (m_horizon.compare_exchange_weak(before, horizon)) {
      return true;
    }
  }
  return false;
}

void CommitPipeline::checkpoint_advanced(SequenceNumber sequence) {
  if (raise_horizon(sequence)) {
    wake_unless_stopped();
  }
}

void CommitPipeline::fail(const Status& status) {
  {
    MutexLock lock(m_failure_lock);
    if (m_failure.ok()) {
      m_failure = status;
    }
  }
  m_failed.store(true);
  wake_unless_stopped();
}

Status CommitPipeline::failure() const {
  MutexLock lock(m_failure_lock);
  return Status::failed("the database stopped: " + std::string(m_failure.message()));
}

void CommitPipeline::add_statistics(DBStatistics* statistics) const {
  statistics->durable_sequence = m_durable.load();
  statistics->commit_groups = m_group_count.load(std::memory_order_relaxed);
  statistics->log_bytes = m_log_bytes.load(std::memory_order_relaxed);
  statistics->external_bytes = m_external_bytes.load(std::memory_order_relaxed);
  statistics->syncs = m_sync_count.load(std::memory_order_relaxed);
  statistics->throttled_groups = m_throttled_groups.load(std::memory_order_relaxed);
  statistics->throttled_us = m_throttled_us.load(std::memory_order_relaxed);
}

// --- the worker ---------------------------------------------------------------------------------------

NextStep CommitPipeline::step(IoQueue& io) {
  std::chrono::microseconds wait{0};
  std::chrono::microseconds linger{0};
  for (bool progress = true; progress;) {
    progress = reap(io);
    if (m_failed.load()) {
      m_wake_at.store(0);
      drain_failed(io);
      return NextStep::on_event();
    }
    progress |= dequeue(io, &linger);
    progress |= start_flush(io);
    progress |= may_form(&wait) && form_record(io);
    if (const SequenceNumber horizon = reuse_horizon(); horizon != m_horizon_told) {
      m_horizon_told = horizon;
      m_observer->horizon_moved(horizon);
    }
    if (!progress) {
      m_wake_at.store(wake_threshold());
      const size_t waiting = m_queue.waiting();
      progress = waiting > 0 && waiting >= m_wake_at.load();
    }
  }
  if (wait.count() == 0 || (linger.count() > 0 && linger < wait)) {
    wait = linger;
  }
  return wait.count() > 0 ? NextStep::later(wait) : NextStep::on_event();
}

bool CommitPipeline::dequeue(IoQueue& io, std::chrono::microseconds* wait) {
  m_batch_of_queue.clear();
  m_queue.dequeue(m_env->now_us(), &m_batch_of_queue, wait);
  if (m_batch_of_queue.empty()) {
    return false;
  }
  const size_t first = m_dequeued.size();
  for (QueuedWrite& write : m_batch_of_queue) {
    if (write.submission && !write.submission->fragments.empty()) {
      dequeue_fragments(write.submission);
      continue;
    }
    Dequeued& dequeued = m_dequeued.emplace_back();
    dequeued.submission = write.submission;
    dequeued.write_buffer = std::move(write.write_buffer);
    dequeued.last_sequence =
        dequeued.write_buffer ? dequeued.write_buffer->last_sequence : dequeued.submission->last_sequence;
    m_ungrouped_bytes += dequeued.encoded().size();
  }
  m_ungrouped += m_dequeued.size() - first;
  m_ungrouped_waiters += static_cast<size_t>(std::count_if(m_batch_of_queue.begin(), m_batch_of_queue.end(),
                                                           [](const QueuedWrite& write) { return write.submission; }));
  start_data(io, first);
  return true;
}

void CommitPipeline::dequeue_fragments(Submission* submission) {
  SequenceNumber last = submission->last_sequence;
  for (const WriteBatch::Fragment& fragment : submission->fragments) {
    last -= fragment.sequence_count;
  }
  for (const WriteBatch::Fragment& fragment : submission->fragments) {
    Dequeued& dequeued = m_dequeued.emplace_back();
    dequeued.fragment = &fragment;
    dequeued.last_sequence = last += fragment.sequence_count;
    m_ungrouped_bytes += fragment.encoded.size();
  }
  m_dequeued.back().submission = submission;
}

CommitPipeline::Tracked* CommitPipeline::new_request() {
  if (m_spare_requests.empty()) {
    m_spare_requests.push_back(m_requests.emplace_back(std::make_unique<Tracked>()).get());
  }
  Tracked* request = m_spare_requests.back();
  m_spare_requests.pop_back();
  request->io.owner = request;
  return request;
}

void CommitPipeline::recycle(Tracked* request) {
  request->io.buffers.clear();
  request->io.result = Status();
  request->dequeued.clear();
  request->bytes = 0;
  m_spare_requests.push_back(request);
}

// --- data ---------------------------------------------------------------------------------------------

// A write to primed space is durable by any file's sync: it shares no request with one that needs its own file's, which
// may belong to a later group.
bool CommitPipeline::joins(const Tracked& request, const ExternalData& data) const {
  return request.io.file == data.file && request.primed == data.primed &&
         request.io.offset + request.bytes == data.offset && request.bytes < kMaxRequestBytes &&
         request.io.buffers.size() + data.buffers.size() <= kMaxRequestBuffers;
}

void CommitPipeline::start_data(IoQueue& io, size_t first) {
  m_slices.clear();
  m_files_seen.clear();
  for (size_t i = first; i < m_dequeued.size(); ++i) {
    Dequeued& dequeued = m_dequeued[i];
    if (!dequeued.submission) {
      continue;
    }
    for (const ExternalData& data : dequeued.submission->data) {
      if (data.buffers.empty()) {
        continue;
      }
      auto seen = std::find(m_files_seen.begin(), m_files_seen.end(), data.file);
      seen = seen != m_files_seen.end() ? seen : m_files_seen.insert(seen, data.file);
      m_slices.push_back({&data, &dequeued, static_cast<size_t>(seen - m_files_seen.begin())});
      if ((!data.primed || !m_options.single_flush) &&
          std::find(dequeued.sync_files.begin(), dequeued.sync_files.end(), data.file) == dequeued.sync_files.end()) {
        dequeued.sync_files.push_back(data.file);
      }
    }
  }
  std::stable_sort(m_slices.begin(), m_slices.end(), [](const DataSlice& a, const DataSlice& b) {
    return std::pair(a.file_rank, a.data->offset) < std::pair(b.file_rank, b.data->offset);
  });
  Tracked* request = nullptr;
  for (const DataSlice& slice : m_slices) {
    if (!request || !joins(*request, *slice.data)) {
      if (request) {
        io.submit(&request->io);
      }
      request = new_request();
      request->kind = Tracked::Kind::data;
      request->io.op = IoRequest::Op::write;
      request->io.file = slice.data->file;
      request->io.offset = slice.data->offset;
      request->primed = slice.data->primed;
    }
    for (const iovec& buffer : slice.data->buffers) {
      request->io.buffers.push_back(buffer);
      request->bytes += buffer.iov_len;
      slice.dequeued->data_bytes += buffer.iov_len;
      m_external_bytes.fetch_add(buffer.iov_len, std::memory_order_relaxed);
    }
    if (request->dequeued.empty() || request->dequeued.back() != slice.dequeued) {
      request->dequeued.push_back(slice.dequeued);
      ++slice.dequeued->data_left;
    }
  }
  if (request) {
    io.submit(&request->io);
  }
}

void CommitPipeline::data_done(Dequeued& dequeued) {
  if (--dequeued.data_left == 0) {
    dequeued.submission->data_written();
    if (dequeued.group) {
      --dequeued.group->writes_left;
    }
  }
}

// --- records ------------------------------------------------------------------------------------------

// Should what waits for a record wait on, for the end of the flush or for more? *wait: at most so long; 0: for the
// flush. A full record goes at once, and so does one that nobody waits for.
bool CommitPipeline::delays_group_commit(std::chrono::microseconds* wait) {
  if (m_ungrouped_waiters == 0 || m_ungrouped_bytes >= kMaxBodyBytes) {
    return false;
  }
  if (!m_pacer.flushing()) {
    *wait = m_pacer.hold(m_ungrouped_waiters, m_env->now_us());
    return wait->count() > 0;
  }
  return true;
}

// See m_wake_at. Nothing is formed before the log is written and flushed, or else when all who are expected are there.
size_t CommitPipeline::wake_threshold() const {
  if (m_pacer.flushing() || m_log_writes > 0) {
    return SIZE_MAX;
  }
  const size_t waiting = m_ungrouped_waiters;
  return waiting > 0 && waiting < m_pacer.expected() ? m_pacer.expected() - waiting : 0;
}

bool CommitPipeline::may_form(std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  const bool heavy = m_ungrouped_bytes >= kHeavyBytes;
  const size_t unflushed = m_groups.size() - m_flushing_groups;
  const size_t unflushed_max =
      (heavy ? kMaxUnflushedHeavy : kMaxUnflushedGroups) + (mutated(Mutation::watermark_per_group) ? 1 : 0);
  if (m_ungrouped == 0 || m_log_writes >= (heavy ? kMaxLogWritesHeavy : 1) || unflushed >= unflushed_max) {
    return false;
  }
  // What comes during a slow flush shares the next one; and large data would hold up its whole group.
  if (m_flush_is_slow || (m_dequeued.size() > 1 && m_dequeued[m_dequeued.size() - m_ungrouped].awaits_large_data())) {
    return false;
  }
  if (delays_group_commit(wait)) {
    return false;
  }
  const std::chrono::microseconds delay = m_observer->throttle_delay();
  if (delay.count() > 0) {
    const uint64_t now_us = m_env->now_us();
    const uint64_t due_us = m_last_group_us + static_cast<uint64_t>(delay.count());
    if (now_us < due_us) {
      m_held_since_us = m_held_since_us == 0 ? now_us : m_held_since_us;
      *wait = std::chrono::microseconds(due_us - now_us);
      return false;
    }
  }
  return true;
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
  for (size_t i = m_dequeued.size() - m_ungrouped; i < m_dequeued.size(); ++i) {
    const Dequeued& dequeued = m_dequeued[i];
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
  if (m_spare_groups.empty()) {
    m_spare_groups.push_back(std::make_unique<Group>());
  }
  Group& group = *m_groups.emplace_back(std::move(m_spare_groups.back()));
  m_spare_groups.pop_back();

  const size_t first = m_dequeued.size() - m_ungrouped;
  SequenceNumber durable_seq = m_durable.load();
  if (mutated(Mutation::watermark_ahead_of_flush) && first > 0) {
    durable_seq = m_dequeued[first - 1].last_sequence;
  }
  group.submissions = count;
  group.waiters = 0;
  group.writes_left = 1;
  group.logged = false;
  group.continues = m_dequeued[first].continues();
  group.sync_files.clear();
  WriteBuffer* const lone = count == 1 ? m_dequeued[first].write_buffer.get() : nullptr;
  const Status status = m_writer.form(m_views, durable_seq, group.continues ? kContinues : 0, &group.record,
                                      lone ? lone->buffer().data() : nullptr);
  if (!status.ok()) {
    fail(status);
    return true;
  }
  for (size_t i = first; i < first + count; ++i) {
    Dequeued& dequeued = m_dequeued[i];
    dequeued.group = &group;
    group.waiters += dequeued.submission ? 1 : 0;
    group.writes_left += dequeued.data_left > 0 ? 1 : 0;
    for (File* file : dequeued.sync_files) {
      add_sync_file(group, file);
    }
  }
  m_ungrouped -= count;
  m_ungrouped_waiters -= group.waiters;
  m_ungrouped_bytes -= bytes;
  m_queue.record_formed(group.record.position);

  Tracked* request = new_request();
  request->kind = Tracked::Kind::log;
  request->group = &group;
  request->io.op = IoRequest::Op::write;
  request->io.file = group.record.segment->file.get();
  request->io.offset = group.record.write_offset;
  request->io.buffers.push_back({const_cast<char*>(group.record.data), group.record.write_bytes});
  ++m_log_writes;
  m_last_group_us = m_env->now_us();
  if (m_held_since_us > 0) {
    m_throttled_groups.fetch_add(1, std::memory_order_relaxed);
    m_throttled_us.fetch_add(m_last_group_us - m_held_since_us, std::memory_order_relaxed);
    m_held_since_us = 0;
  }
  m_group_count.fetch_add(1, std::memory_order_relaxed);
  m_log_bytes.fetch_add(group.record.write_bytes, std::memory_order_relaxed);
  io.submit(&request->io);
  return true;
}

void CommitPipeline::add_sync_file(Group& group, File* file) {
  if (std::find(group.sync_files.begin(), group.sync_files.end(), file) == group.sync_files.end()) {
    group.sync_files.push_back(file);
  }
}

}  // namespace vtkv
