// SPDX-License-Identifier: LGPL-2.1-or-later
// The sorted part of the database on disk: sorted runs in zones of one file, and the manifest that names them.
//
// The manifest has two copies in one pre-written file, written in turn; each holds a whole checkpoint:
// the runs, the geometry, and the log position up to which the runs hold everything. A torn or damaged
// copy leaves the other, so nothing that the older copy still needs (zones, log segments) may be reused
// before the next checkpoint: see oldest_log_position().
//
// Threads: flush and compaction are called by one worker each. A flush puts a sorted run in front of the others, a step
// of compaction replaces parts that only it may replace: so neither waits for the other but at a checkpoint. Versions
// are read by any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "vtkv/compaction/compaction_policy.h"
#include "vtkv/env.h"
#include "vtkv/env/sync_failures.h"
#include "vtkv/env/uuid.h"
#include "vtkv/mem/memtable.h"
#include "vtkv/options.h"
#include "vtkv/table/run_writer.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/run_version.h"
#include "vtkv/util/mutex.h"
#include "vtkv/util/read_cache.h"
#include "vtkv/wal/log_position.h"

namespace vtkv {

// Asks for the sequences that snapshots name, ascending. A compaction asks when it has chosen its runs: a snapshot that
// comes later is at or above everything in them.
class SnapshotSource {
 public:
  SnapshotSource() = default;  // none
  SnapshotSource(std::initializer_list<SequenceNumber> fixed) : SnapshotSource(std::vector<SequenceNumber>(fixed)) {}
  SnapshotSource(std::vector<SequenceNumber> fixed) : m_ask([fixed = std::move(fixed)] { return fixed; }) {}
  template <typename Ask>
    requires(!std::is_same_v<Ask, SnapshotSource> && std::is_invocable_r_v<std::vector<SequenceNumber>, Ask>)
  SnapshotSource(Ask ask) : m_ask(std::move(ask)) {}
  std::vector<SequenceNumber> operator()() const { return m_ask ? m_ask() : std::vector<SequenceNumber>(); }
  explicit operator bool() const { return static_cast<bool>(m_ask); }

 private:
  std::function<std::vector<SequenceNumber>()> m_ask;
};

struct TreeStatistics {
  uint64_t flushes = 0, flush_bytes = 0, compactions = 0;
  uint64_t compaction_bytes = 0;  // written by compactions, purges and moves: blocks, indexes, filters, descriptors
  uint64_t filter_read_bytes = 0;  // of stitched blocks, whose keys were read for a filter
  uint64_t stitched_bytes = 0;  // taken over by compactions where they lay
  uint64_t purges = 0;  // of key ranges that held mostly tombstones (compaction/purge_policy.h)
  uint64_t file_bytes = 0, live_bytes = 0;  // the former: space of the host; holes are none
  uint64_t entries = 0, filter_bytes = 0, range_tombstone_bytes = 0;  // of the runs; the latter two in memory
  uint64_t index_bytes = 0;  // in memory, always: the tops of the runs' indexes
  uint64_t descriptor_bytes = 0;  // on disk: written anew with whatever changes in a run
  uint64_t debt_bytes = 0;  // that compactions have to go through until the tree has its shape
  uint64_t zones = 0, zones_in_use = 0;
  uint32_t runs = 0, levels = 0;  // sorted runs
  uint32_t parts = 0;  // of all of them
};

struct Salvaged;
struct StitchPolicy;
struct TreeEdit;

// What the newest version refers to in one zone.
struct ZoneUsage {
  uint64_t live_bytes = 0;
  uint64_t entries = 0;
  uint64_t fragments = 0;  // slices of spans that runs refer to, and spans of other blocks
  bool in_use = false;  // by this version, an older one, or a writer
  bool open = false;  // the next writer goes on in it
};

class Tree {
 public:
  // Writes the files of an empty tree and its first checkpoint (durable on return).
  static Status create(Env* env, const std::string& directory, const Geometry& geometry, const Uuid& uuid,
                       const LogPosition& start, const Features& features = {});
  static Status open(Env* env, const std::string& directory, const Options& options, std::unique_ptr<Tree>* tree);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Code::unsupported: its features allow this program to read it only.
  Status check_may_write() const;
  // Before the first write to the database, not where it is only read. Clears a torn checkpoint (manifest.h), and gives
  // both copies the newest one's features: a program that does not know them must not go on with the other. Where the
  // host has no space for that, blocks are not compressed until it is opened again.
  Status prepare_to_write();
  // Have both copies the same?
  bool features_agree() const;
  // Durably, in both copies. For whoever opens the tree to do this and nothing else: what it writes itself is still
  // without them.
  Status add_features(const Features& features);

  const Geometry& geometry() const { return m_geometry; }
  const Uuid& uuid() const { return m_uuid; }
  const Features& features() const { return m_features; }  // as it was opened
  // Of the newest checkpoint, and of the older of the two manifest copies (segments before it may go).
  LogPosition newest_log_position() const;
  LogPosition oldest_log_position() const;

  std::shared_ptr<const Version> current() const;

  // The log segments that the newest checkpoint's runs point to, and the epochs of those that either manifest
  // copy lists: a listed segment must not be written to.
  std::vector<SegmentValues> value_segments() const;
  std::set<uint64_t> listed_epochs() const;
  // Of the keys that the newest flush wrote, about: the part that had a value already. 0 before the first.
  double overwritten_share() const { return m_overwritten_share.load(std::memory_order_relaxed); }
  // Writes checkpoints until neither copy lists these epochs and both copies have the newest log position.
  // REQUIRES: nobody will follow a pointer into them (gc/value_gc.h).
  Status forget_segments(const std::set<uint64_t>& epochs);

  // Writes `memtable` as a run and a checkpoint at `position`; both durable on return. Versions of a key
  // that no snapshot in `snapshots` (ascending) can tell apart are dropped. An empty memtable only writes
  // the checkpoint. The caller keeps the memtable readable until this returned (then current() has it).
  Status flush(const MemTable& memtable, const LogPosition& position, const std::vector<SequenceNumber>& snapshots);
  // Does one step of a compaction that is due, durably; with none to do, lets go of what the last ones replaced. *did
  // says whether there was any such thing.
  // A step that fails because something cannot be read or written is quarantined, and others go on.
  Status compact_once(const SnapshotSource& snapshots, bool* did);
  // Compacts everything that is there now into one sorted run, one step after the other, also where an earlier attempt
  // has failed. A step that fails leaves its range as it was; the others follow, and the first error is returned.
  Status compact_all(const SnapshotSource& snapshots);
  // What is quarantined is not among the debt.
  struct Quarantine {
    Status status;  // of the newest step that was; ok: none is
    uint64_t failures = 0;  // how many were, ever
  };
  Quarantine quarantine() const;
  void retry_quarantined();
  // TreeStatistics::debt_bytes alone, cheaply.
  uint64_t compaction_debt() const { return m_debt_bytes.load(std::memory_order_relaxed); }
  // How far compaction is behind (compaction/compaction_policy.h): from 1 on, writers should wait for it.
  double compaction_pressure() const { return m_pressure.load(std::memory_order_relaxed); }
  // By zone. For whoever chooses what to move.
  std::vector<ZoneUsage> zone_usage() const;
  // Rewrites what the runs hold in these zones, so that they become free once older versions are let go. One part of a
  // sorted run is rewritten, the oldest that has anything there, and of it about `bytes_max`, in key order, or as much
  // more as its descriptor, which is written anew, makes worthwhile. Everything else of the part stays.
  struct Moved {
    bool any = false;  // there was such a part
    uint64_t moved_bytes = 0;  // blocks of entries and their indexes
    uint64_t written_bytes = 0;  // these, and what else a run needs
  };
  Status move_out_of(const std::set<uint64_t>& zones, uint64_t bytes_max, const SnapshotSource& snapshots,
                     Moved* moved);
  // Gives zones that nobody uses back to the file system, all of them; some are kept otherwise. Both copies of the
  // manifest are written anew before: the older one may hold what was replaced.
  Status give_back_zones();
  // Takes the result of work on the host's files. Where the host had no space for it, all free zones go back to the
  // host, and one more checkpoint lets go of the runs that only the older copy of the manifest names. True: there were
  // any, so that another attempt may find room. Thread-safe.
  bool spare_space_after(const Status& status);
  // From then on, until no compaction is due: lets go of such runs again. *did says whether there were any.
  Status let_go_while_short(bool* did);
  // Not ok: it could not be said what is durable, and nothing is written any more. An error of flush() or a compaction
  // for want of space is none of these: they may be tried again.
  Status failure() const;
  // For closing: a flush or compaction under way returns Code::busy soon, and so does every later one. Thread-safe.
  void stop() { m_stop = true; }
  // Reads the manifest and every block; one sentence per finding. As DB::verify().
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled = nullptr);
  // Options::stitch_threshold_bytes, for compactions that begin from now on.
  void set_stitch_threshold(uint64_t bytes) { m_stitch_threshold_bytes = bytes; }
  // Of blocks, and of what else the database reads.
  const std::shared_ptr<ReadCache>& cache() const { return m_cache; }
  TreeStatistics statistics() const;

 private:
  friend Status salvage_tree(Env* env, const std::string& directory, const Options& options, Salvaged* salvaged,
                             std::unique_ptr<Tree>* tree);
  Tree(Env* env, const Options& options, std::unique_ptr<Manifest> manifest, std::shared_ptr<ZoneFile> zones,
       Checkpoint newest);
  // The two files.
  static Status open_files(Env* env, const std::string& directory, std::unique_ptr<Manifest>* manifest,
                           std::shared_ptr<ZoneFile>* zones, Checkpoint* newest, Checkpoint* older);
  // Opens the runs that the two copies name. A copy whose runs cannot be read is not this one's concern
  // when it is the older.
  Status load(const Checkpoint& older);
  // Opens what can be read of those of the newest copy. In tree_salvage.cc.
  void load_salvaged(Salvaged* salvaged);

  // What a manifest copy names. Keeps its runs' zones until the copy is overwritten; its runs are never read. Those
  // that only the older copy named when the tree was opened have no filter and no range tombstones (Run::open_unread).
  struct ManifestCopy {
    uint64_t epoch = 0;  // 0: the copy holds nothing valid
    LogPosition position;
    Runs runs;
    std::vector<SegmentValues> segments;
  };

  using OpenRun = Status (*)(const SpanReader& reader, const RunLocation& location, std::shared_ptr<const Run>* run);
  Status open_runs(const std::vector<RunLocation>& locations, const Runs& known, OpenRun open, Runs* runs) const;
  Runs current_runs() const;  // the parts of all sorted runs
  SortedRuns current_sorted_runs() const;
  // For new filters, when that many entries are about to come: of the entries that a lookup may meet.
  int filter_bits(uint64_t new_entries) const;
  RunWriter::Settings writer_settings(uint64_t new_entries) const;
  Status write_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                   std::shared_ptr<const Run>* run);
  bool is_list_nearly_full() const;
  Status list_is_full(size_t runs, size_t segments) const;
  // What a compaction has written, whatever becomes of it; one more of a kind.
  void count_written(uint64_t written_bytes, uint64_t stitched_bytes, uint64_t filter_read_bytes = 0);
  void count(uint64_t TreeStatistics::* kind);
  // The mutation: the snapshots of now, whenever it is asked.
  SnapshotSource listed(const SnapshotSource& snapshots) const;
  // Carries a step out and installs the result. In tree_compaction.cc, like the next three.
  Status do_step(const SortedRuns& runs, const CompactionStep& step, const SnapshotSource& snapshots, bool* changed)
      REQUIRES(m_compaction_lock);
  Status run_job(const SortedRuns& runs, const CompactionStep& step, const std::vector<SequenceNumber>& snapshots,
                 TreeEdit* edit);
  bool is_file_large(const SortedRuns& runs) const;
  CompactionStep choose_purge_step(const SortedRuns& runs, const SnapshotSource& snapshots) REQUIRES(m_compaction_lock);
  void note_quarantine(const Status& status) REQUIRES(m_compaction_lock);
  static bool is_quarantined(const Status& status);
  // Of the one part that is given, what the policy says. In tree_zones.cc.
  Status move_part(const std::shared_ptr<const Run>& part, const std::vector<SequenceNumber>& snapshots,
                   const StitchPolicy& policy, Moved* moved);
  Status let_go_of_replaced(bool* did);
  // Of runs that only the older copy names, if they take more than this part of the current runs' bytes.
  Status let_go_of_more_than(double part, bool* did);
  Status install_edit(const TreeEdit& edit, const ValueDelta& values);
  // Between two steps of work: whether to stop.
  Status go_on() const;
  StitchPolicy stitch_policy() const;
  Status sync_zones();
  using Segments = std::vector<SegmentValues>;
  // Writes a checkpoint of the current runs and segments as the edits change them, and makes it current.
  Status install(const std::function<void(SortedRuns*)>& edit, const LogPosition* position,
                 const std::function<void(Segments*)>& edit_segments) EXCLUDES(m_checkpoint_lock, m_lock);
  Status write_features_again() EXCLUDES(m_checkpoint_lock, m_lock);
  // A checkpoint that may name `runs` could not be made durable.
  Status checkpoint_failed(const Runs& runs, Status status, bool final);
  Status fail(Status status);
  void set_pressure(const SortedRuns& runs);

  Env* const m_env;
  const Options m_options;
  const CompactionShape m_shape;
  const Geometry m_geometry;
  const Uuid m_uuid;
  const std::shared_ptr<ReadCache> m_cache;
  const SpanReader m_reader;
  std::atomic<uint64_t> m_next_run_id;  // of runs and sorted runs
  const Features m_features;
  bool m_compress_blocks;  // set before the workers start
  std::atomic<uint64_t> m_stitch_threshold_bytes;
  std::atomic<bool> m_stop{false};
  std::atomic<bool> m_host_is_short{false};  // of space, as far as is known
  std::atomic<uint64_t> m_debt_bytes{0};  // of m_current; set with it, and so is the next
  std::atomic<double> m_pressure{0};
  std::atomic<uint64_t> m_list_room_bytes{UINT64_MAX};  // left in a copy of the manifest
  std::atomic<bool> m_damage_waits{false};  // a step is quarantined: nobody waits for compaction
  std::atomic<double> m_overwritten_share{0};

  // The first three are each held over a whole piece of work, its I/O with it: one flush at a time, one step of
  // compaction, one checkpoint. Readers need none of them.
  Mutex m_flush_lock ACQUIRED_BEFORE(m_checkpoint_lock);
  Mutex m_compaction_lock ACQUIRED_BEFORE(m_checkpoint_lock);
  CompactionPolicy m_policy GUARDED_BY(m_compaction_lock);
  mutable Mutex m_checkpoint_lock ACQUIRED_BEFORE(m_lock);
  const std::string m_manifest_path;
  const size_t m_manifest_bytes_max;
  const std::unique_ptr<Manifest> m_manifest PT_GUARDED_BY(m_checkpoint_lock);
  Checkpoint m_checkpoint GUARDED_BY(m_checkpoint_lock);  // the newest
  bool m_features_agree GUARDED_BY(m_checkpoint_lock) = true;  // of both copies, before the first checkpoint

  const SyncWatch m_syncs;
  mutable Mutex m_lock;  // held for moments
  std::shared_ptr<const RunVersion> m_current GUARDED_BY(m_lock);
  std::array<ManifestCopy, 2> m_copies GUARDED_BY(m_lock);  // by epoch mod 2
  uint64_t m_epoch GUARDED_BY(m_lock) = 0;
  Quarantine m_quarantine_state GUARDED_BY(m_lock);
  Status m_failure GUARDED_BY(m_lock);  // of a sync or a checkpoint: nothing is written any more
  // Of checkpoints that failed and are in the manifest all the same, perhaps, until one has taken their place: what
  // they name stays as it is, also while workers that had begun before write on.
  std::vector<Runs> m_doubtful GUARDED_BY(m_lock);
  TreeStatistics m_statistics GUARDED_BY(m_lock);
};

// As Tree::open, without what cannot be read, and to be read only. Code::not_found: there is no older copy.
Status salvage_tree(Env* env, const std::string& directory, const Options& options, Salvaged* salvaged,
                    std::unique_ptr<Tree>* tree);

}  // namespace vtkv
