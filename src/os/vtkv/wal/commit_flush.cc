// SPDX-License-Identifier: LGPL-2.1-or-later
// The commit pipeline's second half: completed writes, flushes, and who is told.
#include <algorithm>

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"
#include "vtkv/wal/commit_group.h"
#include "vtkv/wal/commit_pipeline.h"

namespace vtkv {

namespace {

constexpr size_t kKeptBufferBytes = 4u << 20;  // of a spare group

}  // namespace

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
    fail(request.kind == Tracked::Kind::data ? tell_owner(request) : request.io.result);
  } else if (!m_failed.load()) {
    switch (request.kind) {
      case Tracked::Kind::data:
        for (Dequeued* dequeued : request.dequeued) {
          data_done(*dequeued);
        }
        break;
      case Tracked::Kind::log:
        --m_log_writes;
        --request.group->writes_left;
        request.group->logged = true;
        if (request.group->record.buffer.capacity() > kKeptBufferBytes) {
          request.group->record.buffer = AlignedBuffer();
        }
        note_logged();
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

// The owner of the data may learn from the failure; what it says goes with the error.
Status CommitPipeline::tell_owner(const Tracked& request) {
  const IoRequest& io = request.io;
  const std::string words = request.dequeued.front()->submission->data_failed(io.file, io.offset, io.buffers);
  return words.empty() ? io.result
                       : Status::make(io.result.code(), std::string(io.result.message()) + " (" + words + ")",
                                      io.result.error_number());
}

// Write buffers in records that have arrived need their memory no longer: readers find their values in the file.
void CommitPipeline::note_logged() {
  uint64_t bytes = 0;
  size_t first = 0;
  for (const std::unique_ptr<Group>& group : m_groups) {
    if (!group->logged) {
      break;
    }
    const size_t end = first + group->submissions;
    for (; first < end; ++first) {
      Dequeued& dequeued = m_dequeued[first];
      bytes += dequeued.write_buffer ? dequeued.write_buffer->bytes() : 0;
      dequeued.write_buffer.reset();
    }
    m_logged.store(std::max(m_logged.load(), group->record.position.sequence));
  }
  if (bytes > 0) {
    m_write_buffer_bytes.fetch_sub(bytes);
    m_observer->commit_advanced();
  }
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
    return mutated(Mutation::watermark_per_group) && flush_out_of_order();
  }
  collect_sync_files(count);
  if (waiters > 0) {
    m_pool->note_waited_flush();
  }
  m_flushing_groups = count;
  m_pacer.flush_began(m_env->now_us());
  m_flush_is_slow = std::any_of(m_groups.begin(), m_groups.begin() + static_cast<ptrdiff_t>(count),
                                [](const auto& group) { return !group->sync_files.empty(); });
  if (mutated(Mutation::acknowledged_before_flush)) {
    acknowledge(0, submissions);
  }
  if (mutated(Mutation::flush_removed)) {
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

// The mutation: a group that is written is flushed and acknowledged, and durable_seq moves over it, while one before it
// is still being written.
bool CommitPipeline::flush_out_of_order() {
  size_t first = 0;
  for (const std::unique_ptr<Group>& group : m_groups) {
    const SequenceNumber last = group->record.position.sequence;
    if (group->writes_left == 0 && last > m_durable.load()) {
      for (File* file : group->sync_files) {
        (void)file->sync();
      }
      (void)group->record.segment->file->sync();
      advance_durable(last);
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
    const bool primed = group.record.segment->primed.load() || mutated(Mutation::unprimed_segment_not_synced);
    if (!m_options.single_flush || !primed) {
      add(group.record.segment->file.get());
    }
  }
  // One sync of any file reaches the device and covers what was written to primed segments.
  if (m_sync_scratch.empty()) {
    const LogSegment* any = mutated(Mutation::unprimed_segment_not_synced) ? m_pool->segments().front()
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
  if (const Status status = m_syncs.check(); !status.ok()) {
    fail(status);
    return;
  }
  m_flush_is_slow = false;
  size_t submissions = 0;
  size_t waiters = 0;
  for (; m_flushing_groups > 0; --m_flushing_groups) {
    std::unique_ptr<Group> group = std::move(m_groups.front());
    m_groups.pop_front();
    submissions += group->submissions;
    waiters += group->waiters;
    if (!group->continues || mutated(Mutation::durable_inside_batch)) {
      advance_durable(group->record.position.sequence);
    }
    raise_horizon(group->record.durable_seq);
    m_spare_groups.push_back(std::move(group));
  }
  m_pacer.flush_ended(waiters, m_ungrouped_waiters + m_queue.waiting(), m_env->now_us());
  acknowledge(0, submissions);
  m_dequeued.erase(m_dequeued.begin(), m_dequeued.begin() + static_cast<ptrdiff_t>(submissions));
  m_observer->commit_advanced();
}

void CommitPipeline::acknowledge(size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (!m_dequeued[i].acknowledged) {
      m_dequeued[i].acknowledged = true;
      end_one(m_dequeued[i], Status());
    }
  }
}

void CommitPipeline::end_one(const Dequeued& dequeued, const Status& status) {
  if (dequeued.continues()) {
    return;
  }
  if (dequeued.write_buffer) {
    m_write_buffer_bytes.fetch_sub(dequeued.write_buffer->bytes());
  } else if (dequeued.submission) {
    dequeued.submission->durable(status);
  }
  const uint64_t outstanding = m_outstanding.fetch_sub(1);
  VTKV_ASSERT(outstanding > 0);
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
  std::deque<Dequeued> ended;
  ended.swap(m_dequeued);
  m_queue.close_write_buffer();
  m_batch_of_queue.clear();
  std::chrono::microseconds wait{0};
  m_queue.dequeue(m_env->now_us(), &m_batch_of_queue, &wait);
  for (QueuedWrite& write : m_batch_of_queue) {
    ended.emplace_back().submission = write.submission;
    ended.back().write_buffer = std::move(write.write_buffer);
  }
  m_groups.clear();
  m_ungrouped = 0;
  m_ungrouped_waiters = 0;
  m_ungrouped_bytes = 0;
  m_flushing_groups = 0;
  for (const Dequeued& dequeued : ended) {
    if (!dequeued.acknowledged) {
      end_one(dequeued, status);
    }
  }
  m_observer->commit_advanced();
}

}  // namespace vtkv
