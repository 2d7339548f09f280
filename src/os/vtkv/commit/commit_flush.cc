// SPDX-License-Identifier: LGPL-2.1-or-later
// The commit pipeline's second half: completed writes, flushes, and who is told.
#include <algorithm>

#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

// --- completions --------------------------------------------------------------------------------------

bool CommitPipeline::reap(IoQueue& io) {
  m_completed.clear();
  io.reap(&m_completed);
  for (IoRequest* completed : m_completed) {
    on_done(*static_cast<CommitRequest*>(completed->owner));
  }
  if (!failed()) {
    tell_written();
  }
  return !m_completed.empty();
}

void CommitPipeline::tell_written() {
  for (const size_t written = m_groups.written(); m_told_written.groups < written;) {
    const CommitGroup& group = m_groups[m_told_written.groups];
    for (size_t i = m_told_written.writes; i < m_told_written.writes + group.submissions; ++i) {
      if (!m_dequeued[i].acknowledged && m_dequeued[i].is_relaxed()) {
        m_dequeued[i].submission->written();
      }
    }
    m_told_written.pass(group);
  }
}

void CommitPipeline::on_done(CommitRequest& request) {
  if (!request.io.result.ok()) {
    fail(request.kind == CommitRequest::Kind::data ? tell_owner(request) : request.io.result);
  } else if (!failed()) {
    switch (request.kind) {
      case CommitRequest::Kind::data:
        for (DequeuedWrite* dequeued : request.dequeued) {
          data_done(*dequeued);
        }
        break;
      case CommitRequest::Kind::log:
        m_groups.log_write_ended(request.group);
        note_logged();
        break;
      case CommitRequest::Kind::sync:
        if (m_flush.sync_ended()) {
          finish_flush();
        }
        break;
    }
  }
  m_requests.recycle(&request);
}

void CommitPipeline::data_done(DequeuedWrite& dequeued) {
  if (--dequeued.data_left == 0) {
    dequeued.submission->data_written();
    if (dequeued.group) {
      --dequeued.group->writes_left;
    }
  }
}

// The owner of the data may learn from the failure; what it says goes with the error.
Status CommitPipeline::tell_owner(const CommitRequest& request) {
  const IoRequest& io = request.io;
  const std::string words = request.dequeued.front()->submission->data_failed(io.file, io.offset, io.buffers);
  return words.empty() ? io.result : io.result.with_message(std::string(io.result.message()) + " (" + words + ")");
}

// Write buffers in records that have arrived need their memory no longer: readers find their values in the file.
void CommitPipeline::note_logged() {
  uint64_t bytes = 0;
  while (m_told_logged.groups < m_groups.size() && m_groups[m_told_logged.groups].logged) {
    const CommitGroup& group = m_groups[m_told_logged.groups];
    for (size_t i = m_told_logged.writes; i < m_told_logged.writes + group.submissions; ++i) {
      DequeuedWrite& dequeued = m_dequeued[i];
      bytes += dequeued.write_buffer ? dequeued.write_buffer->bytes() : 0;
      dequeued.write_buffer.reset();
    }
    m_told_logged.pass(group);
    m_progress.advance_logged(group.record.position.sequence);
  }
  if (bytes > 0) {
    m_write_buffer_bytes.fetch_sub(bytes);
    m_observer->commit_advanced();
  }
}

// --- flushes ------------------------------------------------------------------------------------------

// Nobody waits for what is written, and there is not much of it yet. *wait: until it is due.
bool CommitPipeline::delays_flush(std::chrono::microseconds* wait) {
  if (!m_groups.written_are_relaxed() || durable_sequence() < m_wanted_durable.load() ||
      m_groups.written_unflushed() >= kMaxRelaxedGroups || m_groups.written_bytes() >= kMaxRelaxedBytes) {
    return false;
  }
  const uint64_t due_us = m_groups[0].formed_us + std::chrono::microseconds(Submission::kRelaxedDelay).count();
  const uint64_t now_us = m_env->now_us();
  *wait = std::chrono::microseconds(due_us - std::min(due_us, now_us));
  return now_us < due_us;
}

bool CommitPipeline::start_flush(IoQueue& io, std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  if (m_groups.flushing()) {
    return false;
  }
  const size_t count = m_groups.written();
  if (count == 0) {
    return mutated(Mutation::watermark_per_group) && flush_out_of_order();
  }
  if (delays_flush(wait)) {
    return false;
  }
  size_t submissions = 0;
  size_t waiters = 0;
  for (size_t i = 0; i < count; ++i) {
    submissions += m_groups[i].submissions;
    waiters += m_groups[i].waiters;
  }
  m_flush.begin(m_groups, count, waiters);
  m_groups.begin_flush();
  be_paced_by(m_flush.is_of_any_file() && io.shared_pacer() ? io.shared_pacer() : &m_own_pacer);
  if (m_pacer == &m_own_pacer) {
    m_pacer->flush_began(m_env->now_us());
  }
  if (mutated(Mutation::acknowledged_before_flush)) {
    acknowledge(0, submissions);
  }
  if (mutated(Mutation::flush_removed)) {
    finish_flush();
    return true;
  }
  m_counters.count_syncs(m_flush.files().size());
  for (File* file : m_flush.files()) {
    IoRequest& sync = m_requests.take(CommitRequest::Kind::sync, IoRequest::Op::sync, file, 0)->io;
    sync.any_file = m_flush.is_of_any_file();
    sync.waiters = waiters;
    io.submit(&sync);
  }
  return true;
}

// The mutation: a group that is written is flushed and acknowledged, and durable_seq moves over it, while one before it
// is still being written.
bool CommitPipeline::flush_out_of_order() {
  size_t first = 0;
  for (size_t i = 0; i < m_groups.size(); ++i) {
    const CommitGroup& group = m_groups[i];
    const SequenceNumber last = group.record.position.sequence;
    if (group.writes_left == 0 && last > durable_sequence()) {
      for (File* file : group.sync_files) {
        (void)file->sync();
      }
      (void)group.record.segment->file->sync();
      m_progress.advance_durable(last);
      m_progress.raise_horizon(group.record.durable_seq);
      acknowledge(first, group.submissions);
      return true;
    }
    first += group.submissions;
  }
  return false;
}

void CommitPipeline::finish_flush() {
  if (const Status status = m_flush.end(); !status.ok()) {
    fail(status);
    return;
  }
  GroupFront ended;
  size_t waiters = 0;
  while (m_groups.flushing()) {
    const CommitGroup& group = m_groups.end_first();
    ended.pass(group);
    waiters += group.waiters;
    if (!group.continues || mutated(Mutation::durable_inside_batch)) {
      m_progress.advance_durable(group.record.position.sequence);
    }
    m_progress.raise_horizon(group.record.durable_seq);
  }
  if (m_pacer == &m_own_pacer) {
    m_pacer->flush_ended(waiters, m_env->now_us());
  }
  tell_pacer(m_queue.waiting());
  acknowledge(0, ended.writes);
  m_dequeued.forget(ended.writes);
  m_told_logged.ended(ended);
  m_told_written.ended(ended);
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

void CommitPipeline::end_one(const DequeuedWrite& dequeued, const Status& status) {
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
    if (m_options.on_fatal) {
      m_options.on_fatal(status);
    }
  }
  m_groups.clear();
  m_told_logged = m_told_written = {};
  for (const DequeuedWrite& dequeued : m_dequeued.take_failed(m_queue, m_env->now_us())) {
    if (!dequeued.acknowledged) {
      end_one(dequeued, status);
    }
  }
  m_observer->commit_advanced();
}

}  // namespace vtkv
