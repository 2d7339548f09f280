// SPDX-License-Identifier: LGPL-2.1-or-later
// A database with external writes under a random load, its model, and the oracle of a crash:
//   * every acknowledged batch is there;
//   * what is there is the state after some number of batches, exactly;
//   * what the participant collected last before a checkpoint that it was told of, or later, is what it loads;
//   * every external write that the state names holds its bytes, and no slot has two owners;
//   * the database verifies clean and can be written on.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "vtkv/testing/kv_model.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/slot_file.h"

namespace vtkv {

// Marks in the trace.
inline constexpr uint64_t kOpenedMark = 1ull << 32;     // + batches recovered
inline constexpr uint64_t kSubmittedMark = 2ull << 32;  // + batches submitted
inline constexpr uint64_t kDurableMark = 3ull << 32;    // + batches acknowledged; text: their last sequence
inline constexpr uint64_t kCollectedMark = 5ull << 32;  // + what the participant collected; text: under which key

// Of what the participant collected, the newest number of each key.
using KvCollected = std::map<std::string, uint64_t>;

struct KvWorkloadSettings {
  uint64_t slots = 10;
  uint64_t external_keys = 6;
  size_t memtable_bytes = 4096;
  bool upgraded = false;  // made without compressed blocks, and then upgraded to them
  uint64_t log_segment_bytes = 16 << 10;
  size_t value_separation_bytes = 30;
  size_t longest_value = 3000;
  bool large_batches = true;  // some are larger than a log segment
  unsigned io_depth = 128;    // a shallow queue has the collector read whole segments
  uint32_t gc_lookup_cost_bytes = 3 << 10;
  bool holds_iterators = false;  // for some batches; nothing of the log that they may read is recycled meanwhile
  bool relaxed = false;  // every second submission is
  bool misreads = true;  // of some opens one read is wrong, once, where no values stay in the log
  bool repeated_tags = true;  // a slot may come to hold the bytes that an older record names
  double space_amplification_target = 1.2;
  uint64_t primed_bytes_per_commit = 6000;  // three waited-for commits to a segment, which has room for as many
};

class KvWorkload {
 public:
  KvWorkload(SimEnv* env, const KvWorkloadSettings& settings, KvHistory history);
  ~KvWorkload();

  static Status create(SimEnv* env, const KvWorkloadSettings& settings);
  // What `upgraded` asks for, of a database that was created; otherwise nothing.
  static Status upgrade(SimEnv* env, const KvWorkloadSettings& settings);
  // Recovers and compares with the history, which is cut to what was found. Returns the violation, or
  // nothing. `at_least`: batches that must be there; `collected_at_least`: what the participant must load.
  std::string open(size_t at_least, const KvCollected& collected_at_least = {});
  // Submits that many random batches, with waits, flushes and compactions in between.
  void run(size_t batches, uint64_t seed);
  // Lets go of the snapshot and the iterator that are held, compares everything with the history once more, and waits
  // for the database to come to rest (at_rest.h), which is wrong if it does not.
  void settle();
  void close();
  // What was read wrong while it ran; "": nothing.
  const std::string& wrong() const { return m_wrong; }

  const KvHistory& history() const { return m_history; }
  DB& database() { return *m_db; }

 private:
  class Batch;
  class Participant;

  static Options options_for(SimEnv* env, const KvWorkloadSettings& settings);
  std::string check_slots();
  std::string random_value();
  void add_large_puts(KvOperations* operations);
  KvOperations random_operations(Batch* batch);
  void add_external_put(const std::string& key, KvOperations* operations, Batch* batch);
  void submit_one();
  void reshape();
  void scan();
  void change_snapshot();
  void change_iterator();
  void compare(const char* what, size_t batches, const KvEntries& found);
  void wait_somehow();

  SimEnv* const m_env;
  const KvWorkloadSettings m_settings;
  KvHistory m_history;
  std::mt19937_64 m_random;
  uint64_t m_next_tag = 1;
  size_t m_unsynced_left = 0;  // batches in a row that nobody waits for
  std::unique_ptr<SlotFile> m_slots;
  std::unique_ptr<Participant> m_participant;
  std::unique_ptr<DB> m_db;
  const Snapshot* m_snapshot = nullptr;
  size_t m_snapshot_batches = 0;
  std::unique_ptr<Iterator> m_iterator;
  size_t m_iterator_batches = 0;
  std::string m_wrong;
};

// What the marks before a crash promise: batches that must be there, and that may be there.
void promised(std::span<const SimMark> marks, size_t* at_least, size_t* at_most);
// What the participant must load.
KvCollected collected(std::span<const SimMark> marks, KvCollected before = {});

}  // namespace vtkv
