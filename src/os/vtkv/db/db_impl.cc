// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/db_impl.h"

#include <algorithm>

#include "vtkv/db/own_submission.h"
#include "vtkv/iter/db_iterator.h"
#include "vtkv/option_ranges.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

DbImpl::DbImpl(Env* env, std::string directory, const Options& options)
    : m_env(env),
      m_directory(std::move(directory)),
      m_options(options),
      m_errors(env, options.on_background_error),
      m_workers(env) {}

// In a fork nothing is given back: the files' positions, rings and locks are the parent's as well, its threads are not
// here, and what they held is as they left it.
void DbImpl::abandon() {
  const auto leave = [](auto&... parts) { (static_cast<void>(parts.release()), ...); };
  leave(m_scan_relocator, m_gc, m_compactor, m_flusher, m_log, m_writes, m_waiters, m_pipeline, m_fetcher, m_states,
        m_values, m_pool, m_tree, m_read_only_env);
  m_workers.abandon();
}

DbImpl::~DbImpl() {
  if (m_file_lock && m_file_lock->is_inherited()) {
    abandon();
    return;
  }
  if (!m_pipeline) {
    return;
  }
  stop_background();
  m_workers.end({Workers::Role::gc});  // it submits
  m_pipeline->hurry(UINT64_MAX);
  m_waiters->wait([this] { return m_pipeline->outstanding() == 0; });
  m_pipeline->stop();
  m_workers.end({Workers::Role::compaction, Workers::Role::flush, Workers::Role::log});
  m_fetcher.reset();  // it wakes the collector
}

void DbImpl::stop_background() {
  if (m_pipeline) {
    m_workers.stop();
    m_tree->stop();
    m_pool->stop();
    m_gc->stop();
    m_pipeline->wake_unless_stopped();  // nobody waits for a flush from here on
    m_writes->notify_room();
  }
}

Status DbImpl::refuse_write() const {
  return Status::invalid_argument(m_directory + ": the database was opened read-only");
}

// --- reads --------------------------------------------------------------------------------------------

// The state comes before the sequence: a flush may drop what only an older sequence could see, and a state
// taken first still pins it.
Status DbImpl::get(std::string_view key, std::string* value, const Snapshot* snapshot) {
  const std::shared_ptr<const ReadState> state = m_states->current();
  const SequenceNumber sequence = m_states->read_sequence(snapshot);
  Lookup result = Lookup::absent;
  for (const auto& memtable : state->memtables) {
    result = memtable->get(key, sequence, value);
    if (result != Lookup::absent) {
      break;
    }
  }
  if (result == Lookup::absent) {
    VTKV_RETURN_IF_ERROR(state->version->get(key, sequence, &result, value));
  }
  if (result == Lookup::pointer) {
    const std::string pointer = std::move(*value);
    return m_values->read(key, pointer, value);
  }
  static const Status kNotFound = Status::not_found("no such key");
  return result == Lookup::found ? Status() : kNotFound;
}

std::unique_ptr<Iterator> DbImpl::new_iterator(std::string_view lower, std::string_view upper,
                                               const Snapshot* snapshot) {
  SequenceNumber checked = 0;
  std::shared_ptr<const ReadState> state = m_states->checked_state(&checked);
  const SequenceNumber sequence = m_states->read_sequence(snapshot);
  const bool may_write = m_options.fragmented_values_min > 0 && !snapshot && !read_only();
  return std::make_unique<DbIterator>(
      std::move(state), m_values.get(), m_fetcher.get(), lower, upper, sequence, &m_scan_lengths,
      may_write ? FragmentedValues(m_scan_relocator.get(), checked, m_options.fragmented_values_min)
                : FragmentedValues());
}

const Snapshot* DbImpl::take_snapshot() { return m_states->take_snapshot(); }

void DbImpl::release_snapshot(const Snapshot* snapshot) {
  m_states->release_snapshot(snapshot);
  m_workers.wake(Workers::Role::gc);
}

// --- writes and work in the background ------------------------------------------------------------------

void DbImpl::submit(Submission* submission) {
  read_only() ? submission->durable(refuse_write()) : m_writes->submit(submission);
}

Status DbImpl::write(WriteBatch batch, const WriteOptions& options) {
  return read_only() ? refuse_write() : m_writes->write(std::move(batch), options);
}

void DbImpl::advance_reuse_horizon() {
  if (!read_only()) {
    m_writes->advance_reuse_horizon();
  }
}

Status DbImpl::wait_durable(SequenceNumber sequence) {
  if (sequence > m_states->visible()) {
    return Status::invalid_argument("sequence " + std::to_string(sequence) + " was not submitted yet");
  }
  if (read_only()) {
    return Status();
  }
  m_pipeline->hurry(sequence);
  return m_waiters->wait_until([&] { return durable_sequence() >= sequence; });
}

Status DbImpl::flush() { return read_only() ? refuse_write() : m_flusher->flush(); }

// With a sequence of their own they are told from earlier ones.
void DbImpl::request_checkpoint() {
  submit(new OwnSubmission([] {}));
  if (!read_only()) {
    m_flusher->request_checkpoint();
  }
}

Status DbImpl::compact() {
  VTKV_RETURN_IF_ERROR(flush());
  return m_compactor->compact();
}

Status DbImpl::begin_defragment(const DefragmentOptions& options) {
  VTKV_RETURN_IF_ERROR(read_only() ? refuse_write() : check_options(options));
  m_compactor->begin_defragment(options);
  return {};
}

void DbImpl::stop_defragment() {
  if (m_compactor) {
    m_compactor->stop_defragment();
  }
}

DefragmentReport DbImpl::defragment_report() const {
  return m_compactor ? m_compactor->defragment_report() : DefragmentReport();
}

Status DbImpl::defragment(const DefragmentOptions& options) {
  VTKV_RETURN_IF_ERROR(read_only() ? refuse_write() : check_options(options));
  return m_compactor->defragment(options);
}

// --- commit worker ------------------------------------------------------------------------------------

void DbImpl::commit_advanced() {
  if (m_states->closed_count() > 0) {
    m_workers.wake(Workers::Role::flush);
  }
  if (m_pool->wants_work()) {
    m_workers.wake(Workers::Role::log);
  }
  if (m_gc->waits_for_log()) {
    m_workers.wake(Workers::Role::gc);
  }
  if (m_pipeline->failed()) {
    m_writes->notify_room();
  }
  m_waiters->notify();
}

// Who closes the database waits for everything submitted, and nothing is flushed any more.
bool DbImpl::memtables_are_crowded() {
  return !m_workers.stopping() && m_states->memtables_are_crowded(m_options.memtable_bytes);
}

std::chrono::microseconds DbImpl::throttle_delay() {
  return Throttle::delay(m_states->closed_count(), m_tree->compaction_pressure(), m_gc->pressure());
}

// --- inspection ---------------------------------------------------------------------------------------

DBStatistics DbImpl::statistics() const {
  DBStatistics statistics;
  statistics.last_sequence = m_states->visible();
  if (read_only()) {
    statistics.durable_sequence = statistics.last_sequence;
  } else {
    m_pipeline->add_statistics(&statistics);
  }
  const TreeStatistics tree = m_tree->statistics();
  statistics.memtable_flushes = tree.flushes;
  statistics.flush_bytes = tree.flush_bytes;
  statistics.compactions = tree.compactions;
  statistics.compaction_bytes = tree.compaction_bytes;
  statistics.filter_read_bytes = tree.filter_read_bytes;
  statistics.tree_entries = tree.entries;
  statistics.filter_bytes = tree.filter_bytes;
  statistics.range_tombstone_bytes = tree.range_tombstone_bytes;
  statistics.stitched_bytes = tree.stitched_bytes;
  statistics.purges = tree.purges;
  statistics.index_bytes = tree.index_bytes;
  statistics.compaction_debt_bytes = tree.debt_bytes;
  statistics.zones = tree.zones;
  statistics.zones_in_use = tree.zones_in_use;
  statistics.defragmented_bytes = m_compactor ? m_compactor->defragmented_bytes() : 0;
  statistics.background_failures = m_errors.failures();
  statistics.background_failing = m_errors.current().size();
  statistics.log_file_bytes = m_pool->file_bytes();
  statistics.primed_bytes = m_pool->primed_bytes();
  for (const SegmentValues& values : m_tree->value_segments()) {
    statistics.log_live_bytes += values.bytes;
  }
  if (m_gc) {
    m_writes->add_statistics(&statistics);
    statistics.gc_moved_bytes = m_gc->moved_bytes();
    statistics.scan_moved_bytes = m_scan_relocator->moved_bytes();
    statistics.gc_lookups = m_gc->lookups();
    statistics.gc_freed_segments = m_gc->freed_segments();
  }
  statistics.log_segments = m_pool->segment_count();
  statistics.unprimed_log_segments = m_pool->unprimed_count();
  statistics.tree_file_bytes = tree.file_bytes;
  statistics.tree_live_bytes = tree.live_bytes;
  const std::shared_ptr<const ReadState> state = m_states->current();  // holds them while they are asked
  for (const auto& memtable : state->memtables) {
    statistics.memtable_bytes += memtable->memory_bytes();
  }
  const ReadCache& cache = *m_tree->cache();
  statistics.block_cache_bytes = cache.bytes();
  statistics.block_cache_hits = cache.hits(ReadCache::Kind::block);
  statistics.block_cache_misses = cache.misses(ReadCache::Kind::block);
  statistics.value_cache_hits = cache.hits(ReadCache::Kind::value);
  statistics.value_cache_misses = cache.misses(ReadCache::Kind::value);
  statistics.runs = tree.runs;
  statistics.levels = tree.levels;
  return statistics;
}

}  // namespace vtkv
