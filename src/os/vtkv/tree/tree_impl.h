// The tree: versions, checkpoints, flush and merge.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vtkv/env/sync_failures.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/merge_policy.h"
#include "vtkv/tree/run_writer.h"
#include "vtkv/tree/stitch_merge.h"
#include "vtkv/tree/tree.h"
#include "vtkv/tree/version.h"
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
  // Opens the runs that the two slots name. A slot whose runs cannot be read is not this one's concern
  // when it is the older.
  Status load(const Checkpoint& older);
  // Opens what can be read of those of the newest slot. In tree_salvage.cc.
  void load_salvaged(Salvaged* salvaged);

  Status clear_torn_checkpoint() override;
  const Geometry& geometry() const override { return m_geometry; }
  const Uuid& uuid() const override { return m_uuid; }
  LogPosition newest_log_position() const override;
  LogPosition oldest_log_position() const override;
  std::shared_ptr<const Version> current() const override;
  std::vector<SegmentValues> value_segments() const override;
  double overwritten_part() const override { return m_overwritten_part.load(std::memory_order_relaxed); }
  void give_back_zones() override { m_reader.file().give_back_surplus(true); }
  std::set<uint64_t> listed_epochs() const override;
  Status forget_segments(const std::set<uint64_t>& epochs) override;
  Status flush(const MemTable& memtable, const LogPosition& position,
               const std::vector<SequenceNumber>& snapshots) override;
  Status merge_once(const SnapshotSource& snapshots, bool* did) override;
  void set_snapshot_source(SnapshotSource source) override { m_snapshot_source = std::move(source); }
  Status merge_all(const SnapshotSource& snapshots) override;
  PutAside put_aside() const override;
  void try_put_aside_again() override;
  uint64_t merge_debt() const override { return m_debt_bytes.load(std::memory_order_relaxed); }
  std::vector<ZoneUsage> zone_usage() const override;
  Status move_out_of(const std::set<uint64_t>& zones, uint64_t bytes_max,
                     const SnapshotSource& snapshots, Moved* moved) override;
  void stop() override { m_stop = true; }
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) override;
  void set_stitch_threshold(uint64_t bytes) override { m_stitch_threshold_bytes = bytes; }
  void set_merging(bool on) override { m_merging = on; }
  const std::shared_ptr<ReadCache>& cache() const override { return m_cache; }
  Status failure() const override;
  TreeStatistics statistics() const override;

 private:
  using Runs = std::vector<std::shared_ptr<const Run>>;
  // What a manifest slot names: keeps its runs' zones until the slot is overwritten.
  struct Slot {
    uint64_t epoch = 0;  // 0: the slot holds nothing valid
    LogPosition position;
    Runs runs;
    std::vector<SegmentValues> segments;
  };

  Status open_runs(const std::vector<RunLocation>& locations, const Runs& known, Runs* runs) const;
  Runs current_runs() const;
  // For new filters, when that many entries are about to come.
  int filter_bits(uint64_t new_entries) const;
  RunWriter::Settings merge_settings(uint32_t level, const MergePace& pace);
  // Or the one that was written for it before. Null when nothing is left of it.
  Status flushed_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                     std::shared_ptr<const Run>* run);
  Status write_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                   std::shared_ptr<const Run>* run);
  Status merge_into(const Runs& inputs, const Runs& below, const std::vector<SequenceNumber>& snapshots,
                    const StitchPolicy& policy, const MergePace& pace, ValueDelta* values, RunWriter* writer,
                    std::shared_ptr<const Run>* merged);
  // What a merge has written, whatever becomes of it; one more of a kind; what was read for filters.
  void count_written(uint64_t written_bytes, uint64_t stitched_bytes);
  void count(uint64_t TreeStatistics::*kind);
  void count_filter_read(uint64_t bytes);
  // Runs that one merge works on, so that no other takes them.
  struct Claim {
    Runs inputs;
    Runs below;  // the runs that are older
    uint32_t level = 0;
    bool urgent = false;  // a flush waits: neither stopped nor interrupted by other merges
  };
  using Choose = std::function<MergeChoice(const Runs& runs, const std::set<uint64_t>& busy)>;
  // Claims what `choose` names; false when that is nothing.
  bool claim(const Choose& choose, Claim* claimed);
  // Merges, installs, and gives the claim up.
  Status merge(const Claim& claimed, const SnapshotSource& snapshots, const StitchPolicy& policy);
  // The mutation: the snapshots of now, whenever it is asked.
  SnapshotSource listed(const SnapshotSource& snapshots) const;
  // Runs that are on disk, synced, and whose checkpoint had no space: they are listed before anything else is merged,
  // instead of being written again. Of use for as long as the inputs are among the runs as they were: flushes and other
  // merges change nothing in them.
  struct Unlisted {
    Runs inputs, outputs;
    ValueDelta values;
  };
  // Installs what earlier merges have written. *did says whether there was any such thing.
  Status install_unlisted(bool* did);
  // Takes out what is of no use any more with these runs. Caller holds m_lock.
  std::vector<Unlisted> take_useless_unlisted(const Runs& current);
  Status merge_claimed(const Claim& claimed, const std::vector<SequenceNumber>& snapshots,
                       const StitchPolicy& policy);
  // Of the one run that is claimed, what the policy says. In tree_zones.cc.
  Status move_claimed(const Claim& claimed, const std::vector<SequenceNumber>& snapshots, const StitchPolicy& policy,
                      Moved* moved);
  // Writes the n-th of the runs concerned anew, without what is hidden in the stretch; *left is null when nothing is
  // left. In tree_purge.cc, like the next three.
  struct Purge;
  Status purge_run(Purge* purge, size_t number, const Runs& older_runs, std::shared_ptr<const Run>* left);
  Status renew_filter(Purge* purge, const Runs& older_runs, std::shared_ptr<const Run>* run);
  Status purge_claimed(const Claim& claimed, const KeyRange& stretch, const std::vector<SequenceNumber>& snapshots);
  // Does one purge that is worth it (purge_policy.h).
  Status purge_once(const SnapshotSource& snapshots, bool* did);
  // `status`: what became of it. The runs are put aside when they, or the result, could not be read or written.
  void give_up(const Claim& claimed, const Status& status);
  static bool is_put_aside(const Status& status);
  void forget_put_aside(const Runs& current);  // but these; caller holds m_lock
  uint64_t debt_of(const Runs& runs) const;  // caller holds m_lock
  Status let_go_of_replaced(bool* did);
  Status install_merge(const Runs& inputs, const Runs& outputs, const ValueDelta& values);
  // Between two pieces of work: whether to stop.
  Status go_on() const;
  // Between two pieces of a merge into `level`: that, and merges of smaller levels that are due.
  Status give_way(uint32_t level);
  StitchPolicy stitch_policy() const;
  Status make_room_in_manifest(const std::vector<SequenceNumber>& snapshots);
  // Whatever the shape, and for a flush that waits; *did says whether any could be.
  Status merge_neighbours(const std::vector<SequenceNumber>& snapshots, bool* did);
  Status sync_zones();
  using Segments = std::vector<SegmentValues>;
  // Writes a checkpoint of the current runs and segments as the edits change them, and makes it current.
  Status install(const std::function<void(Runs*)>& edit, const LogPosition* position,
                 const std::function<void(Segments*)>& edit_segments);
  // A checkpoint that may name `runs` could not be made durable.
  Status checkpoint_failed(const Runs& runs, Status status, bool final);
  Status fail(Status status);

  Env* const m_env;
  const Options m_options;
  const MergeShape m_shape;
  const Geometry m_geometry;
  const Uuid m_uuid;
  const std::shared_ptr<ReadCache> m_cache;
  const SpanReader m_reader;
  SnapshotSource m_snapshot_source;
  std::atomic<uint64_t> m_next_run_id;
  std::atomic<uint64_t> m_stitch_threshold_bytes;
  std::atomic<bool> m_merging;
  std::atomic<bool> m_stop{false};
  std::atomic<uint64_t> m_debt_bytes{0};  // of m_current; set with it
  std::atomic<double> m_overwritten_part{0};

  // Order of locks: flush, merge, emergency, checkpoint, m_lock.
  std::mutex m_flush_lock;
  std::mutex m_merge_lock;
  std::mutex m_emergency_lock;  // a flush merges to make room; whoever claims all runs waits for it
  std::mutex m_checkpoint_lock;
  const std::unique_ptr<Manifest> m_manifest;  // writes: under m_checkpoint_lock
  Checkpoint m_checkpoint;                     // the newest; under m_checkpoint_lock

  // Likewise of a flush, of this memtable. Under m_flush_lock.
  struct UnlistedFlush {
    const MemTable* memtable = nullptr;
    SequenceNumber last_sequence = 0;
    uint64_t entries = 0;
    std::shared_ptr<const Run> run;
    ValueDelta values;
  };
  UnlistedFlush m_unlisted_flush;

  mutable std::mutex m_lock;  // of what follows; held for moments
  std::shared_ptr<const RunVersion> m_current;
  std::array<Slot, 2> m_slots;  // by epoch mod 2
  uint64_t m_epoch = 0;
  std::set<uint64_t> m_busy;       // ids of the runs that are claimed
  std::map<uint64_t, bool> m_put_aside;  // of those whose merge has failed; false: it may be tried again
  PutAside m_put_aside_state;
  const SyncWatch m_syncs;
  Status m_failure;  // of a sync or a checkpoint: nothing is written any more
  // Of checkpoints that failed and are in the manifest all the same, perhaps, until one has taken their place: what they
  // name stays as it is, also while workers that had begun before write on.
  std::vector<Runs> m_doubtful;
  std::vector<Unlisted> m_unlisted;  // of merges that met this
  TreeStatistics m_statistics;
};

}  // namespace vtkv
