// SPDX-License-Identifier: LGPL-2.1-or-later
// The database's writing side: batches enter the memtable and the commit queue.

#include <algorithm>

#include "vtkv/commit/write_buffer.h"
#include "vtkv/db/db_impl.h"
#include "vtkv/db/own_submission.h"
#include "vtkv/mem/memtable_inserter.h"
#include "vtkv/util/invariants.h"

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

bool DbImpl::memtable_is_full() const {
  // The log is bounded too: a batch may be large there and small, or nothing, in the memtable.
  const Geometry& geometry = m_tree->geometry();
  const uint64_t usual = std::max<uint64_t>(1, geometry.initial_log_segments / 2) * geometry.log_segment_bytes;
  const uint64_t log_limit = m_options.checkpoint_log_bytes > 0 ? m_options.checkpoint_log_bytes : usual;
  // What is kept is given up when it is in the log: only what cannot be given up fills the memtable.
  const size_t kept = m_active->kept_bytes();
  const size_t own = m_active->memory_bytes() - kept;
  return own + std::min(kept, kept_bytes_least(m_options)) >= m_options.memtable_bytes ||
         kept >= m_options.memtable_bytes || m_pipeline->log_bytes() - m_log_bytes_at_switch >= log_limit;
}

// What the keys, and what is not durable yet, leave free.
size_t DbImpl::kept_bytes_wanted() const {
  const size_t own = m_active->memory_bytes() - m_active->kept_bytes();
  const size_t taken = own + m_pipeline->write_buffer_bytes();
  const size_t most = m_options.memtable_bytes / 4 * 3;
  return std::max(kept_bytes_least(m_options), most - std::min(most, taken));
}

Status DbImpl::refuse_write() const {
  return Status::invalid_argument(m_directory + ": the database was opened read-only");
}

// Returns where to say where in the log they lie; null when no value stays there.
LogAddress* DbImpl::insert_operations(std::string_view encoded, uint32_t sequence_count) {
  MemTableInserter inserter(m_active.get(), m_last_sequence + 1, encoded, m_options.value_separation_bytes);
  (void)WriteBatch::iterate(encoded, inserter);  // built by WriteBatch itself: well-formed
  m_last_sequence += sequence_count;
  return inserter.address();
}

// True: the commit worker has to be woken.
bool DbImpl::insert(Submission* submission) {
  const WriteBatch& batch = submission->batch;
  if (submission->fragments.empty()) {
    submission->log_address = insert_operations(batch.encoded(), batch.sequence_count());
  }
  for (WriteBatch::Fragment& fragment : submission->fragments) {
    fragment.log_address = insert_operations(fragment.encoded, fragment.sequence_count);
  }
  submission->last_sequence = m_last_sequence;
  m_visible.store(m_last_sequence, std::memory_order_release);
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

void DbImpl::submit(Submission* submission) {
  if (read_only()) {
    submission->durable(refuse_write());
    return;
  }
  if (const Status status = cut_batch(submission, m_pipeline->record_bytes_most(), m_pipeline->fragment_bytes());
      !status.ok()) {
    submission->durable(status);
    return;
  }
  bool wake_worker = false;
  {
    MutexLock lock(m_write_lock);
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

void DbImpl::switch_memtable() {
  const SequenceNumber as_of = m_last_sequence;
  VTKV_ASSERT(as_of >= m_last_closed);
  if (m_options.participant) {
    std::vector<CheckpointEntry> entries;
    m_options.participant->collect(as_of, &entries);
    for (const auto& [key, value] : entries) {
      value ? m_active->put(as_of, key, *value) : m_active->remove(as_of, key);
    }
  }
  auto fresh = std::make_shared<MemTable>();
  {
    MutexLock lock(m_state_lock);
    auto state = std::make_shared<ReadState>(*m_state);
    state->memtables.insert(state->memtables.begin(), fresh);
    m_closed.push_back({m_active, as_of});
    m_closed_count.store(m_closed.size());
    m_state = std::move(state);
  }
  m_active = std::move(fresh);
  m_last_closed = as_of;
  ++m_memtables_closed;
  m_log_bytes_at_switch = m_pipeline->log_bytes();
  m_pipeline->request_flush_point(as_of);
  wake(Role::flush);
}

// Closes the memtable when there is anything that a checkpoint would change; returns how many memtables
// must have been flushed for everything so far to be in the tree.
uint64_t DbImpl::close_memtable() {
  MutexLock lock(m_write_lock);
  const bool copies_differ = m_tree->oldest_log_position().sequence < m_tree->newest_log_position().sequence;
  if (!m_pipeline->failed() && (m_last_sequence > m_last_closed || (copies_differ && m_closed_count.load() == 0))) {
    switch_memtable();
  }
  return m_memtables_closed;
}

void DbImpl::advance_reuse_horizon() {
  if (read_only()) {
    return;
  }
  const SequenceNumber horizon = m_pipeline->reuse_horizon();
  if (m_last_content.load() <= horizon || m_pipeline->durable_sequence() <= horizon ||
      m_horizon_submitted.exchange(true)) {
    return;
  }
  submit(new OwnSubmission([this] { m_horizon_submitted.store(false); }));
}

// True: the commit worker has to be woken.
bool DbImpl::insert_into_write_buffer(const WriteBatch& batch) {
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
  m_visible.store(m_last_sequence, std::memory_order_release);
  m_last_content.store(m_last_sequence);
  if (opened) {
    m_active->release_kept(m_pipeline->logged_sequence(), kept_bytes_wanted());
  }
  if (memtable_is_full()) {
    switch_memtable();
  }
  return opened;
}

Status DbImpl::write(WriteBatch batch, const WriteOptions& options) {
  if (options.sync || batch.empty() || read_only() || batch.encoded_bytes() > m_pipeline->record_bytes_most()) {
    return write_and_wait(std::move(batch));
  }
  bool wake_worker = false;
  {
    MutexLock lock(m_write_lock);
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
  const Status status = wait_until([&] { return m_pipeline->write_buffer_bytes() <= most; });
  m_write_waits.fetch_add(1, std::memory_order_relaxed);
  m_write_waited_us.fetch_add(m_env->now_us() - start_us, std::memory_order_relaxed);
  return status;
}

// A thread that waits in write().
class DbImpl::Writer final : public Submission {
 public:
  explicit Writer(DbImpl* db) : m_db(db) {
    MutexLock lock(db->m_writers_lock);
    if (db->m_idle_writers.empty()) {
      db->m_idle_writers.push_back(std::make_unique<WaitingWriter>(db->m_env));
    }
    m_waiting = std::move(db->m_idle_writers.back());
    db->m_idle_writers.pop_back();
  }
  ~Writer() override {
    MutexLock lock(m_db->m_writers_lock);
    m_db->m_idle_writers.push_back(std::move(m_waiting));
  }
  // This object may be gone as soon as the writer can see that it is done.
  void durable(const Status& status) override {
    WaitingWriter* const waiting = m_waiting.get();
    {
      MutexLock lock(waiting->lock);
      waiting->result = status;
      waiting->done = true;
    }
    waiting->signal->notify_all();
  }
  Status wait() {
    WaitingWriter& waiting = *m_waiting;
    MutexLock lock(waiting.lock);
    waiting.signal->wait(lock, [&waiting]() REQUIRES(waiting.lock) { return waiting.done; });
    waiting.done = false;  // for the next one
    return waiting.result;
  }

 private:
  DbImpl* const m_db;
  std::unique_ptr<WaitingWriter> m_waiting;
};

Status DbImpl::write_and_wait(WriteBatch batch) {
  Writer writer(this);
  writer.batch = std::move(batch);
  submit(&writer);
  return writer.wait();
}

}  // namespace vtkv
