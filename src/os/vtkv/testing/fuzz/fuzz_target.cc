// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/fuzz/fuzz_target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>

namespace vtkv {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSeedPrefix = "seed_";

std::vector<fs::path> files_of(const fs::path& directory) {
  std::vector<fs::path> files;
  if (fs::is_directory(directory)) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_seeds(const fs::path& directory, const std::vector<std::string>& seeds) {
  fs::create_directories(directory);
  for (const fs::path& path : files_of(directory)) {
    if (path.filename().string().starts_with(kSeedPrefix)) {
      fs::remove(path);
    }
  }
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(directory / (kSeedPrefix + std::to_string(i)), std::ios::binary) << seeds[i];
  }
}

// One to four changes: of a bit, of a byte, of the length, of where a slice lies.
std::string changed(std::string bytes, std::mt19937_64& random) {
  for (uint64_t n = 1 + random() % 4; n > 0; --n) {
    const size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, 1 + random() % 4, static_cast<char>(random()));
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, random() % 16));
        break;
      case 3:
        bytes.erase(at, 1 + random() % 4);
        break;
      case 4:
        if (!bytes.empty()) {
          bytes[at] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
        }
        break;
      default:
        if (!bytes.empty()) {
          bytes[at] ^= static_cast<char>(1 << random() % 8);
        }
    }
  }
  return bytes;
}

}  // namespace

void fuzz_violation(const char* sentence) {
  std::fprintf(stderr, "%s\n", sentence);
  std::abort();
}

void patch32(std::string* bytes, size_t offset, uint32_t value) {
  if (offset + sizeof value <= bytes->size()) {
    std::memcpy(bytes->data() + offset, &value, sizeof value);
  }
}

std::string check_seeds(const FuzzTarget& target, const std::string& corpus, bool write) {
  const fs::path directory = fs::path(corpus) / target.name;
  const std::vector<std::string> seeds = target.seeds();
  if (write) {
    write_seeds(directory, seeds);
  }
  for (size_t i = 0; i < seeds.size(); ++i) {
    const fs::path path = directory / (kSeedPrefix + std::to_string(i));
    if (!fs::exists(path) || read_file(path) != seeds[i]) {
      return path.string() + " is not what the encoder makes: run qa/fuzz/make_corpus.sh";
    }
  }
  return {};
}

uint64_t replay_corpus(const FuzzTarget& target, const std::string& corpus, uint64_t changes, uint64_t seed) {
  std::vector<std::string> kept;
  for (const fs::path& path : files_of(fs::path(corpus) / target.name)) {
    kept.push_back(read_file(path));
    target.run(kept.back());
  }
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < changes && !kept.empty(); ++i) {
    target.run(changed(kept[random() % kept.size()], random));
  }
  return kept.empty() ? 0 : kept.size() + changes;
}

const FuzzTarget* choose_target(std::span<const FuzzTarget> targets, int* argc, char*** argv) {
  for (const FuzzTarget& target : targets) {
    if (*argc > 1 && std::strcmp((*argv)[1], target.name) == 0) {
      // The rest is libFuzzer's; it wants the program's name before it.
      (*argv)[1] = (*argv)[0];
      ++*argv;
      --*argc;
      return &target;
    }
  }
  std::fprintf(stderr, "usage: %s TARGET [LIBFUZZER OPTION]... [CORPUS]...\ntargets:", (*argv)[0]);
  for (const FuzzTarget& target : targets) {
    std::fprintf(stderr, " %s", target.name);
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace vtkv
