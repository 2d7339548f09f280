// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/crash_explorer.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <span>
#include <utility>

#include "vtkv/testing/image_hash.h"
#include "vtkv/testing/mutations.h"

namespace vtkv {

namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::string_view name_of(SimOp::Kind kind) {
  constexpr std::string_view kNames[] = {
      "write", "zeros", "allocate", "punch hole", "truncate", "create", "create directory", "rename", "remove"};
  return kNames[static_cast<size_t>(kind)];
}

std::string path_of(const SimTrace& trace, const SimOp& op) {
  if (!op.path.empty()) {
    return op.path;
  }
  for (const auto& [name, inode] : trace.base.names) {
    if (inode == op.inode) {
      return name;
    }
  }
  for (const SimOp& other : trace.ops) {
    if (other.inode == op.inode && !other.path.empty()) {
      return other.path;
    }
  }
  return "file " + std::to_string(op.inode);
}

bool has_landed(const CrashState& state, uint32_t op) {
  return std::find(state.landed.begin(), state.landed.end(), op) != state.landed.end();
}

}  // namespace

struct CrashExplorer::Recorded {
  CrashRun run;
  std::optional<ScopedMutation> broken;  // as long as anything below is there
  std::unique_ptr<CrashTarget> target;
  std::unique_ptr<CrashImages> images;
  ImageHash hash;
  std::set<std::pair<uint64_t, size_t>> looked_at;  // disk, and how many marks it has to keep
};

std::string CrashExplorer::record(const CrashRun& run, Recorded* recorded) {
  recorded->run = run;
  if (run.mutation) {
    recorded->broken.emplace(*run.mutation);
  }
  recorded->target = m_factory(run);
  if (!recorded->target) {
    return "there is no stack '" + run.stack + "'" +
           (run.mutation ? ", or it has no mutation '" + std::string(to_string(*run.mutation)) + "'" : "");
  }
  SimEnv env({.seed = run.seed, .profile = run.profile, .interleaved = run.interleaved});
  std::string wrong = recorded->target->record(&env);
  recorded->images =
      std::make_unique<CrashImages>(env.trace(), CrashOptions{.seed = run.seed, .interleaved = run.interleaved});
  return wrong;
}

void CrashExplorer::count_image(uint64_t image) { m_counts.distinct += m_seen.insert(image).second ? 1 : 0; }

bool CrashExplorer::look_at(Recorded& recorded, const CrashState& state, uint64_t seed, uint64_t nested_states,
                            CrashViolation* violation) {
  const auto fill = [&](uint64_t image, std::string what) {
    violation->run = recorded.run;
    violation->state = state;
    violation->check_seed = seed;
    violation->image = image;
    violation->what = std::move(what);
    return false;
  };
  const std::unique_ptr<SimEnv> env = recorded.images->materialize(state);
  const uint64_t image = recorded.hash.of(env->trace().base);
  const std::span<const SimMark> marks = recorded.images->marks(state);
  if (!recorded.looked_at.emplace(image, marks.size()).second) {
    return true;
  }
  count_image(image);
  ++m_counts.states;
  std::unique_ptr<CrashTarget> next;
  if (std::string what = recorded.target->check(env.get(), marks, seed, nested_states > 0 ? &next : nullptr);
      !what.empty()) {
    return fill(image, std::move(what));
  }
  if (!next) {
    return true;
  }
  CrashImages images(env->trace(), {.seed = seed, .interleaved = recorded.run.interleaved});
  const uint64_t count = std::min(nested_states, images.state_count());
  for (uint64_t i = 0; i < count; ++i) {
    const CrashState second = images.sample(seed * 31 + i);
    const std::unique_ptr<SimEnv> again = images.materialize(second);
    const uint64_t second_image = recorded.hash.of(again->trace().base);
    count_image(second_image);
    ++m_counts.nested;
    if (std::string what = next->check(again.get(), images.marks(second), seed, nullptr); !what.empty()) {
      violation->second = second;
      return fill(second_image, std::move(what));
    }
  }
  return true;
}

std::optional<CrashViolation> CrashExplorer::explore(const CrashRun& run, const CrashLimits& limits) {
  Recorded recorded;
  CrashViolation violation;
  violation.run = run;
  if (std::string wrong = record(run, &recorded); !wrong.empty()) {
    ++m_counts.violations;
    violation.what = "without any crash: " + wrong;
    return violation;
  }
  const double start = processor_seconds();
  const uint64_t count = recorded.images->state_count();
  bool good = true;
  for (uint64_t i = 0; good && i < std::min(count, limits.states); ++i) {
    CrashState state;
    if (count > limits.states) {
      state = recorded.images->sample(run.seed * 1'000'003 + i);
    } else if (!recorded.images->next(&state)) {
      break;
    }
    const bool nests = limits.nested_every != 0 && recorded.looked_at.size() % limits.nested_every == 0;
    good = look_at(recorded, state, run.seed + i, nests ? limits.nested_states : 0, &violation);
    if (std::chrono::steady_clock::now() > limits.until) {
      break;
    }
  }
  m_counts.seconds += processor_seconds() - start;
  if (good) {
    return {};
  }
  ++m_counts.violations;
  tell(recorded, &violation);
  return violation;
}

// --- once more, and smaller ----------------------------------------------------------------------------

// What the recovery from the first crash has recorded, and what it promises.
struct CrashExplorer::Second {
  std::unique_ptr<CrashTarget> target;
  std::unique_ptr<CrashImages> images;
  uint64_t first_image = 0;
};

// "", or what is wrong before there is a second crash.
std::string CrashExplorer::reach_second(Recorded& recorded, const CrashViolation& violation, Second* second) {
  const std::unique_ptr<SimEnv> env = recorded.images->materialize(violation.state);
  second->first_image = recorded.hash.of(env->trace().base);
  std::string what = recorded.target->check(env.get(), recorded.images->marks(violation.state), violation.check_seed,
                                            violation.second ? &second->target : nullptr);
  if (second->target) {
    second->images = std::make_unique<CrashImages>(
        env->trace(), CrashOptions{.seed = violation.check_seed, .interleaved = violation.run.interleaved});
  }
  return what;
}

std::string CrashExplorer::show(Recorded& recorded, const CrashViolation& violation, uint64_t* image) {
  Second second;
  std::string what = reach_second(recorded, violation, &second);
  *image = second.first_image;
  if (!what.empty() || !second.images) {
    return what;
  }
  const std::unique_ptr<SimEnv> again = second.images->materialize(*violation.second);
  *image = recorded.hash.of(again->trace().base);
  return second.target->check(again.get(), second.images->marks(*violation.second), violation.check_seed, nullptr);
}

std::string CrashExplorer::replay(const CrashViolation& violation) {
  Recorded recorded;
  if (std::string wrong = record(violation.run, &recorded); !wrong.empty()) {
    return "without any crash: " + wrong;
  }
  const std::vector<uint32_t>& landed = violation.state.landed;
  if (violation.state.cut > recorded.images->trace().end ||
      (!landed.empty() && landed.back() >= recorded.images->trace().ops.size())) {
    return "the run is not the recorded one: its history ends before the crash";
  }
  uint64_t image = 0;
  std::string what = show(recorded, violation, &image);
  if (violation.image != 0 && image != violation.image) {
    what += (what.empty() ? "" : "; ") + std::string("the disk is not the recorded one: the code has changed since");
  }
  return what;
}

// Lets the writes that the last crash lost land, one after the other, while there is a violation.
void CrashExplorer::shrink_losses(Recorded& recorded, CrashViolation* violation) {
  Second second;
  if (violation->second && !reach_second(recorded, *violation, &second).empty()) {
    return;
  }
  CrashImages& images = violation->second ? *second.images : *recorded.images;
  const size_t cut_index = violation->second ? violation->second->cut_index : violation->state.cut_index;
  for (const uint32_t op : std::vector<uint32_t>(images.in_doubt(cut_index))) {
    CrashViolation smaller = *violation;
    CrashState& state = smaller.second ? *smaller.second : smaller.state;
    if (state.tear && state.tear->op == op) {
      state.tear.reset();
    } else if (has_landed(state, op)) {
      continue;
    }
    state.landed.push_back(op);
    std::sort(state.landed.begin(), state.landed.end());
    smaller.what = show(recorded, smaller, &smaller.image);
    if (!smaller.what.empty()) {
      *violation = std::move(smaller);
    }
  }
}

CrashViolation CrashExplorer::shrink(CrashViolation violation, const CrashLimits& limits) {
  const CrashCounts counts = m_counts;  // what shrinking looks at is not counted
  for (unsigned steps = 1; steps < violation.run.steps; steps += 1 + steps / 4) {
    CrashRun shorter = violation.run;
    shorter.steps = steps;
    if (std::optional<CrashViolation> found = explore(shorter, limits)) {
      violation = std::move(*found);
      break;
    }
  }
  Recorded recorded;
  if (record(violation.run, &recorded).empty()) {
    shrink_losses(recorded, &violation);
    tell(recorded, &violation);
  }
  m_counts = counts;
  return violation;
}

void CrashExplorer::tell(Recorded& recorded, CrashViolation* violation) {
  violation->story.clear();
  Second second;
  if (violation->second && !reach_second(recorded, *violation, &second).empty()) {
    return;
  }
  CrashImages& images = violation->second ? *second.images : *recorded.images;
  const CrashState& state = violation->second ? *violation->second : violation->state;
  for (const uint32_t index : images.in_doubt(state.cut_index)) {
    const SimOp& op = images.trace().ops[index];
    std::string text = has_landed(state, index)                ? "landed: "
                       : state.tear && state.tear->op == index ? "torn:   "
                                                               : "lost:   ";
    text += std::string(name_of(op.kind)) + " " + path_of(images.trace(), op);
    if (op.length > 0) {
      text += " at " + std::to_string(op.offset) + ", " + std::to_string(op.length) + " bytes";
    }
    violation->story.push_back(std::move(text));
  }
}

}  // namespace vtkv
