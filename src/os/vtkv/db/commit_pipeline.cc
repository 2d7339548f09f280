#include "vtkv/db/commit_pipeline.h"

#include <algorithm>

#include "vtkv/db/commit_group.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr size_t kMaxBodyBytes = 1u << 20;       // of a record, unless one batch is larger
constexpr size_t kMaxRequestBuffers = 512;       // of one coalesced data write
constexpr size_t kMaxRequestBytes = 1u << 20;    // beyond this, joining requests gains nothing
constexpr size_t kMaxUnflushedGroups = 1;        // besides the ones being flushed
constexpr size_t kMaxUnflushedHeavy = 8;         // under a heavy load
constexpr size_t kMaxLogWritesHeavy = 3;         // in flight
constexpr size_t kHeavyBytes = 256u << 10;       // waiting for a record
constexpr size_t kKeptBufferBytes = 4u << 20;    // of a spare group

}  // namespace

CommitPipeline::CommitPipeline(Env* env, const Options& options, SegmentPool* pool, const Uuid& uuid,
                               const LogPosition& start, SequenceNumber horizon, CommitObserver* observer)
    : m_env(env),
      m_options(options),
      m_observer(observer),
      m_pool(pool),
      m_writer(env, pool, uuid),
      m_queue(std::clamp<size_t>(pool->segment_bytes() / 32, 4096, Bulk::kUsualBytes)),
      m_durable(start.sequence),
      m_horizon(horizon),
      m_enqueued(start.sequence),
      m_horizon_told(horizon) {
  m_writer.start_after(start);
  m_queue.start_after(start);
}

CommitPipeline::~CommitPipeline() = default;

void CommitPipeline::start() {
  m_worker = m_env->start_worker("vtkv_commit", m_options.io_depth, [this](IoQueue& io) { return step(io); });
}

void CommitPipeline::stop() {
  {
    std::lock_guard lock(m_stop_lock);
    m_stopped = true;
  }
  m_worker.reset();
}

void CommitPipeline::wake_unless_stopped() {
  std::lock_guard lock(m_stop_lock);
  if (!m_stopped) {
    m_worker->wake();
  }
}

// --- called by the database ---------------------------------------------------------------------------

void CommitPipeline::enqueue(Submission* submission) {
  m_outstanding.fetch_add(1);
  m_enqueued.store(submission->last_sequence);
  m_queue.enqueue(submission);
}

bool CommitPipeline::append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last,
                            std::shared_ptr<Bulk>* bulk, std::string_view* copy) {
  m_bulk_bytes.fetch_add(encoded.size());
  m_enqueued.store(last);
  // Counted before the worker can see it.
  m_outstanding.fetch_add(1);
  const bool opened = m_queue.append(encoded, sequence_count, last, m_env->now_us(), bulk, copy);
  if (!opened) {
    m_outstanding.fetch_sub(1);
  }
  return opened;
}

SequenceNumber CommitPipeline::reuse_horizon() const {
  return m_options.mutations.reuse_immediately ? m_enqueued.load() : m_horizon.load();
}

bool CommitPipeline::raise_horizon(SequenceNumber horizon) {
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
    std::lock_guard lock(m_failure_lock);
    if (m_failure.ok()) {
      m_failure = status;
    }
  }
  m_failed.store(true);
  wake_unless_stopped();
}

Status CommitPipeline::failure() const {
  std::lock_guard lock(m_failure_lock);
  return Status::failed("the database stopped: " + std::string(m_failure.message()));
}

void CommitPipeline::add_statistics(DBStatistics* statistics) const {
  statistics->durable_sequence = m_durable.load();
  statistics->commit_groups = m_group_count.load(std::memory_order_relaxed);
  statistics->log_bytes = m_log_bytes.load(std::memory_order_relaxed);
  statistics->external_bytes = m_external_bytes.load(std::memory_order_relaxed);
  statistics->syncs = m_sync_count.load(std::memory_order_relaxed);
  statistics->commit_delays = m_commit_delays.load(std::memory_order_relaxed);
  statistics->commit_delay_us = m_commit_delay_us.load(std::memory_order_relaxed);
}

// --- the worker ---------------------------------------------------------------------------------------

NextStep CommitPipeline::step(IoQueue& io) {
  std::chrono::microseconds wait{0};
  std::chrono::microseconds linger{0};
  for (bool progress = true; progress;) {
    progress = reap(io);
    if (m_failed.load()) {
      drain_failed(io);
      return NextStep::on_event();
    }
    progress |= take_queue(io, &linger);
    progress |= start_flush(io);
    progress |= may_form(&wait) && form_record(io);
    if (const SequenceNumber horizon = reuse_horizon(); horizon != m_horizon_told) {
      m_horizon_told = horizon;
      m_observer->horizon_moved(horizon);
    }
  }
  if (wait.count() == 0 || (linger.count() > 0 && linger < wait)) {
    wait = linger;
  }
  return wait.count() > 0 ? NextStep::later(wait) : NextStep::on_event();
}

bool CommitPipeline::take_queue(IoQueue& io, std::chrono::microseconds* wait) {
  m_batch_of_queue.clear();
  m_queue.take(m_env->now_us(), &m_batch_of_queue, wait);
  if (m_batch_of_queue.empty()) {
    return false;
  }
  const size_t first = m_taken.size();
  for (QueuedWrite& write : m_batch_of_queue) {
    Taken& taken = m_taken.emplace_back();
    taken.submission = write.submission;
    taken.bulk = std::move(write.bulk);
    taken.last_sequence = taken.bulk ? taken.bulk->last_sequence : taken.submission->last_sequence;
    m_ungrouped_bytes += taken.encoded().size();
  }
  m_ungrouped += m_batch_of_queue.size();
  start_data(io, first);
  return true;
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
  request->takers.clear();
  request->bytes = 0;
  m_spare_requests.push_back(request);
}

// --- data ---------------------------------------------------------------------------------------------

bool CommitPipeline::joins(const Tracked& request, const ExternalData& data) const {
  return request.io.file == data.file && request.io.offset + request.bytes == data.offset &&
         request.bytes < kMaxRequestBytes && request.io.buffers.size() + data.buffers.size() <= kMaxRequestBuffers;
}

void CommitPipeline::start_data(IoQueue& io, size_t first_taken) {
  m_pieces.clear();
  for (size_t i = first_taken; i < m_taken.size(); ++i) {
    Taken& taken = m_taken[i];
    if (taken.bulk) {
      continue;
    }
    for (const ExternalData& data : taken.submission->data) {
      if (data.buffers.empty()) {
        continue;
      }
      m_pieces.push_back({&data, &taken});
      if ((!data.primed || !m_options.single_flush) &&
          std::find(taken.sync_files.begin(), taken.sync_files.end(), data.file) == taken.sync_files.end()) {
        taken.sync_files.push_back(data.file);
      }
    }
  }
  std::stable_sort(m_pieces.begin(), m_pieces.end(), [](const DataPiece& a, const DataPiece& b) {
    return a.data->file != b.data->file ? std::less<File*>()(a.data->file, b.data->file)
                                        : a.data->offset < b.data->offset;
  });
  Tracked* request = nullptr;
  for (const DataPiece& piece : m_pieces) {
    if (!request || !joins(*request, *piece.data)) {
      if (request) {
        io.submit(&request->io);
      }
      request = new_request();
      request->kind = Tracked::Kind::data;
      request->io.op = IoRequest::Op::write;
      request->io.file = piece.data->file;
      request->io.offset = piece.data->offset;
    }
    for (const iovec& buffer : piece.data->buffers) {
      request->io.buffers.push_back(buffer);
      request->bytes += buffer.iov_len;
      piece.taken->data_bytes += buffer.iov_len;
      m_external_bytes.fetch_add(buffer.iov_len, std::memory_order_relaxed);
    }
    if (request->takers.empty() || request->takers.back() != piece.taken) {
      request->takers.push_back(piece.taken);
      ++piece.taken->data_left;
    }
  }
  if (request) {
    io.submit(&request->io);
  }
}

void CommitPipeline::data_done(Taken& taken) {
  if (--taken.data_left == 0) {
    taken.submission->data_written();
    if (taken.group) {
      --taken.group->writes_left;
    }
  }
}

// --- records ------------------------------------------------------------------------------------------

bool CommitPipeline::may_form(std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  const bool heavy = m_ungrouped_bytes >= kHeavyBytes;
  const size_t unflushed = m_groups.size() - m_flushing_groups;
  const size_t unflushed_max = (heavy ? kMaxUnflushedHeavy : kMaxUnflushedGroups) +
                               (m_options.mutations.durable_per_group ? 1 : 0);
  if (m_ungrouped == 0 || m_log_writes >= (heavy ? kMaxLogWritesHeavy : 1) || unflushed >= unflushed_max) {
    return false;
  }
  // What comes during a slow flush shares the next one; and large data would hold up its whole group.
  if (m_flush_is_slow || (m_taken.size() > 1 && m_taken[m_taken.size() - m_ungrouped].awaits_large_data())) {
    return false;
  }
  const std::chrono::microseconds delay = m_observer->commit_delay();
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
  // A boundary asked for after this look is that of the newest submission; nothing newer can be among
  // the taken ones, so the record ends with it or before it in any case.
  const SequenceNumber boundary = m_queue.next_boundary();
  size_t bytes = 0;
  size_t count = 0;
  uint64_t limit = kMaxBodyBytes;
  m_views.clear();
  *chosen_bytes = 0;
  for (size_t i = m_taken.size() - m_ungrouped; i < m_taken.size(); ++i) {
    const Taken& taken = m_taken[i];
    if (count > 0 && taken.awaits_large_data()) {
      break;
    }
    bytes += sizeof(batch_frame_t) + taken.encoded().size();
    if (count == 0) {
      limit = std::min(limit, bytes <= m_writer.room() ? m_writer.room() : m_writer.segment_room());
    } else if (bytes > limit) {
      break;
    }
    m_views.push_back({taken.sequence_count(), taken.encoded(), taken.place()});
    *chosen_bytes += taken.encoded().size();
    ++count;
    if (taken.last_sequence == boundary) {
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

  const size_t first = m_taken.size() - m_ungrouped;
  SequenceNumber durable_seq = m_durable.load();
  if (m_options.mutations.watermark_ahead_of_flush && first > 0) {
    durable_seq = m_taken[first - 1].last_sequence;
  }
  group.submissions = count;
  group.waiters = 0;
  group.writes_left = 1;
  group.sync_files.clear();
  Bulk* const lone = count == 1 ? m_taken[first].bulk.get() : nullptr;
  const Status status =
      m_writer.form(m_views, durable_seq, 0, &group.record, lone ? lone->buffer().data() : nullptr);
  if (!status.ok()) {
    fail(status);
    return true;
  }
  for (size_t i = first; i < first + count; ++i) {
    Taken& taken = m_taken[i];
    taken.group = &group;
    group.waiters += taken.submission ? 1 : 0;
    group.writes_left += taken.data_left > 0 ? 1 : 0;
    for (File* file : taken.sync_files) {
      add_sync_file(group, file);
    }
  }
  m_ungrouped -= count;
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
    m_commit_delays.fetch_add(1, std::memory_order_relaxed);
    m_commit_delay_us.fetch_add(m_last_group_us - m_held_since_us, std::memory_order_relaxed);
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

// --- completions --------------------------------------------------------------------------------------

bool CommitPipeline::reap(IoQueue& io) {
  m_completed.clear();
  io.reap(&m_completed);
  for (IoRequest* completed : m_completed) {
    on_done(*static_cast<Tracked*>(completed->owner));
  }
  return !m_completed.empty();
}

void CommitPipeline::on_done(Tracked& request) {
  if (!request.io.result.ok()) {
    fail(request.io.result);
  } else if (!m_failed.load()) {
    switch (request.kind) {
      case Tracked::Kind::data:
        for (Taken* taken : request.takers) {
          data_done(*taken);
        }
        break;
      case Tracked::Kind::log:
        --m_log_writes;
        --request.group->writes_left;
        break;
      case Tracked::Kind::sync:
        if (--m_syncs_left == 0) {
          finish_flush();
        }
        break;
    }
  }
  recycle(&request);
}

// --- flushes ------------------------------------------------------------------------------------------

bool CommitPipeline::start_flush(IoQueue& io) {
  if (m_flushing_groups > 0) {
    return false;
  }
  m_sync_scratch.clear();
  size_t count = 0;
  size_t submissions = 0;
  size_t waiters = 0;
  for (; count < m_groups.size() && m_groups[count]->writes_left == 0; ++count) {
    submissions += m_groups[count]->submissions;
    waiters += m_groups[count]->waiters;
  }
  if (count == 0) {
    return m_options.mutations.durable_per_group && flush_out_of_order();
  }
  collect_sync_files(count);
  if (waiters > 0) {
    m_pool->note_waited_flush();
  }
  m_flushing_groups = count;
  m_flush_is_slow = std::any_of(m_groups.begin(), m_groups.begin() + static_cast<ptrdiff_t>(count),
                                [](const auto& group) { return !group->sync_files.empty(); });
  if (m_options.mutations.acknowledge_before_flush) {
    acknowledge(0, submissions);
  }
  if (m_options.mutations.skip_flush) {
    finish_flush();
    return true;
  }
  m_sync_count.fetch_add(m_sync_scratch.size(), std::memory_order_relaxed);
  if (m_sync_scratch.size() == 1 && alone()) {
    const Status status = m_sync_scratch.front()->sync();
    status.ok() ? finish_flush() : fail(status);
    return true;
  }
  m_syncs_left = m_sync_scratch.size();
  for (File* file : m_sync_scratch) {
    Tracked* request = new_request();
    request->kind = Tracked::Kind::sync;
    request->io.op = IoRequest::Op::sync;
    request->io.file = file;
    request->io.offset = 0;
    io.submit(&request->io);
  }
  return true;
}

// The mutation: a group that is written is flushed and acknowledged, and D moves over it, while one before it is
// still being written.
bool CommitPipeline::flush_out_of_order() {
  size_t first = 0;
  for (const std::unique_ptr<Group>& group : m_groups) {
    const SequenceNumber last = group->record.position.sequence;
    if (group->writes_left == 0 && last > m_durable.load()) {
      for (File* file : group->sync_files) {
        (void)file->sync();
      }
      (void)group->record.segment->file->sync();
      m_durable.store(last);
      raise_horizon(group->record.durable_seq);
      acknowledge(first, group->submissions);
      return true;
    }
    first += group->submissions;
  }
  return false;
}

// The files whose sync makes the first `count` groups durable.
void CommitPipeline::collect_sync_files(size_t count) {
  const auto add = [this](File* file) {
    if (std::find(m_sync_scratch.begin(), m_sync_scratch.end(), file) == m_sync_scratch.end()) {
      m_sync_scratch.push_back(file);
    }
  };
  for (size_t i = 0; i < count; ++i) {
    const Group& group = *m_groups[i];
    std::for_each(group.sync_files.begin(), group.sync_files.end(), add);
    const bool primed = group.record.segment->primed.load() || m_options.mutations.trust_unprimed;
    if (!m_options.single_flush || !primed) {
      add(group.record.segment->file.get());
    }
  }
  // One sync of any file reaches the device and covers what was written to primed segments.
  if (m_sync_scratch.empty()) {
    const LogSegment* any = m_options.mutations.trust_unprimed ? m_pool->segments().front()
                                                               : m_groups[count - 1]->record.segment;
    add(any->file.get());
  }
}

// Nothing else could make progress during a sync that blocks the worker.
bool CommitPipeline::alone() const {
  if (m_ungrouped > 0 || m_groups.size() > m_flushing_groups) {
    return false;
  }
  return m_queue.empty();
}

void CommitPipeline::finish_flush() {
  m_flush_is_slow = false;
  size_t submissions = 0;
  for (; m_flushing_groups > 0; --m_flushing_groups) {
    std::unique_ptr<Group> group = std::move(m_groups.front());
    m_groups.pop_front();
    submissions += group->submissions;
    m_durable.store(std::max(m_durable.load(), group->record.position.sequence));
    raise_horizon(group->record.durable_seq);
    if (group->record.buffer.capacity() > kKeptBufferBytes) {
      group->record.buffer = AlignedBuffer();
    }
    m_spare_groups.push_back(std::move(group));
  }
  acknowledge(0, submissions);
  m_taken.erase(m_taken.begin(), m_taken.begin() + static_cast<ptrdiff_t>(submissions));
  m_observer->commit_advanced();
}

void CommitPipeline::acknowledge(size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (!m_taken[i].acknowledged) {
      m_taken[i].acknowledged = true;
      end_one(m_taken[i], Status());
    }
  }
}

void CommitPipeline::end_one(const Taken& taken, const Status& status) {
  if (taken.bulk) {
    m_bulk_bytes.fetch_sub(taken.bulk->bytes());
  } else {
    taken.submission->durable(status);
  }
  m_outstanding.fetch_sub(1);
}

// Requests in flight use the submissions' buffers: they are all reaped before anybody is told.
void CommitPipeline::drain_failed(IoQueue& io) {
  if (io.in_flight() > 0) {
    return;
  }
  const Status status = failure();
  if (!m_failure_told) {
    m_failure_told = true;
    m_observer->commit_failed(status);
  }
  std::deque<Taken> ended;
  ended.swap(m_taken);
  m_queue.close_bulk();
  m_batch_of_queue.clear();
  std::chrono::microseconds wait{0};
  m_queue.take(m_env->now_us(), &m_batch_of_queue, &wait);
  for (QueuedWrite& write : m_batch_of_queue) {
    ended.emplace_back().submission = write.submission;
    ended.back().bulk = std::move(write.bulk);
  }
  m_groups.clear();
  m_ungrouped = 0;
  m_ungrouped_bytes = 0;
  m_flushing_groups = 0;
  for (const Taken& taken : ended) {
    if (!taken.acknowledged) {
      end_one(taken, status);
    }
  }
  m_observer->commit_advanced();
}

}  // namespace vtkv
