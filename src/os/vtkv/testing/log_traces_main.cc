// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints traces of the engine under random load, with crashes, for qa/model/check_traces.py (log_trace.h says what is
// in them): vtkv_log_traces FIRST_SEED COUNT [MUTATION]
//
// A trace is a run, a crash, the recovery and some more work, and often a second crash and its recovery.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/kv_crash_target.h"
#include "vtkv/testing/log_trace.h"
#include "vtkv/testing/mutations.h"

namespace vtkv {
namespace {

constexpr unsigned kSteps = 16;
constexpr char kLog[] = "/db/log/";
constexpr uint64_t kTries = 400;
constexpr SimProfile kProfiles[] = {SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest};

// What a slot holds is told by its bytes: no two transactions write the same. Records of one block, as the model has
// them, some of more than one sector; checkpoints seldom or often.
KvWorkloadSettings settings_for(uint64_t seed) {
  KvWorkloadSettings settings;
  settings.misreads = false;  // the model has no word for them
  settings.repeated_tags = false;
  settings.large_batches = false;
  settings.longest_value = 300;
  settings.memtable_bytes = seed / 4 % 4 == 0 ? 4 << 10 : 64 << 10;
  return settings;
}

// Which states of a crash to look for: rules differ in where it shows that they are broken.
enum class Wish {
  any,
  torn,   // a write to the log landed in part
  gap,    // a write to the log was lost, and a later one landed
  early,  // at most one record was written since the database was opened
};

// Inodes of segments.
std::set<uint64_t> log_files(const SimTrace& trace) {
  std::set<uint64_t> inodes;
  for_each_file(trace, [&inodes](const std::string& path, uint64_t inode) {
    if (path.starts_with(kLog)) {
      inodes.insert(inode);
    }
  });
  return inodes;
}

bool has_gap(CrashImages& images, const CrashState& state) {
  const std::set<uint64_t> log = log_files(images.trace());
  bool lost = false;
  for (const uint32_t index : images.in_doubt(state.cut_index)) {
    const SimOp& op = images.trace().ops[index];
    if (op.kind == SimOp::Kind::write && log.contains(op.inode)) {
      const bool landed = std::binary_search(state.landed.begin(), state.landed.end(), index);
      if (lost && landed) {
        return true;
      }
      lost |= !landed;
    }
  }
  return false;
}

bool is_early(CrashImages& images, const CrashState& state) {
  uint64_t opened = kSimNever;
  for (const SimMark& mark : images.marks(state)) {
    if (mark_kind(mark) == kOpenedMark) {
      opened = mark.time;
    }
  }
  if (opened == kSimNever) {
    return false;
  }
  const std::set<uint64_t> log = log_files(images.trace());
  const std::vector<SimOp>& ops = images.trace().ops;
  const auto records = std::count_if(ops.begin(), ops.end(), [&](const SimOp& op) {
    return op.kind == SimOp::Kind::write && log.contains(op.inode) && op.submitted > opened &&
           op.submitted <= state.cut;
  });
  return records <= 1;
}

bool grants(CrashImages& images, const CrashState& state, Wish wish) {
  switch (wish) {
    case Wish::any:
      return true;
    case Wish::torn:
      return state.tear && log_files(images.trace()).contains(images.trace().ops[state.tear->op].inode);
    case Wish::early:
      return is_early(images, state);
    case Wish::gap:
      return has_gap(images, state);
  }
  return false;
}

CrashState choose_state(CrashImages& images, uint64_t seed, Wish wish) {
  CrashState state = images.sample(seed);
  for (uint64_t i = 1; i < kTries && !grants(images, state, wish); ++i) {
    state = images.sample(seed + i * 1'000'003);
  }
  return state;
}

// Crashes somewhere in what was recorded; null when the store was found wrong, or is not to crash `again`.
std::unique_ptr<CrashTarget> crash(CrashTarget& target, const SimTrace& recorded, uint64_t seed, Wish wish, bool again,
                                   LogTrace* trace, std::unique_ptr<SimEnv>* env, std::string* wrong) {
  CrashImages images(recorded, {.seed = seed});
  const CrashState state = choose_state(images, seed, wish);
  trace->add_run(images.trace(), state.cut, kDurableMark);
  *env = images.materialize(state);
  trace->add_crash((*env)->trace().base);
  std::unique_ptr<CrashTarget> next;
  *wrong = target.check(env->get(), images.marks(state), seed, again ? &next : nullptr);
  return next;
}

// What else is found wrong afterwards is others' to judge (KvCrashTest).
void print_trace(uint64_t seed) {
  const CrashRun run{"vtkv", {}, kProfiles[seed % std::size(kProfiles)], seed, kSteps};
  LogTrace trace({"/db/log", "/db/manifest", "/slots"}, {});
  KvCrashTarget target(run, settings_for(seed));
  auto env = std::make_unique<SimEnv>(SimOptions{.seed = seed, .profile = run.profile});
  std::string wrong = target.record(env.get());
  if (wrong.empty()) {
    constexpr Wish kFirst[] = {Wish::any, Wish::torn, Wish::gap, Wish::gap};
    constexpr Wish kSecond[] = {Wish::any, Wish::any, Wish::early, Wish::early};
    std::unique_ptr<SimEnv> second;
    auto next = crash(target, env->trace(), seed, kFirst[seed % 4], true, &trace, &second, &wrong);
    env = std::move(second);
    if (next) {
      crash(*next, env->trace(), seed, kSecond[seed % 4], false, &trace, &second, &wrong);
      env = std::move(second);
    }
  }
  trace.add_run(env->trace(), env->trace().end, kDurableMark);
  if (wrong.starts_with("open:")) {
    trace.add_refusal();
  }
  std::printf("trace %lu %s\n", seed, std::string(to_string(run.profile)).c_str());
  if (!trace.beyond().empty()) {
    std::printf("beyond %s\n", trace.beyond().c_str());
  } else {
    for (const std::string& line : trace.lines()) {
      std::printf("%s\n", line.c_str());
    }
  }
  std::printf("end\n");
}

}  // namespace
}  // namespace vtkv

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: vtkv_log_traces FIRST_SEED COUNT [MUTATION]\n");
    return 2;
  }
  std::optional<vtkv::ScopedMutation> broken;
  if (argc > 3) {
    vtkv::Mutation mutation{};
    if (const vtkv::Status status = vtkv::parse_mutation(argv[3], &mutation); !status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      return 2;
    }
    if (!vtkv::is_of_engine(mutation)) {
      std::fprintf(stderr, "mutation '%s' breaks a rule of a store: the engine has no trace of it\n", argv[3]);
      return 2;
    }
    broken.emplace(mutation);
  }
  const uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const uint64_t count = std::strtoull(argv[2], nullptr, 10);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    vtkv::print_trace(seed);
  }
  return 0;
}
