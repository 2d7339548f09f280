// SPDX-License-Identifier: LGPL-2.1-or-later
// A small store on one cube, for tests: objects that are versions of seeded bytes, and the model of them.
//
// Every transaction writes, cuts or removes some objects and writes the key "last", which names the transaction; so
// what is found after a crash says which prefix of the history it must be. check() compares all that is found with that
// prefix: keys, bytes, owned slots, counters, and the sum of the slots.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "swimstore/cube/cube.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// What is known of the whole run, whatever was recovered of it.
struct History {
  struct Object {
    uint64_t version = 0;  // the transaction that wrote it
    uint32_t bytes = 0;  // less than were written once it was cut
    bool operator==(const Object&) const = default;
  };
  // After each transaction: the objects there are. [0]: the empty store.
  std::vector<std::map<std::string, Object>> states = std::vector<std::map<std::string, Object>>(1);
  uint64_t refused = 0;  // transactions that found no space
};

class CubeWorkload {
 public:
  // In the env's trace, besides the numbers of acknowledged transactions: the cube has failed, and said so.
  static constexpr uint64_t kFailedMark = uint64_t{1} << 40;

  // Geometry of a few KiB, so that short runs fill memtables, segments and chunks.
  static CubeOptions small_options(bool single_flush);
  static std::string container_path(unsigned size_class);
  // "" or what went wrong; so do open() and check().
  static std::string create(vtkv::SimEnv& env, const CubeOptions& options);
  ~CubeWorkload();
  std::string open(vtkv::SimEnv& env, const CubeOptions& options);

  // Submits `count` transactions after those in the history, at most `in_flight` unacknowledged at any time,
  // and marks each in the env's trace when it is acknowledged. Waits for none at the end.
  void run(History& history, uint64_t seed, unsigned count, unsigned in_flight);
  std::string wait_for_all();
  // Compares what is there with the history; *found: the last transaction that is there.
  std::string check(const History& history, uint64_t* found);
  // The recovery could not read some slots: up to this transaction objects may count as damaged.
  void expect_damage_up_to(uint64_t transaction) { m_damaged_up_to = transaction; }

  Cube& cube() { return *m_cube; }

 private:
  class Transaction;
  // What is left of what was written to a slot.
  struct Slice {
    SlotAddress slot;
    uint32_t bytes = 0;
    uint32_t written_bytes = 0;
    SlotBlocks blocks() const { return {slot, 0, bytes / kBlockBytes, written_bytes / kBlockBytes}; }
  };
  static std::string encode(uint64_t version, const std::vector<Slice>& slices);
  static bool decode(std::string_view value, History::Object* object, std::vector<Slice>* slices);
  bool find(const std::string& name, History::Object* object, std::vector<Slice>* slices);
  void submit_one(History& history, std::mt19937_64& random);
  void remove_object(Transaction& transaction, const std::string& name);
  // The last blocks of its last slot go; the rest of the slot stays.
  void cut_object(Transaction& transaction, const std::string& name, uint64_t random, History::Object* object);
  void wait_until_unacknowledged_is(uint64_t most);
  std::string check_object(const std::string& name, std::string_view value, const History::Object& expected,
                           std::vector<Slice>* slices);
  bool is_damaged(const Slice& slice) const;
  // Of what was handed out, the host has space for all.
  bool has_space(const std::vector<AllocatedSlot>& slots);
  std::string check_slots(std::vector<Slice> slices);
  std::string check_counters(const std::map<std::string, History::Object>& objects);

  vtkv::SimEnv* m_env = nullptr;
  std::unique_ptr<Cube> m_cube;
  std::unique_ptr<vtkv::Signal> m_signal;
  vtkv::Mutex m_lock;
  uint64_t m_unacknowledged = 0;
  std::string m_failure;
  uint64_t m_damaged_up_to = 0;
};

}  // namespace swimstore
