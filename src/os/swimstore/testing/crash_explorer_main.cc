// SPDX-License-Identifier: LGPL-2.1-or-later
// swimstore_crash_explorer: crash states of the whole stack, of a cube, or of the engine, for as long as it is given.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include "swimstore/testing/cube_crash_target.h"
#include "swimstore/testing/explorer_program.h"
#include "swimstore/testing/store_crash_target.h"
#include "swimstore/testing/store_damage.h"
#include "swimstore/testing/store_forgery.h"
#include "vtkv/testing/kv_crash_target.h"
#include "vtkv/testing/mutations.h"

namespace po = boost::program_options;

using swimstore::complain;
using vtkv::CrashExplorer;
using vtkv::CrashRun;
using vtkv::CrashTarget;
using vtkv::SimProfile;

namespace {

constexpr const char* kStacks[] = {"store", "two-file-systems", "compressed", "cubes", "cube", "vtkv"};
constexpr const char* kStackNames =
    "store, two-file-systems (its log and tree on another one), compressed, cubes (a store of three), cube, vtkv or "
    "all";
constexpr SimProfile kProfiles[] = {SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest};

struct Settings {
  std::vector<std::string> stacks;
  std::vector<SimProfile> profiles;
  std::optional<vtkv::Mutation> mutation;
  uint64_t seed = 1;
  uint64_t states = 0;
  uint64_t nested_every = vtkv::CrashLimits().nested_every;
  double seconds = 60;
  double ms_per_state_max = 0;
};

std::unique_ptr<CrashTarget> new_target(CephContext* cct, const CrashRun& run) {
  if (run.stack == "vtkv") {
    if (run.mutation && !vtkv::is_of_engine(*run.mutation)) {
      return nullptr;
    }
    return std::make_unique<vtkv::KvCrashTarget>(run, vtkv::KvWorkloadSettings());
  }
  if (run.stack == "cube") {
    return std::make_unique<swimstore::CubeCrashTarget>(run, swimstore::CubeCrashTarget::options_for(run.profile));
  }
  swimstore::StoreCrashTargetOptions store;
  // Every third seed has few large objects, every third small ones that share a slot.
  if (run.seed % 3 == 0) {
    store.workload = {.objects = 2, .object_bytes_max = 4u << 20};
  } else if (run.seed % 3 == 1) {
    store.workload = {.objects = 3, .object_bytes_max = 40000};
  }
  store.workload.two_file_systems = run.stack == "two-file-systems";
  store.workload.compressible = run.stack == "compressed";
  const bool sometimes_moves = store.workload.compressible || store.workload.two_file_systems;
  store.workload.moves = run.stack == "cubes" || (sometimes_moves && run.seed / 3 % 2 == 1);
  store.workload.defragments = run.stack == "store" && run.seed / 3 % 2 == 1;
  const bool known = run.stack == "store" || run.stack == "cubes" || sometimes_moves;
  return known ? std::make_unique<swimstore::StoreCrashTarget>(cct, run, store) : nullptr;
}

constexpr uint64_t kSectorsMax = 96;  // of a file, without --long

unsigned steps_of(const std::string& stack) { return stack == "cube" ? 120 : 24; }

int replay(CrashExplorer& explorer, const std::string& path) {
  std::ifstream file(path);
  std::stringstream script;
  if (!file || !(script << file.rdbuf())) {
    return complain(path + ": cannot be read; name a script that this program has printed");
  }
  vtkv::CrashViolation violation;
  if (const vtkv::Status status = vtkv::parse_script(script.str(), &violation); !status.ok()) {
    return complain(path + ": " + std::string(status.message()));
  }
  const std::string what = explorer.replay(violation);
  std::cout << (what.empty() ? "no violation" : what) << "\n1 states, " << (violation.second ? 1 : 0) << " nested, "
            << (what.empty() ? 0 : 1) << " violations\n";
  return what.empty() ? 0 : 1;
}

// Not of crashes: of bytes that change on the disk.
int damage(CephContext* cct, uint64_t seed, uint64_t sectors_max) {
  swimstore::StoreDamage damage(cct, seed, sectors_max);
  const std::string wrong = damage.run();
  std::cout << damage.table() << (wrong.empty() ? "nothing wrong" : wrong) << "\n";
  return wrong.empty() ? 0 : 1;
}

// Nor of these: of fields that somebody changed, under good checksums. Says what it is about to do, for what ends the
// process is what it looks for.
int forge(CephContext* cct, const Settings& settings) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings.seconds);
  swimstore::StoreForgery forgery(cct, 1);
  uint64_t cases = 0, mounted = 0, findings = 0;
  for (; (settings.states == 0 || cases < settings.states) && std::chrono::steady_clock::now() < until; ++cases) {
    std::cerr << "case " << settings.seed + cases << std::flush;
    const swimstore::StoreForgery::Outcome outcome = forgery.run(settings.seed + cases);
    mounted += outcome.mounted;
    findings += outcome.findings > 0;
    std::cerr << fmt::format(": {}: {}, {} errors, {} findings\n", outcome.what,
                             outcome.mounted ? "mounted" : "refused", outcome.errors, outcome.findings);
  }
  std::cout << fmt::format("{} forged images, {} mounted, {} with findings\n", cases, mounted, findings);
  return cases > 0 ? 0 : 1;
}

class Exploration {
 public:
  Exploration(CrashExplorer& explorer, const Settings& settings) : m_explorer(explorer), m_settings(settings) {
    m_limits.nested_every = settings.nested_every;
    m_limits.until = m_start + std::chrono::microseconds(static_cast<int64_t>(settings.seconds * 1e6));
  }

  int run() {
    for (uint64_t seed = m_settings.seed; !done(); ++seed) {
      for (const std::string& stack : m_settings.stacks) {
        // One profile per seed: the next has its turn with the next seed. When all had theirs, with workers
        // interleaved.
        const size_t profiles = m_settings.profiles.size();
        if (!done()) {
          explore({stack, m_settings.mutation, m_settings.profiles[seed % profiles], seed, steps_of(stack),
                   seed / profiles % 2 == 1});
        }
      }
    }
    return report();
  }

 private:
  bool done() const {
    const vtkv::CrashCounts& counts = m_explorer.counts();
    return std::chrono::steady_clock::now() > m_limits.until || counts.violations > 0 ||
           (m_settings.states > 0 && counts.states >= m_settings.states);
  }

  void explore(const CrashRun& run) {
    if (m_settings.states > 0) {
      m_limits.states = std::min<uint64_t>(400, m_settings.states - m_explorer.counts().states);
    }
    if (const auto violation = m_explorer.explore(run, m_limits)) {
      std::cerr << "violation with seed " << run.seed << " of " << run.stack << ": " << violation->what
                << "; looking for a shorter history\n";
      vtkv::CrashLimits limits = m_limits;
      limits.until = std::chrono::steady_clock::time_point::max();
      m_script = to_script(m_explorer.shrink(*violation, limits));
    }
    ++m_runs;
    const auto now = std::chrono::steady_clock::now();
    if (now - m_shown > std::chrono::seconds(10)) {
      m_shown = now;
      const vtkv::CrashCounts& counts = m_explorer.counts();
      std::cerr << fmt::format("{:5.0f} s: seed {} of {}: {} states, {} nested, {} violations\n",
                               std::chrono::duration<double>(now - m_start).count(), run.seed, run.stack, counts.states,
                               counts.nested, counts.violations);
    }
  }

  int report() const {
    const vtkv::CrashCounts& counts = m_explorer.counts();
    if (!m_script.empty()) {
      std::cout << "# save this as a file and show it again with --replay FILE\n" << m_script;
    }
    const double ms = counts.seconds * 1000 / static_cast<double>(std::max<uint64_t>(1, counts.states + counts.nested));
    std::cout << fmt::format("{} runs, {} distinct states, {:.2f} ms of processor time a state\n", m_runs,
                             counts.distinct, ms);
    const bool slow = m_settings.ms_per_state_max > 0 && ms > m_settings.ms_per_state_max;
    if (slow) {
      std::cout << fmt::format("slower than --ms-per-state-max, {} ms\n", m_settings.ms_per_state_max);
    }
    std::cout << fmt::format("{} states, {} nested, {} violations\n", counts.states, counts.nested, counts.violations);
    return counts.violations == 0 && !slow ? 0 : 1;
  }

  CrashExplorer& m_explorer;
  const Settings m_settings;
  const std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point m_shown = m_start;
  vtkv::CrashLimits m_limits;
  uint64_t m_runs = 0;
  std::string m_script;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string stack, profile, script, mutation;
  po::options_description text(
      "swimstore_crash_explorer: what crashes leave of a store in a simulated host\n\nOptions");
  text.add_options()("help,h", "show this")("version", "print versions")(
      "stack", po::value(&stack)->default_value("all"), kStackNames)(
      "seed", po::value(&settings.seed)->default_value(1), "first seed")(
      "states", po::value(&settings.states)->default_value(0),
      "stop after so many states of first crashes; 0: no limit")(
      "nested-every", po::value(&settings.nested_every)->default_value(settings.nested_every),
      "crash again in the recovery of every so many states; 0: never")(
      "time", po::value(&settings.seconds)->default_value(60), "stop after so many seconds")(
      "profile", po::value(&profile)->default_value("all"), "ext4, xfs, btrfs, weakest or all")(
      "mutation", po::value(&mutation), "break a rule on purpose: see --list-mutations")(
      "list-mutations", "name them, and what each breaks")("replay", po::value(&script),
                                                           "show the violation of this script again")(
      "damage", "instead, damage a small store sector by sector: some of each file")("long",
                                                                                     "with --damage: every sector")(
      "forge", "instead, change fields of a small store's image under good checksums; --seed is the first case")(
      "ms-per-state-max", po::value(&settings.ms_per_state_max), "fail when a state takes more processor time");
  po::variables_map values;
  if (int status; !swimstore::parse_options(argc, argv, text, &values, &status)) {
    return status;
  }
  if (values.count("list-mutations")) {
    for (const vtkv::Mutation one : vtkv::mutations()) {
      std::cout << to_string(one) << ": " << what_is_broken(one) << "\n";
    }
    return 0;
  }
  if (!mutation.empty()) {
    if (const vtkv::Status status = vtkv::parse_mutation(mutation, &settings.mutation.emplace()); !status.ok()) {
      return complain(std::string(status.message()));
    }
  }
  for (const char* one : kStacks) {
    if (stack == "all" || stack == one) {
      settings.stacks.emplace_back(one);
    }
  }
  if (settings.stacks.empty()) {
    return complain("there is no stack '" + stack + "': use " + kStackNames);
  }
  if (stack == "all" && settings.mutation && !vtkv::is_of_engine(*settings.mutation)) {
    settings.stacks.pop_back();  // the engine alone, which has no such rule
  }
  SimProfile one_profile;
  if (profile == "all") {
    settings.profiles.assign(std::begin(kProfiles), std::end(kProfiles));
  } else if (vtkv::parse_profile(profile, &one_profile)) {
    settings.profiles = {one_profile};
  } else {
    return complain("there is no profile '" + profile + "': use ext4, xfs, btrfs, weakest or all");
  }

  const auto cct = swimstore::new_context();
  if (values.count("damage")) {
    return damage(cct.get(), settings.seed, values.count("long") ? 0 : kSectorsMax);
  }
  if (values.count("forge")) {
    return forge(cct.get(), settings);
  }
  CrashExplorer explorer([&cct](const CrashRun& run) { return new_target(cct.get(), run); });
  return script.empty() ? Exploration(explorer, settings).run() : replay(explorer, script);
}
