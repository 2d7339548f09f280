// SPDX-License-Identifier: LGPL-2.1-or-later
// Flush, compaction and readers at the same time, on the host.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/tree/tree.h"

namespace vtkv {
namespace {

constexpr SequenceNumber kKeys = 300;

std::string key_of(SequenceNumber i) { return "key" + std::to_string(i); }

// Round r puts r under every key. A version must show one round for all keys, and never an earlier one
// than a version before it.
void read_rounds(const Tree& tree, const std::atomic<bool>& done, std::atomic<int>* wrong) {
  SequenceNumber last = 0;
  while (!done) {
    const auto version = tree.current();
    SequenceNumber round = 0;
    for (SequenceNumber i = 0; i < kKeys; ++i) {
      Lookup result;
      std::string value;
      if (!version->get(key_of(i), UINT64_MAX, &result, &value).ok()) {
        ++*wrong;
        return;
      }
      const SequenceNumber here = result == Lookup::found ? std::stoull(value) : 0;
      *wrong += i > 0 && here != round;
      round = here;
    }
    *wrong += round < last;
    last = round;
  }
}

TEST(TreeThreads, ReadersSeeWholeRoundsWhileRunsComeAndGo) {
  char name[] = "vtkv_threads_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string directory = std::filesystem::absolute(name);
  Options options;
  options.geometry.zone_bytes = 64 << 10;
  options.growth_factor = options.runs_per_level = 2;
  options.block_cache_bytes = 32 << 10;
  ASSERT_TRUE(Tree::create(posix_env(), directory, options.geometry, Uuid{1}, {}).ok());
  std::unique_ptr<Tree> tree;
  ASSERT_TRUE(Tree::open(posix_env(), directory, options, &tree).ok());

  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { read_rounds(*tree, done, &wrong); });
  }
  threads.emplace_back([&] {
    while (!done) {
      bool did = false;
      wrong += !tree->compact_once({}, &did).ok();
      if (!did) {
        std::this_thread::yield();
      }
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      tree->cache()->resize(tree->statistics().runs % 2 ? 0 : 64 << 10);
      tree->oldest_log_position();
    }
  });
  for (SequenceNumber round = 1; round <= 60; ++round) {
    MemTable table;
    for (SequenceNumber i = 0; i < kKeys; ++i) {
      table.put(round * 1000 + i, key_of(i), std::to_string(round));
    }
    LogPosition position;
    position.sequence = round * 1000 + kKeys;
    ASSERT_TRUE(tree->flush(table, position, {}).ok());
  }
  done = true;
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(tree->statistics().compactions, 0u);
  std::vector<std::string> findings;
  tree->verify(&findings);
  EXPECT_TRUE(findings.empty());
  tree.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace vtkv
