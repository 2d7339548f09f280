// SPDX-License-Identifier: LGPL-2.1-or-later
// The tree: versions, checkpoints, flush and compaction.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vtkv/compaction/compaction_policy.h"
#include "vtkv/compaction/stitch_compaction.h"
#include "vtkv/env/sync_failures.h"
#include "vtkv/table/run_writer.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/tree.h"
#include "vtkv/tree/version.h"
#include "vtkv/util/mutex.h"
#include "vtkv/util/read_cache.h"

namespace vtkv {

// The two files of a tree.
Status open_files(Env* env, const std::string& directory, std::unique_ptr<Manifest>* manifest,
                  std::shared_ptr<ZoneFile>* zones, Checkpoint* newest, Checkpoint* older);

struct Salvaged;

class TreeImpl final : public Tree {
 public:
  TreeImpl(Env* env, const Options& options, std::unique_ptr<Manifest> manifest, std::shared_ptr<ZoneFile> zones,
           Checkpoint newest);
  // Opens the runs that the two copies name. A copy whose runs cannot be read is not this one's concern
  // when it is the older.
  Status load(const Checkpoint& older);
  // Opens what can be read of those of the newest copy. In tree_salvage.cc.
  void load_salvaged(Salvaged* salvaged);

  Status clear_torn_checkpoint() override;
  const Geometry& geometry() const override { return m_geometry; }
  const Uuid& uuid() const override { return m_uuid; }
  LogPosition newest_log_position() const override;
  LogPosition oldest_log_position() const override;
  std::shared_ptr<const Version> current() const override;
  std::vector<SegmentValues> value_segments() const override;
  double overwritten_share() const override { return m_overwritten_share.load(std::memory_order_relaxed); }
  void give_back_zones() override { m_reader.file().give_back_surplus(true); }
  std::set<uint64_t> listed_epochs() const override;
  Status forget_segments(const std::set<uint64_t>& epochs) override;
  Status flush(const MemTable& memtable, const LogPosition& position,
               const std::vector<SequenceNumber>& snapshots) override;
  Status compact_once(const SnapshotSource& snapshots, bool* did) override;
  void set_snapshot_source(SnapshotSource source) override { m_snapshot_source = std::move(source); }
  Status compact_all(const SnapshotSource& snapshots) override;
  Quarantine quarantine() const override;
  void retry_quarantined() override;
  uint64_t compaction_debt() const override { return m_debt_bytes.load(std::memory_order_relaxed); }
  std::vector<ZoneUsage> zone_usage() const override;
  Status move_out_of(const std::set<uint64_t>& zones, uint64_t bytes_max, const SnapshotSource& snapshots,
                     Moved* moved) override;
  void stop() override { m_stop = true; }
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) override;
  void set_stitch_threshold(uint64_t bytes) override { m_stitch_threshold_bytes = bytes; }
  const std::shared_ptr<ReadCache>& cache() const override { return m_cache; }
  Status failure() const override;
  TreeStatistics statistics() const override;

 private:
  using Runs = std::vector<std::shared_ptr<const Run>>;
  // What a manifest copy names: keeps its runs' zones until the copy is overwritten.
  struct ManifestCopy {
    uint64_t epoch = 0;  // 0: the copy holds nothing valid
    LogPosition position;
    Runs runs;
    std::vector<SegmentValues> segments;
  };

  Status open_runs(const std::vector<RunLocation>& locations, const Runs& known, Runs* runs) const;
  Runs current_runs() const;
  // For new filters, when that many entries are about to come.
  int filter_bits(uint64_t new_entries) const;
  RunWriter::Settings compaction_settings(uint32_t level, const CompactionPace& pace);
  // Or the one that was written for it before. Null when nothing is left of it.
  Status flushed_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                     std::shared_ptr<const Run>* run) REQUIRES(m_flush_lock);
  Status write_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                   std::shared_ptr<const Run>* run);
  Status compact_into(const Runs& inputs, const Runs& below, const std::vector<SequenceNumber>& snapshots,
                      const StitchPolicy& policy, const CompactionPace& pace, ValueDelta* values, RunWriter* writer,
                      std::shared_ptr<const Run>* compacted);
  // What a compaction has written, whatever becomes of it; one more of a kind; what was read for filters.
  void count_written(uint64_t written_bytes, uint64_t stitched_bytes);
  void count(uint64_t TreeStatistics::* kind);
  void count_filter_read(uint64_t bytes);
  // Runs that one compaction works on, so that no other takes them.
  struct Claim {
    Runs inputs;
    Runs below;  // the runs that are older
    uint32_t level = 0;
    bool urgent = false;  // a flush waits: neither stopped nor interrupted by other compactions
  };
  using Choose = std::function<CompactionChoice(const Runs& runs, const std::set<uint64_t>& busy)>;
  // Claims what `choose` names, which is asked under m_lock; false when that is nothing.
  bool claim(const Choose& choose, Claim* claimed);
  // Compacts, installs, and gives the claim up.
  Status compact(const Claim& claimed, const SnapshotSource& snapshots, const StitchPolicy& policy);
  // The mutation: the snapshots of now, whenever it is asked.
  SnapshotSource listed(const SnapshotSource& snapshots) const;
  // Runs that are on disk, synced, and whose checkpoint had no space: they are listed before anything else is
  // compacted, instead of being written again. Of use for as long as the inputs are among the runs as they were:
  // flushes and other compactions change nothing in them.
  struct Unlisted {
    Runs inputs, outputs;
    ValueDelta values;
  };
  // Installs what earlier compactions have written. *did says whether there was any such thing.
  Status install_unlisted(bool* did);
  // Takes out what is of no use any more with these runs.
  std::vector<Unlisted> take_useless_unlisted(const Runs& current) REQUIRES(m_lock);
  Status compact_claimed(const Claim& claimed, const std::vector<SequenceNumber>& snapshots,
                         const StitchPolicy& policy);
  // Of the one run that is claimed, what the policy says. In tree_zones.cc.
  Status move_claimed(const Claim& claimed, const std::vector<SequenceNumber>& snapshots, const StitchPolicy& policy,
                      Moved* moved);
  // Writes the n-th of the runs concerned anew, without what is hidden in the key range; *left is null when nothing is
  // left. In tree_purge.cc, like the next three.
  struct Purge;
  Status purge_run(Purge* purge, size_t number, const Runs& older_runs, std::shared_ptr<const Run>* left);
  Status renew_filter(Purge* purge, const Runs& older_runs, std::shared_ptr<const Run>* run);
  Status purge_claimed(const Claim& claimed, const KeyRange& range, const std::vector<SequenceNumber>& snapshots);
  // Does one purge that is worth it (purge_policy.h).
  Status purge_once(const SnapshotSource& snapshots, bool* did);
  // `status`: what became of it. The runs are quarantined when they, or the result, could not be read or written.
  void give_up(const Claim& claimed, const Status& status);
  static bool is_quarantined(const Status& status);
  void forget_quarantined(const Runs& current) REQUIRES(m_lock);  // but these
  uint64_t debt_of(const Runs& runs) const REQUIRES(m_lock);
  Status let_go_of_replaced(bool* did);
  Status install_compaction(const Runs& inputs, const Runs& outputs, const ValueDelta& values);
  // Between two steps of work: whether to stop.
  Status go_on() const;
  // Between two steps of a compaction into `level`: that, and compactions of smaller levels that are due.
  Status give_way(uint32_t level);
  StitchPolicy stitch_policy() const;
  Status make_room_in_manifest(const std::vector<SequenceNumber>& snapshots);
  // Whatever the shape, and for a flush that waits; *did says whether any could be.
  Status compact_neighbours(const std::vector<SequenceNumber>& snapshots, bool* did) EXCLUDES(m_emergency_lock);
  Status sync_zones();
  using Segments = std::vector<SegmentValues>;
  // Writes a checkpoint of the current runs and segments as the edits change them, and makes it current.
  Status install(const std::function<void(Runs*)>& edit, const LogPosition* position,
                 const std::function<void(Segments*)>& edit_segments) EXCLUDES(m_checkpoint_lock, m_lock);
  // A checkpoint that may name `runs` could not be made durable.
  Status checkpoint_failed(const Runs& runs, Status status, bool final);
  Status fail(Status status);

  Env* const m_env;
  const Options m_options;
  const CompactionShape m_shape;
  const Geometry m_geometry;
  const Uuid m_uuid;
  const std::shared_ptr<ReadCache> m_cache;
  const SpanReader m_reader;
  const size_t m_runs_max;  // of the manifest
  SnapshotSource m_snapshot_source;  // set before the workers start
  std::atomic<uint64_t> m_next_run_id;
  std::atomic<uint64_t> m_stitch_threshold_bytes;
  std::atomic<bool> m_stop{false};
  std::atomic<uint64_t> m_debt_bytes{0};  // of m_current; set with it
  std::atomic<double> m_overwritten_share{0};

  // The first four are each held over a whole piece of work, its I/O with it: one flush at a time, one compaction,
  // one checkpoint. Readers need none of them.
  Mutex m_flush_lock ACQUIRED_BEFORE(m_emergency_lock);
  Mutex m_compaction_lock ACQUIRED_BEFORE(m_emergency_lock);
  // A flush compacts to make room; whoever claims all runs waits for it.
  Mutex m_emergency_lock ACQUIRED_BEFORE(m_checkpoint_lock);
  Mutex m_checkpoint_lock ACQUIRED_BEFORE(m_lock);
  const std::unique_ptr<Manifest> m_manifest PT_GUARDED_BY(m_checkpoint_lock);
  Checkpoint m_checkpoint GUARDED_BY(m_checkpoint_lock);  // the newest

  // Likewise of a flush, of this memtable.
  struct UnlistedFlush {
    const MemTable* memtable = nullptr;
    SequenceNumber last_sequence = 0;
    uint64_t entries = 0;
    std::shared_ptr<const Run> run;
    ValueDelta values;
  };
  UnlistedFlush m_unlisted_flush GUARDED_BY(m_flush_lock);

  const SyncWatch m_syncs;
  mutable Mutex m_lock;  // held for moments
  std::shared_ptr<const RunVersion> m_current GUARDED_BY(m_lock);
  std::array<ManifestCopy, 2> m_copies GUARDED_BY(m_lock);  // by epoch mod 2
  uint64_t m_epoch GUARDED_BY(m_lock) = 0;
  std::set<uint64_t> m_busy GUARDED_BY(m_lock);  // ids of the runs that are claimed
  // Of those whose compaction has failed; false: it may be tried again.
  std::map<uint64_t, bool> m_quarantined GUARDED_BY(m_lock);
  Quarantine m_quarantine_state GUARDED_BY(m_lock);
  Status m_failure GUARDED_BY(m_lock);  // of a sync or a checkpoint: nothing is written any more
  // Of checkpoints that failed and are in the manifest all the same, perhaps, until one has taken their place: what
  // they name stays as it is, also while workers that had begun before write on.
  std::vector<Runs> m_doubtful GUARDED_BY(m_lock);
  std::vector<Unlisted> m_unlisted GUARDED_BY(m_lock);  // of compactions that met this
  TreeStatistics m_statistics GUARDED_BY(m_lock);
};

}  // namespace vtkv
