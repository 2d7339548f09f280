// SPDX-License-Identifier: LGPL-2.1-or-later
// The database: makes its parts, opens and closes them in order, and hands to each what it is asked for.
//
// A write goes through WritePath and CommitPipeline; what readers begin with is in ReadStates. Behind them Flusher,
// Compactor, LogMaintenance and ValueGc work, each as a step of one of the Workers; Throttle slows writers down when
// these are behind, and Waiters are who waits for them.
//
// Thread-safe as DB says. It has no lock of its own: those of its parts, and their order: doc/architecture.md, Locks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "vtkv/blob/value_fetcher.h"
#include "vtkv/blob/value_reader.h"
#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/commit/waiters.h"
#include "vtkv/db.h"
#include "vtkv/db/compactor.h"
#include "vtkv/db/flusher.h"
#include "vtkv/db/log_maintenance.h"
#include "vtkv/db/scan_relocator.h"
#include "vtkv/db/throttle.h"
#include "vtkv/db/write_path.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/env/workers.h"
#include "vtkv/gc/value_gc.h"
#include "vtkv/iter/read_states.h"
#include "vtkv/iter/scan_lengths.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class LogRecovery;
class LogReplay;
enum class CheckpointCopy;
struct Salvaged;
struct SalvagedDb;

class DbImpl final : public DB, private CommitObserver {
 public:
  DbImpl(Env* env, std::string directory, const Options& options);
  ~DbImpl() override;
  // The body of DB::open; nothing works before it succeeded. In db_open.cc.
  Status recover();
  // The body of DB::open_read_only. `env` is the one given to the constructor.
  Status recover_read_only(std::unique_ptr<Env> env);
  // The body of DB::upgrade. Recovers nothing.
  Status add_features(bool* added);
  // What open_to_salvage (salvage.h) does with one copy of the manifest. In db_salvage.cc.
  struct SalvageLoss;
  static Status salvage(Env* env, const std::string& directory, const Options& options, CheckpointCopy copy,
                        SalvagedDb* result, SalvageLoss* loss);

  void submit(Submission* submission) override;
  Status write(WriteBatch batch, const WriteOptions& options) override;
  Status get(std::string_view key, std::string* value, const Snapshot* snapshot) override;
  std::unique_ptr<Iterator> new_iterator(std::string_view lower, std::string_view upper,
                                         const Snapshot* snapshot) override;
  const Snapshot* take_snapshot() override;
  void release_snapshot(const Snapshot* snapshot) override;
  SequenceNumber durable_sequence() const override {
    return read_only() ? m_states->visible() : m_pipeline->durable_sequence();
  }
  SequenceNumber reuse_horizon() const override { return read_only() ? 0 : m_pipeline->reuse_horizon(); }
  void advance_reuse_horizon() override;
  Status wait_durable(SequenceNumber sequence) override;
  Status flush() override;
  void request_checkpoint() override;
  Status compact() override;
  Status collect_garbage(bool full) override;
  Status begin_defragment(const DefragmentOptions& options) override;
  void stop_defragment() override;
  DefragmentReport defragment_report() const override;
  Status defragment(const DefragmentOptions& options) override;
  void stop_background() override;
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) override;
  void set_stitch_threshold(uint64_t bytes) override { m_tree->set_stitch_threshold(bytes); }
  void set_block_cache_bytes(size_t bytes) override { m_tree->cache()->resize(bytes); }
  DBStatistics statistics() const override;
  bool is_upgradable() const override { return vtkv::is_upgradable(m_tree->features(), m_options); }
  bool may_compress_blocks() const override { return m_tree->features().incompat.contains(kCompressedBlocksFeature); }
  std::vector<BackgroundError> background_errors() const override { return m_errors.current(); }

 private:
  void abandon();

  // CommitObserver
  void commit_advanced() override;
  std::chrono::microseconds throttle_delay() override;
  bool memtables_are_crowded() override;

  Status run_gc(GcRequest what);

  // Opening (db_open.cc).
  Status open_files(Salvaged* salvaged = nullptr);
  LogRecovery new_recovery() const;  // from the newest checkpoint
  Status load_participant();
  // *position: the log's end, behind the record that ends the recovery.
  Status replay(LogRecovery& recovery, LogReplay* replay, LogPosition* position);
  Status flush_replayed(LogReplay* replay);
  Status replay_to_read(LogRecovery& recovery);
  Status recover_without(Salvaged* salvaged);
  // Values in the log that cannot be read, with the reason. Removes them, in memory.
  std::map<std::string, std::string> lose_values(Salvaged* salvaged);
  Status end_recovery(const LogRecovery& recovery, LogPosition* position);
  Status sync_everything();
  void make_parts(const LogPosition& position, SequenceNumber horizon);
  // `log_bytes`: of the log since the checkpoint.
  void start_workers(const LogPosition& position, LogReplay* replayed, uint64_t log_bytes);

  NextStep gc_step(IoQueue& io);
  NextStep log_step();

  // Opened so: there is no pipeline and nothing behind it, and m_env lets nothing be changed.
  bool read_only() const { return m_read_only_env != nullptr; }
  Status refuse_write() const;
  void verify_values(std::vector<std::string>* findings, const std::atomic<bool>* cancelled);

  std::unique_ptr<Env> m_read_only_env;  // what m_env points to then; outlives the files
  Env* const m_env;
  const std::string m_directory;
  const Options m_options;
  BackgroundErrors m_errors;
  Workers m_workers;
  ScanLengths m_scan_lengths;

  // Set by the open, before any worker starts; those from m_fetcher on are null when it was opened read-only.
  std::unique_ptr<FileLock> m_file_lock;
  std::unique_ptr<Tree> m_tree;
  std::unique_ptr<SegmentPool> m_pool;
  std::unique_ptr<ValueReader> m_values;
  std::unique_ptr<ReadStates> m_states;
  std::unique_ptr<ValueFetcher> m_fetcher;
  std::unique_ptr<CommitPipeline> m_pipeline;
  std::unique_ptr<Waiters> m_waiters;
  std::unique_ptr<WritePath> m_writes;
  std::unique_ptr<LogMaintenance> m_log;
  std::unique_ptr<Flusher> m_flusher;
  std::unique_ptr<Compactor> m_compactor;
  std::unique_ptr<ValueGc> m_gc;
  std::unique_ptr<ScanRelocator> m_scan_relocator;
};

}  // namespace vtkv
