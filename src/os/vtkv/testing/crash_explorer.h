// SPDX-License-Identifier: LGPL-2.1-or-later
// Looks at what crashes can leave of a seeded run, and again at what a second crash leaves of the recovery.
//
// What is run and what is promised is the target's business; which states there are is that of CrashImages;
// this goes through them, counts the distinct ones, and makes of the first violation a script that shows it again:
// the shortest history in which the seed's states show one, and of its lost writes only those that matter.
//
// Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>

#include "vtkv/testing/crash_images.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

// What decides a run, wholly.
struct CrashRun {
  std::string stack;                 // names the target
  std::optional<Mutation> mutation;  // broken while the run is explored
  SimProfile profile = SimProfile::ext4;
  uint64_t seed = 1;
  unsigned steps = 24;   // length of the history
  bool interleaved = false;  // SimOptions::interleaved
};

class CrashTarget {
 public:
  virtual ~CrashTarget() = default;
  // Makes a store on the empty host and works on it. What the trace holds at the end is explored. "" or what went
  // wrong, as of check().
  virtual std::string record(SimEnv* env) = 0;
  // Opens what a crash left, compares it with what the marks set before the crash promise, and closes it. When
  // `next` is given, the store may go on working first; *next is then the target of a second crash, somewhere in
  // all that *env has recorded by then.
  virtual std::string check(SimEnv* env, std::span<const SimMark> marks, uint64_t seed,
                            std::unique_ptr<CrashTarget>* next) = 0;
};

// Null: there is no such stack, or it has no such rule.
using CrashTargetFactory = std::function<std::unique_ptr<CrashTarget>(const CrashRun& run)>;

struct CrashViolation {
  CrashRun run;
  CrashState state;
  uint64_t check_seed = 0;
  std::optional<CrashState> second;  // a crash of what the first one's recovery did
  uint64_t image = 0;                // hash of the disk that was found wrong
  std::string what;
  std::vector<std::string> story;    // the writes in doubt at the last crash, and what became of them
};

struct CrashLimits {
  uint64_t states = 400;         // of a run; sampled evenly when there are more, the same one looked at once
  uint64_t nested_every = 4;     // of these states, how many crash again
  uint64_t nested_states = 8;    // of each second crash
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

struct CrashCounts {
  uint64_t states = 0, nested = 0, violations = 0;
  uint64_t distinct = 0;      // by the hash of the disk, both kinds
  double seconds = 0;         // of processor time, without the recording
};

class CrashExplorer {
 public:
  explicit CrashExplorer(CrashTargetFactory factory) : m_factory(std::move(factory)) {}

  // The first violation of this run's states, if there is one.
  std::optional<CrashViolation> explore(const CrashRun& run, const CrashLimits& limits);
  // The smallest that still shows one. Takes about as long as the exploration did.
  CrashViolation shrink(CrashViolation violation, const CrashLimits& limits);
  // Once more; "" when it is not there any longer.
  std::string replay(const CrashViolation& violation);
  const CrashCounts& counts() const { return m_counts; }

 private:
  struct Recorded;
  struct Second;
  std::string record(const CrashRun& run, Recorded* recorded);
  bool look_at(Recorded& recorded, const CrashState& state, uint64_t seed, uint64_t nested_states,
               CrashViolation* violation);
  std::string show(Recorded& recorded, const CrashViolation& violation, uint64_t* image);
  std::string reach_second(Recorded& recorded, const CrashViolation& violation, Second* second);
  void shrink_losses(Recorded& recorded, CrashViolation* violation);
  void tell(Recorded& recorded, CrashViolation* violation);
  void count_image(uint64_t image);

  const CrashTargetFactory m_factory;
  CrashCounts m_counts;
  std::unordered_set<uint64_t> m_seen;
};

// A script: lines of words, '#' begins a comment.
std::string to_script(const CrashViolation& violation);
// Invalid argument: names the line that is not understood.
Status parse_script(std::string_view script, CrashViolation* violation);
bool parse_profile(std::string_view name, SimProfile* profile);

}  // namespace vtkv
