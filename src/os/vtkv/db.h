// SPDX-License-Identifier: LGPL-2.1-or-later
// vtkv: an embedded, ordered key-value engine: one log (the value log of WiscKey, FAST '16, section 3.3, which is also
// the write-ahead log) and a tree of sorted runs whose compactions stitch (VT-tree, FAST '13, section 3.2).
//
// Guarantees
//   * A submitted batch is visible to every later read at once, all or nothing.
//   * It is durable when its completion is called; completions come in sequence order.
//   * After a crash the database holds a prefix of the submitted batches that contains every
//     acknowledged one.
// Thread-safety: every method of DB may be called from any thread, except where said.
// Errors, beside those that a method names
//   * corruption, io_error: the sentence names file and offset. Reads were tried kReadTries times; another key may well
//     be readable.
//   * failed: a write or sync of the log did not succeed; the sentence and the errno are of what happened first. The
//     database takes no batch any more until it is opened again; reads go on.
//   * invalid_argument: it was opened read-only, and this would write.
// Work in the background that fails is tried again, and fails no call: background_errors().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/background_error.h"
#include "vtkv/env.h"
#include "vtkv/iterator.h"
#include "vtkv/options.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// Data of an external write, written by the engine's ring together with the log record.
struct ExternalData {
  File* file = nullptr;
  uint64_t offset = 0;  // in the file
  std::vector<iovec> buffers;  // aligned; stay valid until Submission::data_written
  bool primed = false;  // false: the file needs a sync of its own even in single-flush mode
};

// One batch on its way. The caller makes it, hands it to DB::submit, and gets it back in durable().
class Submission {
 public:
  virtual ~Submission() = default;
  WriteBatch batch;
  std::vector<ExternalData> data;
  // In DB::submit, under the write lock, after the batch has its sequence and is visible; in sequence
  // order. Short; must not call the database. (SwimStore applies its allocation deltas here.)
  virtual void sequenced(SequenceNumber) {}
  // All of `data` is in its files (not durable). On the commit worker. Not called when data is empty.
  virtual void data_written() {}
  // A write of some of `data`, maybe with neighbours of other submissions, failed, and the database is about to stop
  // for it: the last moment to make something of it durable. On the commit worker. Returns words to go with the error.
  virtual std::string data_failed(File* /*file*/, uint64_t /*offset*/, const std::vector<iovec>& /*buffers*/) {
    return {};
  }
  // Of a relaxed one: it and all before it are in their files. What only ends the process does not take it back any
  // more, a loss of power may. On the commit worker, in sequence order, before durable().
  virtual void written() {}
  // Durable, or failed for good (then nothing later becomes durable either). On the commit worker, in
  // sequence order; the database does not touch the object afterwards.
  virtual void durable(const Status& status) = 0;

  // Whoever submits it waits for written() alone. It becomes durable with the next one that is not relaxed, at the
  // latest after kRelaxedDelay, or with 32 MiB or 256 records of them. One larger than a log record is never relaxed.
  bool relaxed = false;
  static constexpr std::chrono::milliseconds kRelaxedDelay{1000};

  SequenceNumber last_sequence = 0;  // set by submit
  LogAddress* log_address = nullptr;  // the engine's
  std::vector<WriteBatch::Fragment> fragments;  // the engine's: of a batch too large for one log record
};

// A point in the history that reads can name. Release it with DB::release_snapshot.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual SequenceNumber sequence() const = 0;
};

struct WriteOptions {
  // false: do not wait for durability. A crash may take back the batch, and then every later one as well. It is
  // on its way at once all the same; a writer that is faster than the disk is held back smoothly. A batch larger than a
  // log segment, or than 64 MiB, is waited for in any case.
  bool sync = true;
};

// operator+=: sums, for several databases together; the greatest of sequences and levels.
struct DBStatistics {
  SequenceNumber last_sequence = 0;  // submitted
  SequenceNumber durable_sequence = 0;
  uint64_t commit_groups = 0, log_bytes = 0, external_bytes = 0, syncs = 0;
  uint64_t memtable_flushes = 0, flush_bytes = 0, compactions = 0;
  uint64_t compaction_bytes = 0;  // written by compactions, purges and moves: blocks, indexes, filters, descriptors
  uint64_t filter_read_bytes = 0;  // of stitched blocks, whose keys compactions read for a filter
  uint64_t stitched_bytes = 0;  // taken over by compactions where they lay
  uint64_t purges = 0;  // of key ranges that held mostly tombstones
  uint64_t write_waits = 0, write_waited_us = 0;  // in DB::write: for memory, or for the log by who asked for no sync
  uint64_t gc_lookups = 0;  // values that the collector looked up in the tree
  uint64_t gc_moved_bytes = 0, gc_freed_segments = 0;  // values that the collector relocated; log segments emptied
  uint64_t scan_moved_bytes = 0;  // values that scans found fragmented, relocated
  uint64_t log_live_bytes = 0;  // of values that runs point to, with their keys
  uint64_t log_file_bytes = 0, tree_file_bytes = 0, tree_live_bytes = 0;  // the former two: space of the host, no holes
  uint64_t tree_entries = 0;  // every version of every key
  uint64_t filter_bytes = 0, range_tombstone_bytes = 0;  // of the tree, in memory
  uint64_t primed_bytes = 0;  // zeros written into new log segments since opening
  uint64_t memtable_bytes = 0;  // of those that a reader who begins now is led to
  uint64_t block_cache_bytes = 0;  // of blocks, and of values that stayed in the log
  uint64_t block_cache_hits = 0, block_cache_misses = 0;
  uint64_t value_cache_hits = 0, value_cache_misses = 0;
  uint64_t index_bytes = 0;  // in memory, always: the tops of the runs' indexes
  uint64_t compaction_debt_bytes = 0;  // that compactions have to go through until the tree has its shape
  uint64_t throttled_groups = 0, throttled_us = 0;  // records held back because of debt, of any kind
  uint64_t zones = 0, zones_in_use = 0;  // the former: those with space of the host
  uint64_t defragmented_bytes = 0;  // moved to other zones
  uint64_t background_failures = 0;  // attempts at work in the background that failed, ever
  uint64_t background_failing = 0;  // kinds of such work that fail at present
  uint32_t runs = 0, levels = 0, log_segments = 0, unprimed_log_segments = 0;  // the last: in use

  DBStatistics& operator+=(const DBStatistics& other);
};

class DB {
 public:
  // Makes an empty database in `directory` (created when missing; must be empty otherwise). invalid_argument: it is
  // not, or the geometry cannot be. What an attempt that failed leaves behind is cleared away by the next.
  static Status create(Env* env, const std::string& directory, const Options& options);
  // Recovers and opens. The database keeps pointers to env and to what options name until closed. A log of more than
  // Options::memtable_bytes goes to the tree as it is read.
  // Code::corruption names the file and the remedy; nothing on disk was changed in that case, but where the log had
  // been found whole and something else refused what is in it.
  static Status open(Env* env, const std::string& directory, const Options& options, std::unique_ptr<DB>* db);

  // For looking at it: recovers in memory (and in its participant), changes nothing on disk (no recovery record, no
  // worker), also on a read-only file system. Writes, flush and compact get Code::invalid_argument. Without an external
  // store the data of the last batches is taken to have arrived. Code::busy while somebody has it open.
  static Status open_read_only(Env* env, const std::string& directory, const Options& options, std::unique_ptr<DB>* db);

  // Gives the database the features that one made with these options has: a program that does not know them then
  // refuses it. Durable on return; *changed, valid when ok: a feature was missing. Errors as open(), and
  // Code::no_space; after any, it is as it was or has the features, and may be opened or upgraded again. Costs what
  // opening does, without the log.
  static Status upgrade(Env* env, const std::string& directory, const Options& options, bool* changed);

  // Waits for everything submitted to be durable, then ends the workers; what they are at is given up soon. Does not
  // flush the memtable. In a fork of the process that opened it, it does nothing, and the parent goes on: its memory
  // stays taken until the fork ends, which may call nothing else of the database.
  virtual ~DB() = default;

  // Makes the batch visible and queues it. Never waits for I/O. What is refused gets its durable(status) before submit
  // returns: invalid_argument, when an operation of it is larger than 1 GiB; failed. Costs an entry in the memtable for
  // each operation; the data is written once, from where the batch has it. While memtables that wait to be flushed take
  // more than twice Options::memtable_bytes, it becomes durable no sooner than one of them is in the tree: whoever
  // bounds the submissions that are under way, by as much as a memtable takes, keeps all of them within three times
  // that.
  virtual void submit(Submission* submission) = 0;
  // Makes the batch visible and waits until it is durable, or only until it may go on (WriteOptions). Before that it
  // waits until the memtables have room for it (Options::memtable_bytes), behind writers that did so before. Errors as
  // submit.
  virtual Status write(WriteBatch batch, const WriteOptions& options) = 0;
  Status write(WriteBatch batch) { return write(std::move(batch), WriteOptions()); }

  // Code::not_found when absent. snapshot nullptr: the newest state. Never waits for writers. Costs a probe of each
  // run's filter, in memory, and a read of a block, and one of the value where the log has it, unless cached; a filter
  // that errs costs one more block (Options::filter_false_positive_rate).
  virtual Status get(std::string_view key, std::string* value, const Snapshot* snapshot = nullptr) = 0;
  // Of [lower, upper); an empty `upper`: to the end of all keys. Starts invalid: call a seek. Moving it, and its end,
  // may relocate values (Options::fragmented_values_min): not inside what the database calls back.
  virtual std::unique_ptr<Iterator> new_iterator(std::string_view lower, std::string_view upper,
                                                 const Snapshot* snapshot = nullptr) = 0;
  // The newest state, by its number: takes no copy. What it alone can see stays on disk until it is released. To be
  // released before the database is closed.
  virtual const Snapshot* take_snapshot() = 0;
  virtual void release_snapshot(const Snapshot* snapshot) = 0;

  // Everything at or below it is durable (durable_seq).
  virtual SequenceNumber durable_sequence() const = 0;
  // What was freed by a batch at or below this may be overwritten (doc/crash_consistency.md, What it asks in
  // return).
  virtual SequenceNumber reuse_horizon() const = 0;
  // Asks for an empty record, so that the horizon reaches everything durable by now. Returns at once.
  virtual void advance_reuse_horizon() = 0;

  // invalid_argument: so much was never submitted.
  virtual Status wait_durable(SequenceNumber sequence) = 0;
  // Writes the memtable to the tree and a new checkpoint; waits for it.
  virtual Status flush() = 0;
  // Asks for checkpoints until no recovery starts before now, also if nobody writes any more. Returns at once; may be
  // called from a worker's step, but not inside what the database calls back.
  virtual void request_checkpoint() = 0;
  // Compacts everything into one run; waits for it.
  virtual Status compact() = 0;
  // Gives back log space of values that are no longer reachable: empties the best segment or, with `full`, every
  // one that is worth it after a compact(); waits for it, with `full` until the files that are not needed any more are
  // removed. What a snapshot or an iterator can still see stays. It also happens by itself:
  // Options::space_amplification_target.
  virtual Status collect_garbage(bool full) = 0;
  // A pass empties zones of the tree's file that are little used, or used in small fragments. Writes and reads go on.
  // What older snapshots of the tree still hold becomes free when they are let go. One that begins ends the one before.
  virtual Status begin_defragment(const DefragmentOptions& options) = 0;
  // The pass under way ends soon: what was moved stays so.
  virtual void stop_defragment() = 0;
  virtual DefragmentReport defragment_report() const = 0;
  // Begins one and waits until none is under way; the newest one's end. Ok, too, where stop_defragment() was called.
  virtual Status defragment(const DefragmentOptions& options) = 0;
  // Compactions, collections and flushes of memtables that are under way end soon, and none begins: only closing it may
  // follow. For one of several databases that share threads (env/shared_threads.h), before the first of them is closed.
  virtual void stop_background() = 0;
  // Checks every block and run, the values that the newest state leads to (up to the first damaged one), and the
  // log records that a recovery would read; appends one sentence per finding. Ends soon, with less, when *cancelled
  // becomes true.
  virtual void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled = nullptr) = 0;
  // Options::stitch_threshold_bytes, for compactions that begin from now on.
  virtual void set_stitch_threshold(uint64_t bytes) = 0;
  virtual void set_block_cache_bytes(size_t bytes) = 0;
  virtual DBStatistics statistics() const = 0;
  // Would upgrade(), with the options that it was opened with, change it?
  virtual bool is_upgradable() const = 0;
  // Has it the feature that Options::compress_blocks needs?
  virtual bool may_compress_blocks() const = 0;
  // Work in the background that fails at present, and is tried again.
  virtual std::vector<BackgroundError> background_errors() const = 0;
};

}  // namespace vtkv
