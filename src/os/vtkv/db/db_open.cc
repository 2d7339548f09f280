// SPDX-License-Identifier: LGPL-2.1-or-later
// Making a database and opening one: recovery from the log, and the record that ends it.
//
// Layout: lock, log/000001.log ..., and the tree's files. While they are made there is a mark: with it they may be
// removed and made again, without it never. A database that has lost its manifest is a damaged one.

#include <algorithm>

#include "vtkv/db/db_impl.h"
#include "vtkv/db/log_replay.h"
#include "vtkv/db/ownership.h"
#include "vtkv/env/read_only_env.h"
#include "vtkv/iter/db_iterator.h"
#include "vtkv/option_ranges.h"
#include "vtkv/table/salvaged.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"
#include "vtkv/wal/log_recovery.h"

namespace vtkv {

namespace {

std::string lock_path(const std::string& directory) { return directory + "/lock"; }
std::string log_path(const std::string& directory) { return directory + "/log"; }
std::string manifest_path(const std::string& directory) { return directory + "/manifest"; }
std::string unfinished_path(const std::string& directory) { return directory + "/" + std::string(kUnfinishedName); }

std::string parent_of(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') {
    directory.pop_back();
  }
  const size_t slash = directory.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : directory.substr(0, slash);
}

Status remove_log_files(Env* env, const std::string& directory) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(log_path(directory), &names));
  for (const std::string& name : names) {
    VTKV_RETURN_IF_ERROR(env->remove_file(log_path(directory) + "/" + name));
  }
  return Status();
}

// The first file of a database, or "".
Status find_remains(Env* env, const std::string& directory, std::string* name) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(directory, &names));
  for (std::string& found : names) {
    std::vector<std::string> segments;
    if (found == "log") {
      VTKV_RETURN_IF_ERROR(env->list_directory(log_path(directory), &segments));
    }
    if (found == "log" ? !segments.empty() : found != "lock" && is_database_file(found)) {
      *name = std::move(found);
      return Status();
    }
  }
  name->clear();
  return Status();
}

std::string describe_remains(const std::string& directory, const std::string& name) {
  return directory + ": holds a part of a database (" + name +
         ") and no manifest: it may be a damaged one. Save what is there, or remove it if nobody wants it";
}

// May a database be made here? Where an earlier making was interrupted, too. Empty directories of its user's
// may stay.
Status check_may_create(Env* env, const std::string& directory) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(directory, &names));
  const auto holds = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (holds("manifest")) {
    return Status::invalid_argument(directory + ": holds a database already; open it, or name another directory");
  }
  std::string name;
  if (!holds(kUnfinishedName)) {
    VTKV_RETURN_IF_ERROR(find_remains(env, directory, &name));
    if (!name.empty()) {
      return Status::invalid_argument(describe_remains(directory, name));
    }
  }
  VTKV_RETURN_IF_ERROR(find_foreign_file(env, directory, &name));
  if (name.empty()) {
    return Status();
  }
  return Status::invalid_argument(directory + ": is not empty (" + name + "); name an empty directory");
}

Status mark_unfinished(Env* env, const std::string& directory) {
  OpenOptions options;
  options.create = true;
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(unfinished_path(directory), options, &file));
  return env->sync_directory(directory);
}

Status remove_unfinished_mark(Env* env, const std::string& directory) {
  VTKV_RETURN_IF_ERROR(env->remove_file(unfinished_path(directory)));
  return env->sync_directory(directory);
}

// Empties a directory that holds nothing but a database whose making was interrupted.
Status clear_half_made(Env* env, const std::string& directory) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(env->list_directory(directory, &names));
  for (const std::string& name : names) {
    if (name == "log") {
      VTKV_RETURN_IF_ERROR(remove_log_files(env, directory));
    } else if (name != "lock" && name != kUnfinishedName && is_database_file(name)) {
      VTKV_RETURN_IF_ERROR(env->remove_file(directory + "/" + name));
    }
  }
  return Status();
}

std::set<uint64_t> epochs_of(const std::vector<SegmentValues>& segments) {
  std::set<uint64_t> epochs;
  for (const SegmentValues& values : segments) {
    epochs.insert(values.epoch);
  }
  return epochs;
}

// Since the checkpoint, with the record that ends the recovery.
uint64_t log_bytes_of(const LogRecovery& recovery) {
  uint64_t bytes = kLogBlockBytes;
  for (const FoundRecord& record : recovery.chain()) {
    bytes += record.header.padded_bytes();
  }
  return bytes;
}

}  // namespace

Status DB::create(Env* env, const std::string& directory, const Options& options) {
  VTKV_RETURN_IF_ERROR(check_log_geometry(options.geometry));
  VTKV_RETURN_IF_ERROR(check_geometry(options.geometry));
  VTKV_RETURN_IF_ERROR(env->create_directory(directory));
  VTKV_RETURN_IF_ERROR(check_may_create(env, directory));  // a refusal leaves no lock file behind
  std::unique_ptr<FileLock> lock;
  VTKV_RETURN_IF_ERROR(env->lock_file(lock_path(directory), &lock));
  VTKV_RETURN_IF_ERROR(check_may_create(env, directory));  // by another one's hand meanwhile
  VTKV_RETURN_IF_ERROR(mark_unfinished(env, directory));
  VTKV_RETURN_IF_ERROR(clear_half_made(env, directory));
  const Uuid uuid = new_uuid(env);
  SegmentPool pool(env, log_path(directory), options.geometry, uuid);
  VTKV_RETURN_IF_ERROR(pool.create());
  VTKV_RETURN_IF_ERROR(env->sync_directory(parent_of(directory)));
  VTKV_RETURN_IF_ERROR(env->sync_directory(directory));
  const LogPosition start{0, 1, 1, kLogBlockBytes, 0};
  VTKV_RETURN_IF_ERROR(Tree::create(env, directory, options.geometry, uuid, start, features_of(options)));
  VTKV_RETURN_IF_ERROR(env->sync_directory(directory));
  return remove_unfinished_mark(env, directory);
}

Status DB::upgrade(Env* env, const std::string& directory, const Options& options, bool* changed) {
  VTKV_RETURN_IF_ERROR(check_options(options));
  DbImpl upgraded(env, directory, options);
  return upgraded.add_features(changed);
}

Status DB::open(Env* env, const std::string& directory, const Options& options, std::unique_ptr<DB>* db) {
  VTKV_RETURN_IF_ERROR(check_options(options));
  auto opened = std::make_unique<DbImpl>(env, directory, options);
  VTKV_RETURN_IF_ERROR(opened->recover());
  *db = std::move(opened);
  return Status();
}

Status DB::open_read_only(Env* env, const std::string& directory, const Options& options, std::unique_ptr<DB>* db) {
  VTKV_RETURN_IF_ERROR(check_options(options));
  auto guard = std::make_unique<ReadOnlyEnv>(env);
  auto opened = std::make_unique<DbImpl>(guard.get(), directory, options);
  VTKV_RETURN_IF_ERROR(opened->recover_read_only(std::move(guard)));
  *db = std::move(opened);
  return Status();
}

Status DbImpl::open_files(Salvaged* salvaged) {
  if (!m_env->exists(m_directory)) {
    return Status::not_found(m_directory + ": there is no such directory");
  }
  if (!m_env->exists(manifest_path(m_directory))) {
    std::string name;
    VTKV_RETURN_IF_ERROR(find_remains(m_env, m_directory, &name));
    return Status::not_found(name.empty() || m_env->exists(unfinished_path(m_directory))
                                 ? m_directory + ": holds no database (there is no manifest); create one"
                                 : describe_remains(m_directory, name));
  }
  VTKV_RETURN_IF_ERROR(m_env->lock_file(lock_path(m_directory), &m_file_lock));
  VTKV_RETURN_IF_ERROR(salvaged ? salvage_tree(m_env, m_directory, m_options, salvaged, &m_tree)
                                : Tree::open(m_env, m_directory, m_options, &m_tree));
  m_pool = std::make_unique<SegmentPool>(m_env, log_path(m_directory), m_tree->geometry(), m_tree->uuid(),
                                         m_options.primed_bytes_per_commit, m_options.make_room);
  m_values = std::make_unique<ValueReader>(m_pool.get(), m_tree->cache());
  m_states = std::make_unique<ReadStates>(m_tree.get());
  return m_pool->load(salvaged ? &salvaged->notes : nullptr);
}

LogRecovery DbImpl::new_recovery() const {
  return {m_pool.get(), m_tree->uuid(), m_options, m_tree->newest_log_position(), epochs_of(m_tree->value_segments())};
}

Status DbImpl::add_features(bool* added) {
  VTKV_RETURN_IF_ERROR(open_files());
  VTKV_RETURN_IF_ERROR(m_tree->check_may_write());
  VTKV_RETURN_IF_ERROR(m_tree->prepare_to_write());
  *added = is_upgradable() || !m_tree->features_agree();
  return *added ? m_tree->add_features(features_of(m_options)) : Status();
}

// Everything up to the tree's prepare_to_write() only reads, but for what a crash left half made: what is refused stays
// as it is, and on a full host the participant can give its reserve before it is needed. (Where the log holds more than
// a memtable takes, the rest of it is read behind that.)
Status DbImpl::recover() {
  VTKV_RETURN_IF_ERROR(open_files());
  VTKV_RETURN_IF_ERROR(m_tree->check_may_write());
  if (m_env->exists(unfinished_path(m_directory))) {  // its making ended but for this
    VTKV_RETURN_IF_ERROR(remove_unfinished_mark(m_env, m_directory));
  }
  LogRecovery recovery = new_recovery();
  VTKV_RETURN_IF_ERROR(recovery.read_chain());
  VTKV_RETURN_IF_ERROR(recovery.report_orphans());
  VTKV_RETURN_IF_ERROR(recovery.check_data());
  VTKV_RETURN_IF_ERROR(load_participant());
  LogReplay replayed(m_options);
  LogPosition position;
  VTKV_RETURN_IF_ERROR(replay(recovery, &replayed, &position));
  start_workers(position, &replayed, log_bytes_of(recovery));
  return Status();
}

Status DbImpl::recover_read_only(std::unique_ptr<Env> env) {
  m_read_only_env = std::move(env);
  VTKV_RETURN_IF_ERROR(open_files());
  LogRecovery recovery = new_recovery();
  VTKV_RETURN_IF_ERROR(recovery.read_chain());
  VTKV_RETURN_IF_ERROR(recovery.report_orphans());
  VTKV_RETURN_IF_ERROR(recovery.check_data(/*assume_written=*/true));
  VTKV_RETURN_IF_ERROR(load_participant());
  return replay_to_read(recovery);
}

// Nothing can be flushed: all of it stays in memory.
Status DbImpl::replay_to_read(LogRecovery& recovery) {
  LogReplay replayed(m_options);
  VTKV_RETURN_IF_ERROR(recovery.replay(replayed));
  m_states->begin(replayed.active(), {}, recovery.recovered_end().sequence);
  return Status();
}

Status DbImpl::load_participant() {
  auto state = std::make_shared<ReadState>();
  state->version = m_tree->current();
  if (!m_options.participant) {
    return Status();
  }
  return m_options.participant->load([&](std::string_view lower, std::string_view upper) {
    return std::make_unique<DbIterator>(state, m_values.get(), nullptr, lower, upper,
                                        m_tree->newest_log_position().sequence);
  });
}

// What finds no space stays in memory: the flush worker tries again.
Status DbImpl::flush_replayed(LogReplay* replay) {
  for (std::deque<LogReplay::Closed>& closed = replay->closed(); !closed.empty(); closed.pop_front()) {
    const Status status = m_tree->flush(*closed.front().memtable, closed.front().position, m_states->snapshots());
    if (!status.ok()) {
      return status.is_no_space() ? Status() : status;
    }
  }
  return Status();
}

// A log of more than a memtable goes to the tree as it is read. The recovery ends before that, with its record: what is
// flushed is then durable as it is in a database that is open, and a crash from here on meets nothing new.
Status DbImpl::replay(LogRecovery& recovery, LogReplay* replay, LogPosition* position) {
  bool has_ended = false;
  const auto end = [&] {
    VTKV_RETURN_IF_ERROR(m_tree->prepare_to_write());
    has_ended = true;
    return end_recovery(recovery, position);
  };
  VTKV_RETURN_IF_ERROR(recovery.replay(*replay, [&](const LogPosition& behind) {
    if (!replay->is_full()) {
      return Status();
    }
    VTKV_RETURN_IF_ERROR(has_ended ? Status() : end());
    replay->close(behind);
    return flush_replayed(replay);
  }));
  return has_ended ? Status() : end();
}

// What recovery has read may still be in a volatile cache, written by a process that was killed: it decides
// about the end of the log, so it must not disappear after that decision.
Status DbImpl::sync_everything() {
  VTKV_RETURN_IF_ERROR(m_pool->sync_all());
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(m_env->list_directory(m_directory, &names));
  for (const std::string& name : names) {
    if (name == "manifest" || name == "tree") {
      std::unique_ptr<File> file;
      VTKV_RETURN_IF_ERROR(m_env->open_file(m_directory + "/" + name, OpenOptions(), &file));
      VTKV_RETURN_IF_ERROR(file->sync());
    }
  }
  VTKV_RETURN_IF_ERROR(m_env->sync_directory(log_path(m_directory)));
  VTKV_RETURN_IF_ERROR(m_env->sync_directory(m_directory));
  return m_options.external_store ? m_options.external_store->sync_all() : Status();
}

// Recovery ends with a record of its own (doc/crash_consistency.md, What it asks in return): empty, with durable_seq =
// recovered_end, durable before anything else is written.
Status DbImpl::end_recovery(const LogRecovery& recovery, LogPosition* position) {
  VTKV_RETURN_IF_ERROR(sync_everything());
  m_pool->use_epochs_above(recovery.greatest_epoch());
  m_pool->release_before(m_tree->oldest_log_position().epoch, m_tree->listed_epochs());
  *position = recovery.recovered_end();
  if (mutated(Mutation::no_recovery_record)) {
    return m_pool->remove_half_made();
  }
  // A recovery that did not come to its end may have taken the spare one. Nothing of the chain is there, and what is
  // there is dropped in any case.
  if (!m_pool->has_spare()) {
    m_pool->release_abandoned(recovery.recovered_end().epoch, 0, m_tree->listed_epochs());
  }
  LogWriter writer(m_env, m_pool.get(), m_tree->uuid());
  writer.start_after(recovery.recovered_end());
  FormedRecord record;
  VTKV_RETURN_IF_ERROR(writer.form({{1, {}}}, recovery.recovered_end().sequence, kRecoveryRecord, &record));
  VTKV_RETURN_IF_ERROR(record.segment->file->write(record.write_offset, record.data, record.write_bytes));
  VTKV_RETURN_IF_ERROR(record.segment->file->sync());
  *position = record.position;
  if (recovery.dropped_half_batch()) {  // it may be most of the log
    m_pool->release_abandoned(recovery.recovered_end().epoch, record.segment->epoch, m_tree->listed_epochs());
  }
  return m_pool->remove_half_made();
}

void DbImpl::make_parts(const LogPosition& position, SequenceNumber horizon) {
  m_pipeline = std::make_unique<CommitPipeline>(m_env, m_options, m_pool.get(), m_tree->uuid(), position, horizon,
                                                static_cast<CommitObserver*>(this));
  m_waiters = std::make_unique<Waiters>(m_env, &m_pipeline->fatal_error());
  m_writes = std::make_unique<WritePath>(m_env, m_options, m_tree.get(), m_states.get(), m_pipeline.get(),
                                         m_waiters.get(), &m_workers);
  m_log = std::make_unique<LogMaintenance>(m_options, m_tree.get(), m_pool.get(), m_states.get(), m_pipeline.get(),
                                           &m_errors, &m_workers);
  m_flusher = std::make_unique<Flusher>(m_tree.get(), m_states.get(), m_pipeline.get(), m_writes.get(), m_log.get(),
                                        &m_errors, &m_workers, m_waiters.get());
  m_compactor = std::make_unique<Compactor>(m_env, m_tree.get(), m_states.get(), m_pipeline.get(), &m_errors,
                                            &m_workers, m_waiters.get());
  m_fetcher = std::make_unique<ValueFetcher>(m_env, m_options.io_depth);
  m_gc = std::make_unique<ValueGc>(m_options, ValueGc::Database{.env = m_env,
                                                                .tree = m_tree.get(),
                                                                .pool = m_pool.get(),
                                                                .reader = m_values.get(),
                                                                .fetcher = m_fetcher.get(),
                                                                .states = m_states.get(),
                                                                .pipeline = m_pipeline.get(),
                                                                .relocator = m_writes.get(),
                                                                .errors = &m_errors,
                                                                .workers = &m_workers,
                                                                .waiters = m_waiters.get(),
                                                                .request_flush = [this] { m_flusher->request(); },
                                                                .segments_freed = [this] { m_log->segments_freed(); }});
  m_scan_relocator =
      std::make_unique<ScanRelocator>(m_options, m_pipeline.get(), m_pool.get(), m_gc.get(), m_writes.get());
}

void DbImpl::start_workers(const LogPosition& position, LogReplay* replayed, uint64_t log_bytes) {
  const SequenceNumber horizon = mutated(Mutation::no_recovery_record) ? position.sequence : position.sequence - 1;
  make_parts(position, horizon);
  std::vector<ClosedMemTable> closed;
  for (const LogReplay::Closed& one : replayed->closed()) {
    m_pipeline->add_flush_point(one.position);
    closed.push_back({one.memtable, one.position.sequence});
  }
  const bool is_full = m_writes->begin(replayed->active(), closed, position.sequence, horizon, log_bytes);
  using Role = Workers::Role;
  m_workers.start({{Role::log, "vtkv_log", 0, [this](IoQueue&) { return log_step(); }},
                   {Role::flush, "vtkv_flush", 0, [this](IoQueue&) { return m_flusher->step(); }},
                   {Role::compaction, kCompactionWorkerName, 0, [this](IoQueue&) { return m_compactor->step(); }}});
  m_pipeline->start();
  m_workers.start({{Role::gc, "vtkv_gc", 1, [this](IoQueue& io) { return gc_step(io); }}});
  if (is_full) {
    m_flusher->request();
  }
  if (!closed.empty()) {
    m_workers.wake(Workers::Role::flush);
  }
}

// Reading everything follows every pointer that a reader can reach. Past the cache: what is on disk matters.
void DbImpl::verify_values(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) {
  const ValueReader values(m_pool.get(), nullptr);
  const std::shared_ptr<const ReadState> state = m_states->current();
  DbIterator iterator(state, &values, m_fetcher.get(), "", "", m_states->visible());
  iterator.seek_to_first();
  while (iterator.valid() && !(cancelled && *cancelled)) {
    iterator.next();
  }
  if (const Status status = iterator.status(); !status.ok()) {
    findings->push_back(std::string(status.message()));
  }
}

void DbImpl::verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) {
  m_tree->verify(findings, cancelled);
  verify_values(findings, cancelled);
  if (cancelled && *cancelled) {
    return;
  }
  SequenceNumber durable = 0;
  SequenceNumber end = 0;
  Status status;
  const auto read = [&] {
    durable = durable_sequence();
    LogRecovery reader = new_recovery();
    status = reader.read_chain();
    end = reader.recovered_end().sequence;
  };
  m_log ? m_log->while_files_stay(read) : read();
  if (!status.ok()) {
    findings->push_back(std::string(status.message()));
  } else if (end < durable) {
    findings->push_back("log: it can be read up to sequence " + std::to_string(end) + " only, although sequence " +
                        std::to_string(durable) + " is durable");
  }
}

}  // namespace vtkv
