// SPDX-License-Identifier: LGPL-2.1-or-later
// Settings of a database. Geometry is fixed at creation and kept in the database; the rest may differ
// at every open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vtkv/background_error.h"
#include "vtkv/iterator.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// For Options::stitch_threshold_bytes.
inline constexpr uint64_t kNeverStitch = UINT64_MAX;

// Fixed at creation. All in bytes, multiples of 4 KiB; tests use a few KiB.
struct Geometry {
  uint64_t log_segment_bytes = 64ull << 20;
  uint32_t initial_log_segments = 4;  // at least 2
  uint64_t zone_bytes = 8ull << 20;
  uint32_t block_bytes = 4096;  // target size of an entry block, on disk
};

// What the engine asks of the owner of external writes (SwimStore's containers). Called during open only.
class ExternalStore {
 public:
  virtual ~ExternalStore() = default;
  // Does the container hold exactly these bytes? Ok: *matches says. An I/O error while reading is
  // reported in the status. Either is asked again (kReadTries); then the engine keeps the record and calls
  // mark_damaged, or takes the data not to have arrived.
  virtual Status verify(const ExternalWrite& write, bool* matches) = 0;
  virtual void mark_damaged(const ExternalWrite& write) = 0;
  // Makes everything in the user's files durable: recovery does so before it writes its record.
  virtual Status sync_all() = 0;
};

// What a participant says at a checkpoint about one key.
struct CheckpointEntry {
  std::string key;
  std::optional<std::string> value;  // none: the key is removed
};

// Lets the user keep state of its own consistent with the tree (SwimStore's allocation pages).
class CheckpointParticipant {
 public:
  // An iterator over [lower, upper) of the tree as of the checkpoint; bounds as DB::new_iterator.
  using TreeReader = std::function<std::unique_ptr<Iterator>(std::string_view lower, std::string_view upper)>;

  virtual ~CheckpointParticipant() = default;
  // Called once during open, before the first replay() or collect(). `tree` is valid during the call only.
  virtual Status load(const TreeReader& tree) = 0;
  // A batch recovered from the log, in sequence order, during open, before open returns.
  // `encoded` can be iterated with WriteBatch::iterate.
  virtual Status replay(SequenceNumber last_sequence, std::string_view encoded) = 0;
  // Called while the memtable is switched, with no submission under way: append the entries that describe
  // the user's state exactly as of `as_of`. They enter the memtable being closed (not the log) and replace
  // older values of the same keys. Must not call back into the database. On recovery, the tree's entries
  // are those of the checkpoint and replay() delivers what came after; where that fills a memtable, this is
  // called between two replay()s.
  virtual void collect(SequenceNumber as_of, std::vector<CheckpointEntry>* entries) = 0;
  // A checkpoint that holds everything collected at or below `as_of` is durable, in both manifest copies'
  // terms: no recovery from here on starts from an older one. On a worker, no lock held.
  virtual void checkpoint_durable(SequenceNumber as_of) = 0;
};

// Of DB::begin_defragment and DB::defragment; see tree/defragmenter.h.
struct DefragmentOptions {
  double gain_min = 0.5;                    // bytes gained for a byte moved: a zone that gains less stays
  uint64_t bytes_per_step = 16ull << 20;    // moved at once, or more of large runs; due compactions come in between
  uint64_t bytes_per_second = 64ull << 20;  // 0: no limit
  bool only_measure = false;                // the pass ends when its zones are chosen
};

// Of the newest pass: what it found when it began, and how far it is.
struct DefragmentReport {
  bool is_running = false;
  uint64_t chosen_zones = 0;   // worth emptying; 0: all of them together gain too little
  uint64_t chosen_bytes = 0;   // in use in them, which have to move
  uint64_t unused_bytes = 0;   // in them; free when they are empty
  uint64_t fragments = 0;      // in them
  uint64_t moved_bytes = 0;    // until now
  uint64_t written_bytes = 0;  // for that, with what runs need beside their blocks
  Status error;                // of one that failed
};

struct Options {
  Geometry geometry;  // used by create; open reads it from the database

  // A memtable goes to the tree when it takes so much. All that wait for that, and the active one, take three times as
  // much and 1 MiB at most: DB::write waits. A batch that is larger goes alone.
  size_t memtable_bytes = 32u << 20;
  // A checkpoint is due after so much log, be it written by several processes one after the other: what a recovery
  // reads again, and how long the log keeps what is dead. 0: half of the segments made at creation.
  uint64_t checkpoint_log_bytes = 0;
  size_t block_cache_bytes = 64u << 20;  // for blocks of the tree and values of the log together
  // Values of at least so many bytes stay in the log, and the tree holds pointers to them (WiscKey). 0: none.
  size_t value_separation_bytes = 0;
  // Short scans that find so many values of up to 16 KiB fragmented over the log relocate them, for the scans to
  // come (blob/fragmented_values.h). 0: reading writes nothing.
  uint32_t fragmented_values_min = 4;
  // The log's files may take this many times what lives in them; beyond it, garbage is collected. 0: never
  // by itself. More costs space and saves writing.
  double space_amplification_target = 2.0;
  // What it costs the collector to look a value up in the tree, in bytes of the log that are read in the same time:
  // when it would have to look many up in vain, it goes through the tree first (gc/value_gc.h). 0: never for that.
  uint32_t gc_lookup_cost_bytes = 3u << 10;
  // The tree's shape (compaction/compaction_policy.h): so many runs of a level are compacted into one, and a level's
  // runs are so many times larger than those of the level before.
  uint32_t runs_per_level = 4;
  uint32_t growth_factor = 4;
  // A compaction takes blocks that no other run overlaps over where they lie when at least so many bytes of them
  // are contiguous. 0: always; kNeverStitch: it copies everything. More writes more and scans faster.
  uint64_t stitch_threshold_bytes = 64u << 10;
  // Tombstones in a key range from which on it is compacted by itself (compaction/purge_policy.h), or more where the
  // runs that hold them are large. 0: never.
  uint32_t purge_tombstones_min = 128;
  // Compresses blocks of entries by LZ4, where that saves a unit of 4 KiB. Only in a database with the feature: one
  // that was created with this, or got it by DB::upgrade.
  bool compress_blocks = true;
  bool auto_compaction = true;  // false: runs are never compacted, except by DB::compact
  // Point reads of absent keys that a run's filter lets through; see table/quotient_filter.h.
  double filter_false_positive_rate = 0.008;
  bool single_flush = false;  // one sync of any file covers all that is primed: only where it was proven
  // Submission::data goes to files of another file system than the database's: with single_flush, one sync there and
  // one here cover all that is primed.
  bool data_elsewhere = false;
  // Log space is primed (written with zeros ahead of need) while commits that somebody waits for come so often that
  // each has fewer bytes of log than this; otherwise it is not written twice. 0: none but the first segments.
  uint64_t primed_bytes_per_commit = 512u << 10;
  unsigned io_depth = 128;

  ExternalStore* external_store = nullptr;  // needed when external writes are used
  CheckpointParticipant* participant = nullptr;  // optional
  // Called once, on a worker, after a failed log write or flush: nothing more will be acknowledged.
  std::function<void(const Status&)> on_fatal;
  // Called on a worker when work in the background begins to fail, or fails in another way, and when that is over.
  std::function<void(const BackgroundError&)> on_background_error;
  // Called on the commit worker whenever DB::reuse_horizon() moved.
  std::function<void(SequenceNumber)> on_reuse_horizon;
  // The log needs space at once and the host refuses it: gives some of its own back to the host. True: it did, ask
  // again; false: there is no more, and the database stops. Called by workers, also while the database is opened; must
  // not use the database.
  std::function<bool()> make_room;
};

}  // namespace vtkv
