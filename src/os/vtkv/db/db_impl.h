// SPDX-License-Identifier: LGPL-2.1-or-later
// The database: wires the commit pipeline, the memtables, the log's segments and the tree together.
//
// Its locks and their order: doc/architecture.md, Locks.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "vtkv/blob/scan_host.h"
#include "vtkv/blob/value_fetcher.h"
#include "vtkv/blob/value_reader.h"
#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/db.h"
#include "vtkv/db/snapshot_list.h"
#include "vtkv/db/waiting_writer.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/gc/value_gc.h"
#include "vtkv/iter/read_state.h"
#include "vtkv/tree/defragmenter.h"
#include "vtkv/util/mutex.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class LogRecovery;
enum class CheckpointCopy;
struct Salvaged;
struct SalvagedDb;

class DbImpl final : public DB, private CommitObserver, private ValueGcHost, private ScanHost {
 public:
  DbImpl(Env* env, std::string directory, const Options& options);
  ~DbImpl() override;
  // The body of DB::open; nothing works before it succeeded. In db_open.cc.
  Status recover();
  // The body of DB::open_read_only. `env` is the one given to the constructor.
  Status recover_read_only(std::unique_ptr<Env> env);
  // What open_to_salvage (salvage.h) does with one copy of the manifest. In db_salvage.cc.
  struct SalvageLoss;
  static Status salvage(Env* env, const std::string& directory, CheckpointCopy copy, SalvagedDb* result,
                        SalvageLoss* loss);

  void submit(Submission* submission) override;
  Status write(WriteBatch batch, const WriteOptions& options) override;
  Status get(std::string_view key, std::string* value, const Snapshot* snapshot) override;
  std::unique_ptr<Iterator> new_iterator(std::string_view lower, std::string_view upper,
                                         const Snapshot* snapshot) override;
  const Snapshot* take_snapshot() override;
  void release_snapshot(const Snapshot* snapshot) override;
  SequenceNumber durable_sequence() const override {
    return read_only() ? m_visible.load() : m_pipeline->durable_sequence();
  }
  SequenceNumber reuse_horizon() const override { return read_only() ? 0 : m_pipeline->reuse_horizon(); }
  void advance_reuse_horizon() override;
  Status wait_durable(SequenceNumber sequence) override;
  Status flush() override;
  void request_checkpoint() override;
  Status compact() override;
  Status collect_garbage(bool full) override;
  Status defragment(const DefragmentOptions& options) override;
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) override;
  void set_stitch_threshold(uint64_t bytes) override { m_tree->set_stitch_threshold(bytes); }
  void set_block_cache_bytes(size_t bytes) override { m_tree->cache()->resize(bytes); }
  DBStatistics statistics() const override;
  std::vector<BackgroundError> background_errors() const override { return m_errors.current(); }

 private:
  // A memtable that takes no more writes.
  struct Closed {
    std::shared_ptr<MemTable> memtable;
    SequenceNumber last_sequence = 0;
  };

  // CommitObserver
  void commit_advanced() override;
  std::chrono::microseconds throttle_delay() override;

  // ValueGcHost (db_collect.cc)
  std::shared_ptr<const ReadState> gc_read_state(SequenceNumber* sequence) override;
  Status gc_relocate(const Relocation* first, size_t count, SequenceNumber checked, SequenceNumber* last) override;
  SequenceNumber gc_logged_sequence() override { return m_pipeline->logged_sequence(); }
  SequenceNumber gc_oldest_snapshot() override;
  uint64_t gc_start_reader_epoch() override;
  bool gc_reader_epoch_has_ended(uint64_t reader_epoch) override;
  void gc_request_flush() override { request_flush(); }
  void gc_released() override;
  void gc_wake() override { wake(Role::gc); }
  void gc_finished() override { notify_waiters(); }
  std::chrono::microseconds gc_outcome(const Status& status) override;
  uint64_t gc_now_us() override { return m_env->now_us(); }
  Status run_gc(ValueGc::Request what);

  // ScanHost (db_collect.cc)
  void relocate_values(const std::vector<Relocation>& values, SequenceNumber checked) override;

  // Opening (db_open.cc).
  Status open_files(Salvaged* salvaged = nullptr);
  LogRecovery new_recovery() const;  // from the newest checkpoint
  Status load_participant();
  Status replay(LogRecovery& recovery);
  void end_reading(const LogRecovery& recovery);
  Status recover_without(Salvaged* salvaged);
  // Values in the log that cannot be read, with the reason. Removes them, in memory.
  std::map<std::string, std::string> lose_values(Salvaged* salvaged);
  Status end_recovery(const LogRecovery& recovery, LogPosition* position);
  Status sync_everything();
  void start_workers(const LogPosition& position);

  // Writes.
  bool insert(Submission* submission) REQUIRES(m_write_lock);
  LogAddress* insert_operations(std::string_view encoded, uint32_t sequence_count) REQUIRES(m_write_lock);
  bool insert_into_write_buffer(const WriteBatch& batch) REQUIRES(m_write_lock);
  bool memtable_is_full() const REQUIRES(m_write_lock);
  size_t kept_bytes_wanted() const REQUIRES(m_write_lock);
  void switch_memtable() REQUIRES(m_write_lock) EXCLUDES(m_state_lock);
  uint64_t close_memtable() EXCLUDES(m_write_lock);

  class Writer;
  Status write_and_wait(WriteBatch batch);

  // Flush, compaction and log workers.
  void request_flush();  // closes the memtable and writes it, soon
  NextStep flush_step();
  NextStep flush_one(const Closed& closed, const LogPosition& position);
  NextStep flush_failed(const Status& status);
  void finish_flush();
  void tell_checkpoint();
  void release_unread();
  // Nothing to flush.
  NextStep flush_idle() const;
  NextStep compaction_step();
  // What became of it, and of what it did in between.
  void note_compaction(const Status& status);
  // Nothing can be made durable any more, and so nothing acknowledged.
  void stop_with_tree();
  // When a pass is wanted or under way: does a step. *ended counts a pass that is over.
  Status defragment_step(bool* did, std::chrono::microseconds* wait, uint64_t* ended);
  NextStep log_step();
  NextStep gc_step(IoQueue& io);
  enum class Role : uint8_t { flush, compaction, log, gc };
  void start_worker(Role role, const char* name, unsigned io_depth, Worker::Step step) REQUIRES(m_workers_lock);
  void wake(Role role) EXCLUDES(m_workers_lock);

  // Opened so: there is no pipeline and no worker, and m_env lets nothing be changed.
  bool read_only() const { return m_read_only_env != nullptr; }
  Status refuse_write() const;
  void install_first_state() REQUIRES(m_write_lock);
  void verify_values(std::vector<std::string>* findings, const std::atomic<bool>* cancelled);

  std::shared_ptr<const ReadState> read_state() const EXCLUDES(m_state_lock);
  void install_version(const MemTable* flushed) EXCLUDES(m_state_lock);
  SequenceNumber read_sequence(const Snapshot* snapshot) const {
    return snapshot ? snapshot->sequence() : m_visible.load(std::memory_order_acquire);
  }
  // Waits until `done` holds or the database has stopped.
  Status wait_until(const std::function<bool()>& done) EXCLUDES(m_wait_lock);
  void notify_waiters() EXCLUDES(m_wait_lock);

  std::unique_ptr<Env> m_read_only_env;  // what m_env points to then; outlives the files
  Env* const m_env;
  const std::string m_directory;
  const Options m_options;
  // The parts: set by the open, before any worker starts.
  std::unique_ptr<FileLock> m_file_lock;
  std::unique_ptr<Tree> m_tree;
  std::unique_ptr<SegmentPool> m_pool;
  std::unique_ptr<ValueReader> m_values;
  std::unique_ptr<ValueFetcher> m_fetcher;  // null: opened read-only
  std::unique_ptr<CommitPipeline> m_pipeline;
  std::unique_ptr<ValueGc> m_gc;
  SnapshotList m_snapshots;
  BackgroundErrors m_errors;

  Mutex m_write_lock ACQUIRED_BEFORE(m_state_lock, m_workers_lock);
  std::shared_ptr<MemTable> m_active GUARDED_BY(m_write_lock);  // who inserts holds it; readers need no lock
  SequenceNumber m_last_sequence GUARDED_BY(m_write_lock) = 0;
  SequenceNumber m_last_closed GUARDED_BY(m_write_lock) = 0;  // last sequence of the newest closed memtable
  uint64_t m_memtables_closed GUARDED_BY(m_write_lock) = 0;
  uint64_t m_log_bytes_at_switch GUARDED_BY(m_write_lock) = 0;
  std::atomic<SequenceNumber> m_last_content{0};  // last sequence that was not an empty record's
  std::atomic<SequenceNumber> m_visible{0};

  mutable Mutex m_state_lock;
  std::shared_ptr<const ReadState> m_state GUARDED_BY(m_state_lock);
  std::deque<Closed> m_closed GUARDED_BY(m_state_lock);  // oldest first
  // Reader epochs that are over but for readers of theirs, by number.
  std::map<uint64_t, std::weak_ptr<const int>> m_reader_epochs GUARDED_BY(m_state_lock);
  uint64_t m_reader_epoch GUARDED_BY(m_state_lock) = 0;
  std::atomic<size_t> m_closed_count{0};  // changed under m_state_lock

  // Guards no member: what is waited for is atomic, and whoever changes it takes the lock before it notifies.
  Mutex m_wait_lock;
  const std::unique_ptr<Signal> m_signal;
  std::atomic<int> m_waiters{0};
  std::atomic<uint64_t> m_write_waits{0};
  std::atomic<uint64_t> m_write_waited_us{0};
  std::atomic<uint64_t> m_scan_moved_bytes{0};
  Mutex m_writers_lock;
  std::vector<std::unique_ptr<WaitingWriter>> m_idle_writers GUARDED_BY(m_writers_lock);

  std::atomic<uint64_t> m_memtables_flushed{0};
  SequenceNumber m_told_checkpoint = 0;  // the flush worker's
  // Segments below an epoch that no checkpoint needs, once the readers of an epoch have gone. The flush worker's.
  struct Release {
    uint64_t below_epoch = 0;
    std::optional<uint64_t> reader_epoch;  // none: no memtable leads into the log
  };
  std::deque<Release> m_releases;
  uint64_t m_release_below = 0;     // the flush worker's
  bool m_release_is_due = false;    // likewise
  std::optional<Closed> m_written;  // likewise: in the tree, and not dropped yet
  uint64_t m_compactions_quarantined = 0;  // the compaction worker's: of those that were noted
  std::atomic<bool> m_segments_released{false};  // by the collector; not told to the pool yet
  std::atomic<bool> m_flush_wanted{false};
  std::atomic<unsigned> m_manifest_copies_wanted{0};  // of the manifest, to be written anew
  Mutex m_error_lock;
  Status m_flush_error GUARDED_BY(m_error_lock);  // of the newest attempt, like the next two
  Status m_compact_error GUARDED_BY(m_error_lock), m_defragment_error GUARDED_BY(m_error_lock);
  std::atomic<uint64_t> m_flush_failures{0};
  std::atomic<uint64_t> m_compactions_wanted{0};
  std::atomic<uint64_t> m_compactions_done{0};
  Mutex m_defragment_lock;
  DefragmentOptions m_defragment_options GUARDED_BY(m_defragment_lock);
  uint64_t m_defragments_wanted GUARDED_BY(m_defragment_lock) = 0;
  uint64_t m_defragments_started = 0;  // the compaction worker's
  std::atomic<uint64_t> m_defragments_done{0};
  std::unique_ptr<Defragmenter> m_defragmenter;
  std::atomic<bool> m_horizon_submitted{false};
  // Guards no member, but the log's files: held, over I/O, while verify() reads them and while segments are recycled,
  // made or removed. The workers only try it.
  Mutex m_log_files_lock;

  std::atomic<bool> m_stopping{false};  // set first of all
  // The workers wake one another, also while they end one by one: none is here any more then.
  Mutex m_workers_lock;
  using Workers = std::array<std::unique_ptr<Worker>, 4>;  // by role
  Workers m_workers GUARDED_BY(m_workers_lock);
};

}  // namespace vtkv
