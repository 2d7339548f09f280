// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/db_impl.h"

#include <algorithm>

#include "vtkv/db/own_submission.h"
#include "vtkv/iter/db_iterator.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {

// Beyond this many memtables waiting to be flushed, acknowledgements are held back.
constexpr size_t kClosedMemtablesTolerated = 4;
// Beyond so many levels' worth of small runs waiting to be compacted, likewise.
constexpr uint64_t kLevelsOfDebtTolerated = 8;
constexpr std::chrono::microseconds kDelayPerMemtable{2000};
constexpr std::chrono::microseconds kDelayMost{50000};
// Likewise when the log is so many times as large as it may be: a burst may outrun the collector, no more.
constexpr double kFullnessTolerated = 1.4;
constexpr std::chrono::microseconds kDelayPerFullness{20000};
constexpr std::chrono::microseconds kHeldOpen{1000};
constexpr std::chrono::microseconds kReadersGone{20000};  // between two looks

}  // namespace

DbImpl::DbImpl(Env* env, std::string directory, const Options& options)
    : m_env(env),
      m_directory(std::move(directory)),
      m_options(options),
      m_errors(env, options.on_background_error),
      m_signal(env->new_signal()) {}

DbImpl::~DbImpl() {
  if (!m_pipeline) {
    return;
  }
  // Workers give up what they are at, however long it would take.
  m_stopping.store(true);
  m_tree->stop();
  m_pool->stop();
  m_gc->stop();
  std::unique_ptr<Worker> collector;
  {
    MutexLock lock(m_workers_lock);
    collector.swap(m_workers[static_cast<size_t>(Role::gc)]);
  }
  collector.reset();  // it submits
  m_pipeline->hurry();
  {
    MutexLock lock(m_wait_lock);
    m_waiters.fetch_add(1);
    m_signal->wait(lock, [this] { return m_pipeline->outstanding() == 0; });
    m_waiters.fetch_sub(1);
  }
  m_pipeline->stop();
  Workers ending;
  {
    MutexLock lock(m_workers_lock);
    ending.swap(m_workers);
  }
  for (const Role role : {Role::compaction, Role::flush, Role::log}) {
    ending[static_cast<size_t>(role)].reset();
  }
  m_fetcher.reset();  // it wakes the collector
}

// --- reads --------------------------------------------------------------------------------------------

std::shared_ptr<const ReadState> DbImpl::read_state() const {
  MutexLock lock(m_state_lock);
  return m_state;
}

// The state comes before the sequence: a flush may drop what only an older sequence could see, and a state
// taken first still pins it.
Status DbImpl::get(std::string_view key, std::string* value, const Snapshot* snapshot) {
  const std::shared_ptr<const ReadState> state = read_state();
  const SequenceNumber sequence = read_sequence(snapshot);
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

// `checked` comes before the state, as in gc_read_state().
std::unique_ptr<Iterator> DbImpl::new_iterator(std::string_view lower, std::string_view upper,
                                               const Snapshot* snapshot) {
  const SequenceNumber checked = m_visible.load(std::memory_order_acquire);
  std::shared_ptr<const ReadState> state = read_state();
  const SequenceNumber sequence = read_sequence(snapshot);
  const bool may_write = m_options.fragmented_values_min > 0 && !snapshot && !read_only();
  ScanHost* const host = this;
  return std::make_unique<DbIterator>(
      std::move(state), m_values.get(), m_fetcher.get(), lower, upper, sequence, host,
      may_write ? FragmentedValues(host, checked, m_options.fragmented_values_min) : FragmentedValues());
}

const Snapshot* DbImpl::take_snapshot() {
  return m_snapshots.take([this] { return m_visible.load(std::memory_order_acquire); });
}

void DbImpl::release_snapshot(const Snapshot* snapshot) {
  m_snapshots.release(snapshot);
  wake(Role::gc);
}

// --- waiting ------------------------------------------------------------------------------------------

void DbImpl::notify_waiters() {
  if (m_waiters.load() > 0) {
    MutexLock lock(m_wait_lock);
    m_signal->notify_all();
  }
}

// What is done may be undone at once, by another writer.
Status DbImpl::wait_until(const std::function<bool()>& done) {
  MutexLock lock(m_wait_lock);
  m_waiters.fetch_add(1);
  bool is_done = false;
  m_signal->wait(lock, [&] { return (is_done = done()) || m_pipeline->failed(); });
  m_waiters.fetch_sub(1);
  return is_done ? Status() : m_pipeline->failure();
}

Status DbImpl::wait_durable(SequenceNumber sequence) {
  if (sequence > m_visible.load()) {
    return Status::invalid_argument("sequence " + std::to_string(sequence) + " was not submitted yet");
  }
  if (read_only()) {
    return Status();
  }
  m_pipeline->hurry();
  return wait_until([&] { return durable_sequence() >= sequence; });
}

Status DbImpl::flush() {
  if (read_only()) {
    return refuse_write();
  }
  const uint64_t failures = m_flush_failures.load();
  m_errors.hurry(kFlushWork);
  const uint64_t wanted = close_memtable();
  m_pipeline->wake();
  wake(Role::flush);
  if (m_pipeline->failed()) {
    return m_pipeline->failure();
  }
  VTKV_RETURN_IF_ERROR(
      wait_until([&] { return m_memtables_flushed.load() >= wanted || m_flush_failures.load() > failures; }));
  MutexLock lock(m_error_lock);
  return m_memtables_flushed.load() >= wanted ? Status() : m_flush_error;
}

// With a sequence of their own they are told from earlier ones.
void DbImpl::request_checkpoint() {
  submit(new OwnSubmission([] {}));
  m_manifest_copies_wanted.store(2);
  wake(Role::flush);
}

void DbImpl::request_flush() {
  m_flush_wanted.store(true);
  wake(Role::flush);
}

Status DbImpl::defragment(const DefragmentOptions& options) {
  if (read_only()) {
    return refuse_write();
  }
  uint64_t wanted = 0;
  {
    MutexLock lock(m_defragment_lock);
    m_defragment_options = options;
    wanted = ++m_defragments_wanted;
  }
  m_errors.hurry(kCompactionWork);
  wake(Role::compaction);
  VTKV_RETURN_IF_ERROR(wait_until([&] { return m_defragments_done.load() >= wanted; }));
  MutexLock lock(m_error_lock);
  return m_defragment_error;
}

Status DbImpl::compact() {
  VTKV_RETURN_IF_ERROR(flush());
  const uint64_t wanted = m_compactions_wanted.fetch_add(1) + 1;
  m_errors.hurry(kCompactionWork);
  wake(Role::compaction);
  VTKV_RETURN_IF_ERROR(wait_until([&] { return m_compactions_done.load() >= wanted; }));
  MutexLock lock(m_error_lock);
  return m_compact_error;
}

// --- commit worker ------------------------------------------------------------------------------------

void DbImpl::commit_advanced() {
  if (m_closed_count.load() > 0) {
    wake(Role::flush);
  }
  if (m_pool->wants_work()) {
    wake(Role::log);
  }
  if (m_gc->waits_for_log()) {
    wake(Role::gc);
  }
  notify_waiters();
}

void DbImpl::horizon_moved(SequenceNumber horizon) {
  if (m_options.on_reuse_horizon) {
    m_options.on_reuse_horizon(horizon);
  }
}

void DbImpl::commit_failed(const Status& status) {
  if (m_options.on_fatal) {
    m_options.on_fatal(status);
  }
}

// The least time between two commit groups: it grows with what waits to be flushed and compacted, so that writers
// slow down long before anything could run out, and never stop.
std::chrono::microseconds DbImpl::throttle_delay() {
  std::chrono::microseconds delay{0};
  if (const size_t closed = m_closed_count.load(); closed > kClosedMemtablesTolerated) {
    delay += kDelayPerMemtable * static_cast<int64_t>(closed - kClosedMemtablesTolerated);
  }
  const uint64_t tolerated = kLevelsOfDebtTolerated * m_options.runs_per_level * uint64_t{m_options.memtable_bytes};
  if (const uint64_t debt = m_tree->compaction_debt(); debt > tolerated) {
    delay += std::chrono::microseconds(
        static_cast<int64_t>(static_cast<double>(kDelayPerMemtable.count()) * static_cast<double>(debt - tolerated) /
                             static_cast<double>(tolerated)));
  }
  // The collector falls behind: the more the log outgrows its target, the slower it grows.
  if (const double excess = m_gc ? m_gc->pressure() - kFullnessTolerated : 0; excess > 0) {
    delay += std::chrono::microseconds(static_cast<int64_t>(excess * static_cast<double>(kDelayPerFullness.count())));
  }
  return std::min(kDelayMost, delay);
}

void DbImpl::start_worker(Role role, const char* name, unsigned io_depth, Worker::Step step) {
  m_workers[static_cast<size_t>(role)] = m_env->start_worker(name, io_depth, std::move(step));
}

void DbImpl::wake(Role role) {
  MutexLock lock(m_workers_lock);
  if (const auto& worker = m_workers[static_cast<size_t>(role)]) {
    worker->wake();
  }
}

// --- background workers -------------------------------------------------------------------------------

// Takes over the tree's runs; with `flushed`, drops the memtable that is among them now.
void DbImpl::install_version(const MemTable* flushed) {
  MutexLock lock(m_state_lock);
  auto state = std::make_shared<ReadState>(*m_state);
  state->version = m_tree->current();
  if (flushed) {
    VTKV_ASSERT(!m_closed.empty() && m_closed.front().memtable.get() == flushed);
    std::erase_if(state->memtables, [&](const auto& memtable) { return memtable.get() == flushed; });
    m_closed.pop_front();
    m_closed_count.store(m_closed.size());
  }
  m_state = std::move(state);
}

NextStep DbImpl::flush_step() {
  if (m_pipeline->failed()) {
    return NextStep::on_event();
  }
  if (m_written) {
    finish_flush();
    return NextStep::now();
  }
  tell_checkpoint();
  if (m_flush_wanted.exchange(false)) {
    (void)close_memtable();
  }
  if (m_closed_count.load() == 0 && m_manifest_copies_wanted.load() > 0) {
    m_manifest_copies_wanted.fetch_sub(1);
    (void)close_memtable();
  }
  Closed closed;
  {
    MutexLock lock(m_state_lock);
    if (!m_closed.empty()) {
      closed = m_closed.front();
    }
  }
  if (!closed.memtable || m_stopping.load()) {
    return flush_idle();
  }
  if (const std::chrono::microseconds wait = m_errors.wait(kFlushWork); wait.count() > 0) {
    return NextStep::later(wait);
  }
  LogPosition position;
  const bool formed = m_pipeline->flush_point_position(closed.last_sequence, &position);
  if (mutated(Mutation::memtable_flushed_early)) {
    return formed ? flush_one(closed, position) : NextStep::later(std::chrono::microseconds(10));
  }
  // The tree must never hold what a crash could take back: a memtable is flushed when all of it is at or below
  // durable_seq. commit_advanced() wakes us.
  if (!formed || closed.last_sequence > m_pipeline->durable_sequence()) {
    return flush_idle();
  }
  return flush_one(closed, position);
}

NextStep DbImpl::flush_one(const Closed& closed, const LogPosition& position) {
  const Status status = m_tree->flush(*closed.memtable, position, m_snapshots.sequences());
  if (!status.ok()) {
    return flush_failed(status);
  }
  m_errors.note(kFlushWork, status);
  m_written = closed;
  // The mutation's window, held open: so few histories would meet it that one would wait long for it.
  return mutated(Mutation::candidate_looked_up_behind_memtable) ? NextStep::later(kHeldOpen) : NextStep::now();
}

NextStep DbImpl::flush_failed(const Status& status) {
  if (m_stopping.load() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  m_errors.note(kFlushWork, status);
  {
    MutexLock lock(m_error_lock);
    m_flush_error = status;
  }
  m_flush_failures.fetch_add(1);
  if (is_list_full(status)) {
    wake(Role::compaction);  // both may make room
    wake(Role::gc);
  }
  if (!status.is_no_space()) {
    m_pipeline->fail(status);
  }
  notify_waiters();
  return status.is_no_space() ? NextStep::later(m_errors.wait(kFlushWork)) : NextStep::on_event();
}

// A step of its own: others run between the checkpoint and this, on the host as in the simulator.
void DbImpl::finish_flush() {
  const Closed closed = std::move(*m_written);
  m_written.reset();
  install_version(closed.memtable.get());
  m_pipeline->forget_flush_points_before(closed.last_sequence);
  // The older copy's: a recovery may have to fall back to it, and checks data from there on.
  m_pipeline->checkpoint_advanced(m_tree->oldest_log_position().sequence);
  m_memtables_flushed.fetch_add(1);
  tell_checkpoint();
  wake(Role::compaction);
  wake(Role::gc);
  notify_waiters();
}

NextStep DbImpl::flush_idle() const {
  return m_releases.empty() && !m_release_is_due && !m_segments_released.load() ? NextStep::on_event()
                                                                                : NextStep::later(kReadersGone);
}

// Both manifest copies hold everything up to the oldest position: the log before it may go when nobody reads there. No
// run leads to a value that was put and overwritten in one memtable, so that no account knows its segment; but who has
// begun to read while that memtable was there is still led to it.
void DbImpl::tell_checkpoint() {
  const LogPosition oldest = m_tree->oldest_log_position();
  if (oldest.sequence > m_told_checkpoint) {
    m_told_checkpoint = oldest.sequence;
    Release release{oldest.epoch, {}};
    if (m_options.value_separation_bytes > 0 && !mutated(Mutation::read_segment_recycled)) {
      release.reader_epoch = gc_start_reader_epoch();
    }
    m_releases.push_back(release);
    if (m_options.participant) {
      m_options.participant->checkpoint_durable(oldest.sequence);
    }
  }
  release_unread();
}

void DbImpl::release_unread() {
  while (!m_releases.empty() &&
         (!m_releases.front().reader_epoch || gc_reader_epoch_has_ended(*m_releases.front().reader_epoch))) {
    VTKV_ASSERT(m_releases.front().below_epoch >= m_release_below);
    m_release_below = m_releases.front().below_epoch;
    m_releases.pop_front();
    m_release_is_due = true;
  }
  if (!m_release_is_due && !m_segments_released.load()) {
    return;
  }
  if (!m_log_files_lock.try_lock()) {
    return;
  }
  MutexLock lock(m_log_files_lock, std::adopt_lock);
  m_release_is_due = false;
  m_segments_released.store(false);
  m_pool->release_before(m_release_below, m_tree->listed_epochs());
  lock.unlock();
  wake(Role::log);
}

NextStep DbImpl::compaction_step() {
  if (m_pipeline->failed() || m_stopping.load()) {
    return NextStep::on_event();
  }
  const uint64_t wanted = m_compactions_wanted.load();
  const bool all = wanted > m_compactions_done.load();
  const std::chrono::microseconds pause = m_errors.wait(kCompactionWork);
  if (pause.count() == 0) {
    m_tree->retry_quarantined();
  } else if (m_errors.status(kCompactionWork).is_no_space()) {
    return NextStep::later(pause);
  }
  const SnapshotSource snapshots = [this] { return m_snapshots.sequences(); };
  bool did = all;
  Status status = all ? m_tree->compact_all(snapshots) : m_tree->compact_once(snapshots, &did);
  std::chrono::microseconds wait{};
  uint64_t ended = 0;
  if (status.ok() && !did) {
    status = defragment_step(&did, &wait, &ended);
  } else if (!status.ok()) {
    // The pass has to wait until compaction works again; whoever waits for it hears why.
    MutexLock lock(m_defragment_lock);
    m_defragments_started = m_defragments_wanted;
    ended = m_defragments_wanted > m_defragments_done.load() ? m_defragments_wanted : 0;
  }
  if (m_stopping.load() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  note_compaction(status);
  if (did || !status.ok()) {
    install_version(nullptr);
    wake(Role::flush);  // tells of the checkpoint
    wake(Role::gc);
  }
  {
    // Other compactions, which succeed, may come before those who wait have looked.
    MutexLock lock(m_error_lock);
    m_compact_error = all ? status : m_compact_error;
    m_defragment_error = ended > 0 ? status : m_defragment_error;
  }
  if (all) {
    m_compactions_done.store(wanted);
    notify_waiters();
  }
  if (ended > 0) {
    m_defragments_done.store(ended);
    notify_waiters();
  }
  if (!status.ok() || !did) {
    // Others may be due besides what failed; it is tried again later.
    const std::chrono::microseconds retry = m_errors.wait(kCompactionWork);
    return !status.ok() && !status.is_no_space() ? NextStep::later(std::min(retry, kHeldOpen))
           : retry.count() > 0                   ? NextStep::later(retry)
                                                 : NextStep::on_event();
  }
  return wait.count() > 0 ? NextStep::later(wait) : NextStep::now();
}

void DbImpl::note_compaction(const Status& status) {
  const Tree::Quarantine quarantine = m_tree->quarantine();
  const bool in_between = status.ok() && quarantine.failures > m_compactions_quarantined;
  m_compactions_quarantined = quarantine.failures;
  if (!status.ok() || quarantine.status.ok() || in_between) {
    m_errors.note(kCompactionWork, in_between ? quarantine.status : status);
  }
  stop_with_tree();
}

void DbImpl::stop_with_tree() {
  if (const Status failure = m_tree->failure(); !failure.ok()) {
    m_pipeline->fail(failure);
    notify_waiters();
  }
}

Status DbImpl::defragment_step(bool* did, std::chrono::microseconds* wait, uint64_t* ended) {
  if (!m_defragmenter->running()) {
    DefragmentOptions options;
    {
      MutexLock lock(m_defragment_lock);
      if (m_defragments_started == m_defragments_wanted) {
        return {};
      }
      m_defragments_started = m_defragments_wanted;
      options = m_defragment_options;
    }
    m_defragmenter->start(options);
  }
  *did = true;
  const Status status = m_defragmenter->step([this] { return m_snapshots.sequences(); }, wait);
  *ended = m_defragmenter->running() ? 0 : m_defragments_started;
  return status;
}

NextStep DbImpl::log_step() {
  bool did = false;
  if (m_pipeline->failed() || m_stopping.load() || !m_log_files_lock.try_lock()) {
    return NextStep::on_event();
  }
  MutexLock lock(m_log_files_lock, std::adopt_lock);
  if (const std::chrono::microseconds wait = m_errors.wait(kSegmentsWork); wait.count() > 0) {
    return NextStep::later(wait);
  }
  const Status status = m_pool->work_ahead(&did);
  if (m_stopping.load() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  m_errors.note(kSegmentsWork, status);
  if (!status.ok()) {
    return NextStep::later(m_errors.wait(kSegmentsWork));  // who needs a segment meets the error
  }
  return did ? NextStep::now() : NextStep::on_event();
}

// --- inspection ---------------------------------------------------------------------------------------

DBStatistics DbImpl::statistics() const {
  DBStatistics statistics;
  statistics.last_sequence = m_visible.load();
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
  statistics.stitched_bytes = tree.stitched_bytes;
  statistics.purges = tree.purges;
  statistics.index_bytes = tree.index_bytes;
  statistics.compaction_debt_bytes = tree.debt_bytes;
  statistics.zones = tree.zones;
  statistics.zones_in_use = tree.zones_in_use;
  statistics.defragmented_bytes = m_defragmenter ? m_defragmenter->report().moved_bytes : 0;
  statistics.background_failures = m_errors.failures();
  statistics.background_failing = m_errors.current().size();
  statistics.log_file_bytes = m_pool->file_bytes();
  statistics.primed_bytes = m_pool->primed_bytes();
  for (const SegmentValues& values : m_tree->value_segments()) {
    statistics.log_live_bytes += values.bytes;
  }
  statistics.write_waits = m_write_waits.load(std::memory_order_relaxed);
  statistics.write_waited_us = m_write_waited_us.load(std::memory_order_relaxed);
  if (m_gc) {
    statistics.gc_moved_bytes = m_gc->moved_bytes();
    statistics.scan_moved_bytes = m_scan_moved_bytes.load();
    statistics.gc_lookups = m_gc->lookups();
    statistics.gc_freed_segments = m_gc->freed_segments();
  }
  statistics.log_segments = m_pool->segment_count();
  statistics.unprimed_log_segments = m_pool->unprimed_count();
  statistics.tree_file_bytes = tree.file_bytes;
  statistics.tree_live_bytes = tree.live_bytes;
  const std::shared_ptr<const ReadState> state = read_state();  // holds them while they are asked
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
