// SPDX-License-Identifier: LGPL-2.1-or-later
// vtkv as a Ceph key-value store: `KeyValueDB::create(cct, "vtkv", directory)`.
//
// What Ceph's interface leaves open is answered here:
//   * a transaction is visible to every later read once submit_transaction has returned; it is durable when
//     submit_transaction_sync of it, or of any later one, has returned; a crash leaves a prefix of the
//     transactions, each whole;
//   * every iterator reads the state as of its making;
//   * merges are resolved when their transaction is submitted (merge_operators.h);
//   * column families (`cfs`) are RocksDB's way of keeping prefixes apart: accepted, and not needed;
//   * what cannot be read ends the process (fatal_reads.h): nobody who calls can tell it from what is not there;
//   * a failed write stops the store: it is told once, and every later transaction gets -EIO.
// Thread-safe while open. Opening, closing and what has to come before (init, set_merge_operator) are not;
// iterators are destroyed before the store is closed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "include/common_fwd.h"
#include "kv/KeyValueDB.h"
#include "vtkv/ceph/fatal_reads.h"
#include "vtkv/ceph/merge_operators.h"
#include "vtkv/ceph/store_transaction.h"
#include "vtkv/db.h"
#include "vtkv/util/mutex.h"

class VtkvStore final : public KeyValueDB {
 public:
  // `options`: as init takes them as text; told wrong when the store is opened.
  VtkvStore(CephContext* cct, std::string directory, std::map<std::string, std::string> options);
  ~VtkvStore() override;

  int init(std::string options) override;
  int set_merge_operator(const std::string& prefix, std::shared_ptr<MergeOperator> one) override;
  int open(std::ostream& out, const std::string& cfs = "") override;
  // Opens what exists; makes what does not.
  int create_and_open(std::ostream& out, const std::string& cfs = "") override;
  // Changes nothing on disk. Transactions get -EROFS.
  int open_read_only(std::ostream& out, const std::string& cfs = "") override;
  void close() override;
  // For a closed store. vtkv recovers when it is opened, so there is nothing to repair: this checks
  // everything, says what is damaged and returns -EIO then.
  int repair(std::ostream& out) override;

  Transaction get_transaction() override;
  int submit_transaction(Transaction transaction) override { return submit(transaction, false); }
  int submit_transaction_sync(Transaction transaction) override { return submit(transaction, true); }

  using KeyValueDB::get;
  int get(const std::string& prefix, const std::set<std::string>& keys,
          std::map<std::string, ceph::buffer::list>* out) override;
  int get(const std::string& prefix, const std::string& key, ceph::buffer::list* out) override;
  WholeSpaceIterator get_wholespace_iterator(IteratorOpts options = 0) override;
  // Of an empty prefix: everything, as Ceph has it. Bounds are keys of the prefix, [lower, upper).
  Iterator get_iterator(const std::string& prefix, IteratorOpts options = 0,
                        IteratorBounds bounds = IteratorBounds()) override;

  uint64_t get_estimated_size(std::map<std::string, uint64_t>& extra) override;
  // Bytes of keys and values of the prefix whose keys start with `key_prefix`: counted, so it takes as long as
  // reading them.
  int64_t estimate_prefix_size(const std::string& prefix, const std::string& key_prefix) override;
  int set_cache_size(uint64_t bytes) override;
  int64_t get_cache_usage() const override;
  void get_statistics(ceph::Formatter* f) override;
  PerfCounters* get_perf_counters() override { return m_counters; }
  // Properties are the statistics' names behind "vtkv.", e.g. "vtkv.log_bytes".
  bool get_property(const std::string& property, uint64_t* out) override;

  // The engine compacts as a whole: a range or a prefix asks for the same.
  void compact() override;
  void compact_async() override;
  void compact_prefix(const std::string&) override { compact(); }
  void compact_prefix_async(const std::string&) override { compact_async(); }
  void compact_range(const std::string&, const std::string&, const std::string&) override { compact(); }
  void compact_range_async(const std::string&, const std::string&, const std::string&) override { compact_async(); }

 private:
  enum class Mode { existing, create, read_only };
  class Pending;

  int do_open(std::ostream& out, Mode mode);
  vtkv::Status open_database(Mode mode);
  int refuse(std::ostream& out, const vtkv::Status& status) const;
  int submit(const Transaction& transaction, bool wait);
  // Makes the transaction visible. For a caller who will wait for it, *sequence is its last one.
  vtkv::Status apply(const vtkv::StoreTransaction& transaction, bool wait, vtkv::SequenceNumber* sequence);
  // The same, under m_merge_lock where the transaction needs it.
  vtkv::Status resolve_and_submit(const vtkv::StoreTransaction& transaction, bool wait, vtkv::SequenceNumber* sequence);
  void run_compactions();

  CephContext* const cct;  // Ceph's logging macros want the name
  const std::string m_directory;
  const vtkv::FatalReads m_fatal_reads;
  const std::map<std::string, std::string> m_given_options;
  vtkv::Options m_options;
  vtkv::MergeOperators m_operators;
  vtkv::Mutex m_merge_lock;  // held from reading the old values until the new ones are visible, over both
  std::unique_ptr<vtkv::DB> m_db;
  bool m_read_only = false;
  PerfCounters* m_counters = nullptr;

  vtkv::Mutex m_compact_lock;
  vtkv::ConditionVariable m_compact_changed;
  bool m_compact_wanted GUARDED_BY(m_compact_lock) = false;
  bool m_closing GUARDED_BY(m_compact_lock) = false;
  std::thread m_compact_thread GUARDED_BY(m_compact_lock);  // started by the first compact_async
};
