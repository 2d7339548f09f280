// SPDX-License-Identifier: LGPL-2.1-or-later
// The states that a crash can leave, of a run that a SimEnv recorded.
//
// A state is a moment (the cut) and a choice of which operations in doubt at that moment reached the
// disk. Cuts are taken where most is in doubt: just before each sync takes effect, and at the end.
// At each, in this order: every subset of the operations in doubt where they are few; else every prefix,
// all but one, only one, all but two, and seeded samples; then, of each write that is new in doubt since
// the last cut, torn forms in 512-byte and 4-KiB fragments, with nothing else, with everything before it,
// and with everything. A state costs what it changes: a small store's is made in microseconds.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_trace.h"

namespace vtkv {

struct CrashOptions {
  enum class Cuts { syncs, syncs_and_marks, every_event };
  Cuts cuts = Cuts::syncs;
  uint64_t seed = 1;
  size_t exhaustive_max = 12;   // operations in doubt: up to this many, every subset
  size_t drop_two_max = 4096;   // states that lack two operations: beyond it, a seeded choice of them
  size_t samples = 256;
  bool torn = true;
  std::optional<SimProfile> profile{};  // default: the run's own
  bool interleaved = false;             // SimOptions::interleaved of what is made
};

// A write of which only some fragments reached the disk.
struct CrashTear {
  uint32_t op = 0;
  uint32_t granule = 0;
  std::vector<bool> fragments;
};

struct CrashState {
  size_t cut_index = 0;
  uint64_t cut = 0;              // the trace's time
  std::vector<uint32_t> landed;  // indexes of trace.ops, ascending
  std::optional<CrashTear> tear;

  std::string to_string() const;  // for a failing test's message
};

// Not thread-safe; one instance per thread may share nothing but the trace it copied.
class CrashImages {
 public:
  CrashImages(SimTrace trace, CrashOptions options);

  size_t cut_count() const { return m_cuts.size(); }
  // States that next() goes through at this cut, and in all.
  uint64_t state_count(size_t cut_index);
  uint64_t state_count();
  // The n-th of the cut's states.
  CrashState state(size_t cut_index, uint64_t n);
  // All states, one after the other; false at the end. Cheapest in this order.
  bool next(CrashState* state);
  // Any of them, evenly over the cuts: for a budget that does not reach all.
  CrashState sample(uint64_t seed);

  // The disk in that state, all of it durable; recorded again.
  std::unique_ptr<SimEnv> materialize(const CrashState& state);
  // What the test had marked before the crash.
  std::span<const SimMark> marks(const CrashState& state) const;
  // Indexes of the operations in doubt at the cut, by time of submission.
  const std::vector<uint32_t>& in_doubt(size_t cut_index);
  const SimTrace& trace() const { return m_trace; }

 private:
  struct TearForm;

  void find_durable_times();
  void find_cuts();
  void load(size_t cut_index);
  void add_what_covers_spoiled(std::vector<uint32_t>* order) const;
  void move_to(uint64_t cut);
  uint64_t subset_count() const;
  uint64_t drop_two_count() const;
  std::vector<bool> subset(uint64_t n) const;
  void choose_subset(uint64_t n, CrashState* state) const;
  void choose_tear(uint64_t n, CrashState* state) const;

  const SimTrace m_trace;
  const CrashOptions m_options;
  const SimProfile m_profile;
  std::vector<uint64_t> m_durable_at;     // of each op; kSimNever: no sync covers it
  std::vector<uint32_t> m_durable_order;  // ops that become durable, by that time
  std::vector<uint64_t> m_cuts;

  // At the cut that was last looked at.
  size_t m_cut_index = SIZE_MAX;
  std::vector<uint32_t> m_in_doubt;
  std::vector<uint32_t> m_new_writes;
  // What is durable at m_stable_cut.
  SimImage m_stable;
  uint64_t m_stable_cut = 0;
  size_t m_stable_done = 0;  // of m_durable_order

  size_t m_next_cut = 0;
  uint64_t m_next_state = 0;
};

}  // namespace vtkv
