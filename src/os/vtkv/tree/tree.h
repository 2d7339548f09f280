// SPDX-License-Identifier: LGPL-2.1-or-later
// The sorted part of the database on disk: runs in zones of one file, and the manifest that names them.
//
// The manifest has two copies in one pre-written file, written in turn; each holds a whole checkpoint:
// the runs, the geometry, and the log position up to which the runs hold everything. A torn or damaged
// copy leaves the other, so nothing that the older copy still needs (zones, log segments) may be reused
// before the next checkpoint: see oldest_log_position().
//
// Threads: flush and compaction are called by one worker each and exclude each other inside; versions are
// read by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/env/uuid.h"
#include "vtkv/mem/memtable.h"
#include "vtkv/options.h"
#include "vtkv/util/read_cache.h"
#include "vtkv/wal/log_position.h"

namespace vtkv {

// Lookups of many keys in ascending order: neighbours share the search, the reads and the blocks. Not thread-safe.
class AscendingLookups {
 public:
  virtual ~AscendingLookups() = default;
  // As Version::get for the newest version. REQUIRES: `key` is not below the one before.
  virtual Status get(std::string_view key, Lookup* result, std::string* value) = 0;
};

// Asks for the sequences that snapshots name, ascending. A compaction asks when its runs are claimed: a snapshot that
// comes later is at or above everything in them. (One that came between a look and the claim might name something that
// a flush has put there in between.)
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

// An immutable set of runs. Readers hold it by shared_ptr; that pins its runs and zones.
class Version {
 public:
  virtual ~Version() = default;
  // Newest version of `key` at or below `at_most`. Errors: corruption, io_error.
  virtual Status get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const = 0;
  virtual std::unique_ptr<AscendingLookups> ascending_lookups() const = 0;  // lives no longer than the version
  // One iterator and one set of range tombstones (null: none in the bounds) per run, newest run first,
  // restricted to runs that overlap [lower, upper); an empty upper is no limit. Iterators are not clipped
  // to the bounds; they live no longer than the version.
  virtual void new_iterators(std::string_view lower, std::string_view upper,
                             std::vector<std::unique_ptr<EntryIterator>>* iterators,
                             std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const = 0;
};

struct TreeStatistics {
  uint64_t flushes = 0, flush_bytes = 0, compactions = 0;
  uint64_t compaction_bytes = 0;  // written by compactions, purges and moves: blocks, indexes, filters, descriptors
  uint64_t filter_read_bytes = 0;  // of keys that were read for the sake of a longer filter only
  uint64_t stitched_bytes = 0;  // taken over by compactions where they lay
  uint64_t purges = 0;          // of key ranges that held mostly tombstones (compaction/purge_policy.h)
  uint64_t file_bytes = 0, live_bytes = 0;
  uint64_t entries = 0, filter_bytes = 0;  // of the runs; in memory
  uint64_t index_bytes = 0;     // in memory, always: the tops of the runs' indexes
  uint64_t descriptor_bytes = 0;  // on disk: written anew with whatever changes in a run
  uint64_t debt_bytes = 0;      // that compactions have to go through until the tree has its shape
  uint64_t zones = 0, zones_in_use = 0;
  uint32_t runs = 0, levels = 0;
};

struct Salvaged;
struct SegmentValues;

// What the newest version refers to in one zone.
struct ZoneUsage {
  uint64_t live_bytes = 0;
  uint64_t entries = 0;
  uint64_t fragments = 0;  // slices of spans that runs refer to, and spans of other blocks
  bool in_use = false;     // by this version, an older one, or a writer
  bool open = false;       // the next writer goes on in it
};

class Tree {
 public:
  // Writes the files of an empty tree and its first checkpoint (durable on return).
  static Status create(Env* env, const std::string& directory, const Geometry& geometry, const Uuid& uuid,
                       const LogPosition& start);
  static Status open(Env* env, const std::string& directory, const Options& options, std::unique_ptr<Tree>* tree);
  virtual ~Tree() = default;

  // Before the first write to the database, not where it is only read (manifest.h); then Code::unsupported forbids to
  // write.
  virtual Status clear_torn_checkpoint() = 0;

  virtual const Geometry& geometry() const = 0;
  virtual const Uuid& uuid() const = 0;
  // Of the newest checkpoint, and of the older of the two manifest copies (segments before it may go).
  virtual LogPosition newest_log_position() const = 0;
  virtual LogPosition oldest_log_position() const = 0;

  virtual std::shared_ptr<const Version> current() const = 0;

  // The log segments that the newest checkpoint's runs point to, and the epochs of those that either manifest
  // copy lists: a listed segment must not be written to.
  virtual std::vector<SegmentValues> value_segments() const = 0;
  virtual std::set<uint64_t> listed_epochs() const = 0;
  // Of the keys that the newest flush wrote, about: the part that had a value already. 0 before the first.
  virtual double overwritten_share() const = 0;
  // Writes checkpoints until neither copy lists these epochs and both copies have the newest log position.
  // REQUIRES: nobody will follow a pointer into them (gc/value_gc.h).
  virtual Status forget_segments(const std::set<uint64_t>& epochs) = 0;

  // Writes `memtable` as a run and a checkpoint at `position`; both durable on return. Versions of a key
  // that no snapshot in `snapshots` (ascending) can tell apart are dropped. An empty memtable only writes
  // the checkpoint. The caller keeps the memtable readable until this returned (then current() has it).
  virtual Status flush(const MemTable& memtable, const LogPosition& position,
                       const std::vector<SequenceNumber>& snapshots) = 0;
  // Is there a compaction worth doing? Does one, durably; with none to do, lets go of what the last ones replaced. *did
  // says whether there was any such thing.
  // A compaction that fails because something cannot be read or written is quarantined, with its runs, and others go
  // on.
  virtual Status compact_once(const SnapshotSource& snapshots, bool* did) = 0;
  // With it, a long compaction does smaller ones that become due meanwhile in between: these need the snapshots of
  // their own time. Called before the first compaction.
  virtual void set_snapshot_source(SnapshotSource source) = 0;
  // Compacts everything into one run, what is quarantined as well.
  virtual Status compact_all(const SnapshotSource& snapshots) = 0;
  // What is quarantined is not among the debt.
  struct Quarantine {
    Status status;  // of the newest compaction that was; ok: none is
    uint64_t failures = 0;  // how many were, ever
  };
  virtual Quarantine quarantine() const = 0;
  virtual void retry_quarantined() = 0;
  // TreeStatistics::debt_bytes alone, cheaply.
  virtual uint64_t compaction_debt() const = 0;
  // By zone. For whoever chooses what to move.
  virtual std::vector<ZoneUsage> zone_usage() const = 0;
  // Rewrites what the runs hold in these zones, so that they become free once older versions are let go. One run
  // is rewritten, the oldest that has anything there, and of it about `bytes_max`, in key order, or as much more as its
  // descriptor, which is written anew, makes worthwhile. Everything else of the run stays.
  struct Moved {
    bool any = false;  // there was such a run
    uint64_t moved_bytes = 0;  // blocks of entries and their indexes
    uint64_t written_bytes = 0;  // these, and what else a run needs
  };
  virtual Status move_out_of(const std::set<uint64_t>& zones, uint64_t bytes_max, const SnapshotSource& snapshots,
                             Moved* moved) = 0;
  // Gives zones that nobody uses back to the file system, all of them; some are kept otherwise.
  virtual void give_back_zones() = 0;
  // Not ok: it could not be said what is durable, and nothing is written any more. An error of flush() or a compaction
  // for want of space is none of these: they may be tried again.
  virtual Status failure() const = 0;
  // For closing: a flush or compaction under way returns Code::busy soon, and so does every later one. Thread-safe.
  virtual void stop() = 0;
  // Reads the manifest and every block; one sentence per finding. As DB::verify().
  virtual void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled = nullptr) = 0;
  // Options::stitch_threshold_bytes, for compactions that begin from now on.
  virtual void set_stitch_threshold(uint64_t bytes) = 0;
  // Of blocks, and of what else the database reads.
  virtual const std::shared_ptr<ReadCache>& cache() const = 0;
  virtual TreeStatistics statistics() const = 0;
};

// As Tree::open, without what cannot be read, and to be read only. Code::not_found: there is no older copy.
Status salvage_tree(Env* env, const std::string& directory, const Options& options, Salvaged* salvaged,
                    std::unique_ptr<Tree>* tree);

}  // namespace vtkv
