// SPDX-License-Identifier: LGPL-2.1-or-later
// real_fs_explorer: what crashes leave of a store on a file system of this host.

#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include "swimstore/testing/disk/real_store.h"
#include "swimstore/testing/explorer_program.h"
#include "vtkv/testing/disk/flush_rule.h"
#include "vtkv/testing/mutations.h"

namespace po = boost::program_options;

using swimstore::complain;
using swimstore::RealStore;
using vtkv::DiskCrash;
using vtkv::DiskCrashes;
using vtkv::FileSystemKind;

namespace {

constexpr unsigned kStatesOfRecording = 20;  // then another store is made
constexpr unsigned kNestedEvery = 4;         // states that crash again
constexpr unsigned kNestedStates = 2;        // of each

struct Settings {
  std::string file_system = "ext4";
  std::string mkfs_options;
  std::string image;
  uint64_t seed = 1;
  uint64_t states = 100;
  double seconds = 600;
};

bool parse_kind(const std::string& name, FileSystemKind* kind) {
  for (const FileSystemKind one : {FileSystemKind::ext4, FileSystemKind::xfs, FileSystemKind::btrfs}) {
    if (name == vtkv::to_string(one)) {
      *kind = one;
      return true;
    }
  }
  return false;
}

// A directory for one run, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "real_fs_XXXXXX").string();
    m_path = ::mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~Scratch() {
    if (m_path.empty()) {
      return;
    }
    std::error_code error;
    // Never into what is still mounted.
    std::filesystem::remove(m_path + "/mounted", error);
    std::filesystem::remove(m_path + "/disk", error);
    std::filesystem::remove(m_path, error);
  }
  const std::string& path() const { return m_path; }

 private:
  std::string m_path;
};

class Exploration {
 public:
  Exploration(CephContext* cct, vtkv::DiskLab* lab, const Settings& settings)
      : m_cct(cct), m_lab(lab), m_settings(settings) {}

  int run() {
    for (uint64_t seed = m_settings.seed; !done(); ++seed) {
      const uint32_t position = m_lab->disk().position();
      explore(seed);
      m_lab->disk().rewind(position);
    }
    if (!m_wrong.empty()) {
      std::cout << m_wrong << "\n";
    }
    std::cout << fmt::format("{} states, {} nested, {} violations\n", m_states, m_nested, m_wrong.empty() ? 0 : 1);
    return m_wrong.empty() ? 0 : 1;
  }

 private:
  bool done() const { return !m_wrong.empty() || m_states >= m_settings.states || seconds() > m_settings.seconds; }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_start).count(); }

  void explore(uint64_t seed) {
    RealStore store(m_cct, m_lab, {.seed = seed});
    std::unique_ptr<DiskCrashes> crashes;
    m_wrong = store.record(&crashes);
    const uint32_t position = m_lab->disk().position();
    std::mt19937_64 random(seed);
    for (unsigned n = 0; n < kStatesOfRecording && !done(); ++n) {
      look_at(store, crashes->next(random), random, n % kNestedEvery == 0);
      m_lab->disk().rewind(position);
      tell(seed, crashes->moments());
    }
  }

  void look_at(RealStore& store, const DiskCrash& crash, std::mt19937_64& random, bool again) {
    std::unique_ptr<RealStore> second;
    std::unique_ptr<DiskCrashes> crashes;
    m_wrong = store.check(crash, again ? &second : nullptr, again ? &crashes : nullptr);
    ++m_states;
    if (!m_wrong.empty()) {
      m_wrong = fmt::format("violation: {}\n  {}{}", m_wrong, crash.story, keep(crash));
      return;
    }
    for (unsigned i = 0; again && i < kNestedStates && m_wrong.empty(); ++i) {
      const uint32_t position = m_lab->disk().position();
      const DiskCrash next = crashes->next(random);
      m_wrong = second->check(next, nullptr, nullptr);
      ++m_nested;
      if (!m_wrong.empty()) {
        m_wrong = fmt::format("violation: {}\n  {}\n  then {}{}", m_wrong, crash.story, next.story, keep(next));
      }
      m_lab->disk().rewind(position);
    }
  }

  // The threads of another run may take other turns: what was found is kept, not only its seed.
  std::string keep(const DiskCrash& crash) {
    if (m_settings.image.empty()) {
      return "";
    }
    const vtkv::Status status = m_lab->save(crash.image, m_settings.image);
    return fmt::format("\n  {}", status.ok()
                                     ? "the disk is kept: losetup --sector-size 4096 -f --show " + m_settings.image
                                     : status.to_string());
  }

  void tell(uint64_t seed, size_t moments) {
    if (seconds() - m_told > 5) {
      m_told = seconds();
      std::cerr << fmt::format("{:5.0f} s: {}, seed {} ({} flushes): {} states, {} nested\n", m_told,
                               m_settings.file_system, seed, moments - 1, m_states, m_nested);
    }
  }

  CephContext* const m_cct;
  vtkv::DiskLab* const m_lab;
  const Settings m_settings;
  const std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
  double m_told = 0;
  uint64_t m_states = 0;
  uint64_t m_nested = 0;
  std::string m_wrong;
};

int ask(vtkv::DiskLab& lab) {
  std::vector<vtkv::FlushAnswer> answers;
  const vtkv::Status status = vtkv::ask_flush_rule(lab, &answers);
  for (const vtkv::FlushAnswer& answer : answers) {
    std::cout << fmt::format("{}: {} of {} blocks kept\n", answer.question.to_string(), answer.kept, answer.blocks);
  }
  return status.ok() ? 0 : complain(status.to_string());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string mutation;
  po::options_description text(
      "real_fs_explorer: what crashes leave of a store on a file system of this host\n\n"
      "The file system lies on a loop device over a disk in memory that records every write and flush.\n\nOptions");
  text.add_options()("help,h", "show this")("version", "print versions")("fs", po::value(&settings.file_system),
                                                                         "ext4 (default), xfs or btrfs")(
      "mkfs-options", po::value(&settings.mkfs_options), "further ones of its mkfs, such as '-O fast_commit'")(
      "flush-rule", "instead of a store's crashes: does a sync of one file cover direct writes to another?")(
      "seed", po::value(&settings.seed), "first seed (1)")("states", po::value(&settings.states),
                                                           "stop after so many states of first crashes (100)")(
      "time", po::value(&settings.seconds), "stop after so many seconds (600)")(
      "image", po::value(&settings.image), "keep the disk of a violation in this file")(
      "mutation", po::value(&mutation), "break a rule on purpose: swimstore_crash_explorer --list-mutations");
  po::variables_map values;
  if (int status; !swimstore::parse_options(argc, argv, text, &values, &status)) {
    return status;
  }
  FileSystemKind kind;
  if (!parse_kind(settings.file_system, &kind)) {
    return complain("there is no file system '" + settings.file_system + "' to test: use ext4, xfs or btrfs");
  }
  std::optional<vtkv::ScopedMutation> broken;
  if (!mutation.empty()) {
    vtkv::Mutation rule{};
    if (const vtkv::Status status = vtkv::parse_mutation(mutation, &rule); !status.ok()) {
      return complain(std::string(status.message()));
    }
    broken.emplace(rule);
  }

  // The disk's server is forked before there are threads.
  const Scratch scratch;
  if (scratch.path().empty()) {
    return complain("no directory can be made in TMPDIR, or in /tmp");
  }
  std::unique_ptr<vtkv::DiskLab> lab;
  if (const vtkv::Status status = vtkv::DiskLab::open(kind, settings.mkfs_options, scratch.path(), &lab);
      !status.ok()) {
    return complain(status.to_string());
  }
  if (values.count("flush-rule")) {
    return ask(*lab);
  }
  const auto cct = swimstore::new_context();
  return Exploration(cct.get(), lab.get(), settings).run();
}
