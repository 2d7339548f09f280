// SPDX-License-Identifier: LGPL-2.1-or-later
// What a workload does to an engine: a table of kinds, and the steps that one run of one consists of.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/key_space.h"

namespace vtkv::bench {

struct LoadSettings {
  uint64_t keys = 0;
  size_t value_bytes = 0;
  unsigned threads = 1;
  double seconds = 10;      // of workloads that have no natural end
  bool by_time = false;     // the user asked for a length: also of workloads that have one
  double overwrites = 1;    // overwrite: times the number of keys
  uint64_t seed = 1;
};

// What the database of one engine and value size holds: between runs of workloads.
struct DataState {
  uint64_t keys = 0;    // Key(0) .. Key(keys - 1) exist
  uint64_t extra = 0;   // entries besides these, about
  bool whole = false;   // false: some of them are missing; a workload that needs all starts anew
  uint64_t version = 0; // raised by every workload, so that values differ
};

// What one step did.
struct Outcome {
  uint64_t written_bytes = 0, read_bytes = 0;  // of keys and values, as the user counts
  uint64_t operations = 1;
};

// One operation; `ticket` counts from 0 over all threads.
using Step = std::function<Status(uint64_t ticket, Outcome* outcome)>;

struct Plan {
  uint64_t operations = 0;  // at most
  double seconds = 0;       // at most; 0: until `operations`
  std::function<Step(unsigned thread)> worker;
  // After the workers; may be empty.
  std::function<void()> finished;
  // Runs beside the workers until the flag rises; not counted. May be empty.
  std::function<Status(const std::atomic<bool>& stop)> companion;
};

struct LoadContext {
  Engine& engine;
  const LoadSettings& settings;
  DataState& state;
  const Values& values;
};

struct WorkloadKind {
  std::string_view name, help;
  enum class Needs { empty, whole } needs;
  bool writes;
  bool whole_after;     // all keys exist afterwards
  bool always_synced;
  bool warm_up;         // a second of it, not counted, brings the caches to a steady state
  // Prepares (not timed) and says what to run.
  Status (*plan)(const LoadContext&, Plan*);
};

const std::vector<WorkloadKind>& workload_kinds();
// Null when there is none of that name.
const WorkloadKind* find_workload(std::string_view name);

// The parts of the table.
void add_write_workloads(std::vector<WorkloadKind>* kinds);
void add_read_workloads(std::vector<WorkloadKind>* kinds);
void add_delete_workloads(std::vector<WorkloadKind>* kinds);
void add_ycsb_workloads(std::vector<WorkloadKind>* kinds);

// Shared by them.
Status put_key(const LoadContext& context, uint64_t number, std::string* buffer, Outcome* outcome);
// A key that has to be there: not_found or somebody else's value is Code::corruption.
Status get_key(const LoadContext& context, uint64_t number, std::string* buffer, Outcome* outcome);
Status check_scanned(const LoadContext& context, const Scan& scan, Outcome* outcome);
// Where a thread's random choices begin.
uint64_t seed_of(const LoadContext& context, unsigned thread);

}  // namespace vtkv::bench
