// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/write_path.h"

#include <algorithm>
#include <span>

#include "vtkv/commit/write_buffer.h"
#include "vtkv/db/own_submission.h"
#include "vtkv/db/participant_entries.h"
#include "vtkv/mem/memtable_inserter.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {

// Of values that the log holds too, kept for readers, at least.
size_t kept_bytes_least(const Options& options) { return options.memtable_bytes / 4; }

// Fills in submission->fragments when its batch is larger than `record_bytes`.
Status cut_batch(Submission* submission, uint64_t record_bytes, uint64_t fragment_bytes) {
  submission->fragments.clear();
  if (submission->batch.encoded_bytes() <= record_bytes) {
    return Status();
  }
  submission->fragments = submission->batch.cut(fragment_bytes);
  for (const WriteBatch::Fragment& fragment : submission->fragments) {
    if (fragment.encoded.size() > kMaxOperationBytes) {
      return Status::invalid_argument("write batch with an operation of " + std::to_string(fragment.encoded.size()) +
                                      " bytes; a key and its value may have 1 GiB");
    }
  }
  return Status();
}

}  // namespace

bool WritePath::begin(std::shared_ptr<MemTable> active, const std::vector<ClosedMemTable>& closed,
                      SequenceNumber position, SequenceNumber content, uint64_t recovered_bytes) {
  MutexLock lock(m_lock);
  m_active = std::move(active);
  m_last_sequence = position;
  m_last_content.store(content);
  m_last_closed = closed.empty() ? m_tree->newest_log_position().sequence : closed.back().last_sequence;
  m_memtables_closed = closed.size();
  m_states->begin(m_active, closed, position);
  m_recovered_bytes = recovered_bytes;
  return memtable_is_full();
}

bool WritePath::memtable_is_full() const {
  // The log is bounded too: a batch may be large there and small, or nothing, in the memtable.
  const Geometry& geometry = m_tree->geometry();
  const uint64_t usual = std::max<uint64_t>(1, geometry.initial_log_segments / 2) * geometry.log_segment_bytes;
  const uint64_t log_limit = m_options.checkpoint_log_bytes > 0 ? m_options.checkpoint_log_bytes : usual;
  // What is kept is given up when it is in the log: only what cannot be given up fills the memtable.
  const size_t kept = m_active->kept_bytes();
  const size_t own = m_active->memory_bytes() - kept;
  return own + std::min(kept, kept_bytes_least(m_options)) >= m_options.memtable_bytes ||
         kept >= m_options.memtable_bytes ||
         m_recovered_bytes + m_pipeline->log_bytes() - m_log_bytes_at_switch >= log_limit;
}

// What the keys, and what is not durable yet, leave free.
size_t WritePath::kept_bytes_wanted() const {
  const size_t own = m_active->memory_bytes() - m_active->kept_bytes();
  const size_t taken = own + m_pipeline->write_buffer_bytes();
  const size_t most = m_options.memtable_bytes / 4 * 3;
  return std::max(kept_bytes_least(m_options), most - std::min(most, taken));
}

// Returns where to say where in the log they lie; null when no value stays there.
LogAddress* WritePath::insert_operations(std::string_view encoded, uint32_t sequence_count) {
  MemTableInserter inserter(m_active.get(), m_last_sequence + 1, encoded, m_options.value_separation_bytes);
  (void)WriteBatch::iterate(encoded, inserter);  // built by WriteBatch itself: well-formed
  m_last_sequence += sequence_count;
  return inserter.address();
}

bool WritePath::insert(Submission* submission) {
  const WriteBatch& batch = submission->batch;
  if (submission->fragments.empty()) {
    submission->log_address = insert_operations(batch.encoded(), batch.sequence_count());
  }
  for (WriteBatch::Fragment& fragment : submission->fragments) {
    fragment.log_address = insert_operations(fragment.encoded, fragment.sequence_count);
  }
  submission->last_sequence = m_last_sequence;
  m_states->set_visible(m_last_sequence);
  if (!batch.empty()) {
    m_last_content.store(m_last_sequence);
  }
  submission->sequenced(m_last_sequence);
  const bool wake_worker = m_pipeline->enqueue(submission);
  if (memtable_is_full()) {
    switch_memtable();
  }
  return wake_worker;
}

bool WritePath::has_room(const WriteBatch& batch, size_t kept) const {
  const bool alone = m_states->closed_count() == 0 && m_active->empty();
  const uint64_t taken = m_states->closed_bytes() + m_active->memory_bytes();
  const uint64_t to_collect = std::min(m_collected_bytes, m_options.memtable_bytes);
  return alone || m_workers->stopping() ||
         taken + to_collect + m_active->growth_most(batch, kept) <= memtables_bytes_most(m_options.memtable_bytes);
}

void WritePath::await_room(MutexLock& lock, const WriteBatch& batch, size_t kept) {
  if (m_turns == m_turns_gone && has_room(batch, kept)) {
    return;
  }
  const uint64_t start_us = m_env->now_us();
  const uint64_t turn = m_turns++;
  m_awaiting_room.fetch_add(1);
  for (;;) {
    m_room->wait(lock, [&]() REQUIRES(m_lock) {
      return m_pipeline->failed() || (turn == m_turns_gone && (has_room(batch, kept) || m_states->closed_count() == 0));
    });
    if (m_pipeline->failed() || has_room(batch, kept)) {
      break;
    }
    switch_memtable();  // what is there has to go first, and would not fill it
  }
  m_awaiting_room.fetch_sub(1);
  ++m_turns_gone;
  m_room->notify_all();
  m_waits.fetch_add(1, std::memory_order_relaxed);
  m_waited_us.fetch_add(m_env->now_us() - start_us, std::memory_order_relaxed);
}

// Who waits counts himself before he looks, so one of the two sees the other.
void WritePath::notify_room() {
  if (m_awaiting_room.load() > 0) {
    MutexLock lock(m_lock);
    m_room->notify_all();
  }
}

void WritePath::submit(Submission* submission) { submit(submission, /*may_wait=*/false); }

void WritePath::submit(Submission* submission, bool may_wait) {
  if (const Status status = cut_batch(submission, m_pipeline->record_bytes_most(), m_pipeline->fragment_bytes());
      !status.ok()) {
    submission->durable(status);
    return;
  }
  submission->relaxed &= submission->fragments.empty();
  bool wake_worker = false;
  {
    MutexLock lock(m_lock);
    if (may_wait) {
      await_room(lock, submission->batch, 0);
    }
    if (!m_pipeline->failed()) {
      wake_worker = insert(submission);
      submission = nullptr;
    }
  }
  if (submission) {
    submission->durable(m_pipeline->failure());
  } else if (wake_worker) {
    m_pipeline->wake();
  }
}

void WritePath::switch_memtable() {
  const SequenceNumber as_of = m_last_sequence;
  VTKV_ASSERT(as_of >= m_last_closed);
  const size_t before = m_active->memory_bytes();
  add_participant_entries(m_options.participant, as_of, m_active.get());
  m_collected_bytes = m_active->memory_bytes() - before;
  auto fresh = std::make_shared<MemTable>();
  m_states->switch_memtable(m_active, as_of, fresh);
  m_active = std::move(fresh);
  m_last_closed = as_of;
  ++m_memtables_closed;
  m_log_bytes_at_switch = m_pipeline->log_bytes();
  m_recovered_bytes = 0;
  m_pipeline->request_flush_point(as_of);
  m_pipeline->wake_unless_stopped();  // it may have waited for one
  m_workers->wake(Workers::Role::flush);
}

uint64_t WritePath::close_memtable() {
  MutexLock lock(m_lock);
  const bool copies_differ = m_tree->oldest_log_position().sequence < m_tree->newest_log_position().sequence;
  if (!m_pipeline->failed() && (m_last_sequence > m_last_closed || (copies_differ && m_states->closed_count() == 0))) {
    switch_memtable();
  }
  return m_memtables_closed;
}

void WritePath::advance_reuse_horizon() {
  const SequenceNumber horizon = m_pipeline->reuse_horizon();
  if (m_last_content.load() <= horizon || m_pipeline->durable_sequence() <= horizon ||
      m_horizon_submitted.exchange(true)) {
    return;
  }
  submit(new OwnSubmission([this] { m_horizon_submitted.store(false); }));
}

bool WritePath::insert_into_write_buffer(const WriteBatch& batch) {
  const SequenceNumber first = m_last_sequence + 1;
  m_last_sequence += batch.sequence_count();
  std::shared_ptr<WriteBuffer> write_buffer;
  std::string_view copy;
  const bool opened =
      m_pipeline->append(batch.encoded(), batch.sequence_count(), m_last_sequence, &write_buffer, &copy);
  const size_t base = static_cast<size_t>(copy.data() - write_buffer->encoded().data());
  MemTableInserter inserter(m_active.get(), first, copy, m_options.value_separation_bytes, write_buffer.get(), base);
  (void)WriteBatch::iterate(copy, inserter);
  if (inserter.keeps()) {
    m_active->keep(write_buffer, write_buffer->capacity());
  }
  m_states->set_visible(m_last_sequence);
  m_last_content.store(m_last_sequence);
  if (opened) {
    m_active->release_kept(m_pipeline->logged_sequence(), kept_bytes_wanted());
  }
  if (memtable_is_full()) {
    switch_memtable();
  }
  return opened;
}

Status WritePath::write(WriteBatch batch, const WriteOptions& options) {
  // Without updates it takes a sequence number that no operation of it stands for: the buffer, which has several
  // batches in one, has no room for such.
  if (options.sync || !batch.has_updates() || batch.encoded_bytes() > m_pipeline->record_bytes_most()) {
    return write_and_wait(std::move(batch));
  }
  bool wake_worker = false;
  const size_t kept =
      m_options.value_separation_bytes > 0 ? m_pipeline->write_buffer_capacity(batch.encoded_bytes()) : 0;
  {
    MutexLock lock(m_lock);
    await_room(lock, batch, kept);
    if (m_pipeline->failed()) {
      return m_pipeline->failure();
    }
    wake_worker = insert_into_write_buffer(batch);
  }
  if (wake_worker) {
    m_pipeline->wake();
  }
  const uint64_t most = unwritten_bytes_most(m_options.memtable_bytes);
  if (m_pipeline->write_buffer_bytes() <= most) {
    return Status();
  }
  const uint64_t start_us = m_env->now_us();
  const Status status = m_waiters->wait_until([&] { return m_pipeline->write_buffer_bytes() <= most; });
  m_waits.fetch_add(1, std::memory_order_relaxed);
  m_waited_us.fetch_add(m_env->now_us() - start_us, std::memory_order_relaxed);
  return status;
}

Status WritePath::write_and_wait(WriteBatch batch) {
  WaitingSubmission submission(&m_idle_writers);
  submission.batch = std::move(batch);
  submit(&submission, /*may_wait=*/true);
  return submission.wait();
}

Status WritePath::relocate(std::span<const Relocation> values, SequenceNumber checked, Relocated* relocated) {
  WriteBatch batch;
  bool wake_worker = false;
  {
    MutexLock lock(m_lock);
    if (m_pipeline->failed()) {
      return m_pipeline->failure();
    }
    // The memtables first: what a flush took away from them since is then above the tree's position.
    const std::shared_ptr<const ReadState> state = m_states->current();
    if (m_tree->newest_log_position().sequence > checked) {
      return Status::busy("a memtable was flushed meanwhile");
    }
    if (m_states->memtables_are_crowded(m_options.memtable_bytes)) {
      return Status::busy("memtables that wait to be flushed take too much memory");
    }
    for (const Relocation& value : values) {
      const bool newer = !mutated(Mutation::relocation_wins) &&
                         std::any_of(state->memtables.begin(), state->memtables.end(),
                                     [&](const auto& memtable) { return memtable->touches(value.key, checked); });
      if (!newer) {
        batch.put(value.key, value.value);
      }
    }
    wake_worker = !batch.empty() && insert_into_write_buffer(batch);
    *relocated = {m_last_sequence, batch.has_updates() ? batch.sequence_count() : 0, batch.encoded_bytes()};
  }
  if (wake_worker) {
    m_pipeline->wake();
  }
  return Status();
}

void WritePath::add_statistics(DBStatistics* statistics) const {
  statistics->write_waits = m_waits.load(std::memory_order_relaxed);
  statistics->write_waited_us = m_waited_us.load(std::memory_order_relaxed);
}

}  // namespace vtkv
