// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/crash_images.h"

#include <gtest/gtest.h>

#include <set>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/small_file.h"
#include "vtkv/util/mutex.h"

namespace vtkv {
namespace {

std::unique_ptr<File> open(Env* env, const std::string& path) {
  std::unique_ptr<File> file;
  const Status status = env->open_file(path, {.create = true}, &file);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return file;
}

void write(File* file, uint64_t block, char value, size_t blocks = 1) {
  AlignedBuffer data;
  data.append(std::string(blocks * 4096, value));
  const Status status = file->write(block * 4096, data.data(), data.size());
  ASSERT_TRUE(status.ok()) << status.to_string();
}

// The first byte of each of a file's blocks ('.' for 0), or "none", or "?" for a block of several values.
std::string summary(Env* env, const std::string& path) {
  std::string bytes;
  if (!read_small_file(env, path, &bytes).ok()) {
    return "none";
  }
  std::string result;
  for (size_t at = 0; at < bytes.size(); at += 4096) {
    const std::string block = bytes.substr(at, 4096);
    const bool uniform = block == std::string(block.size(), block[0]);
    result += !uniform ? '?' : block[0] == 0 ? '.' : block[0];
  }
  return result;
}

std::set<std::string> summaries(CrashImages* images, size_t cut_index, const std::string& path) {
  std::set<std::string> result;
  for (uint64_t n = 0; n < images->state_count(cut_index); ++n) {
    auto env = images->materialize(images->state(cut_index, n));
    result.insert(summary(env.get(), path));
  }
  return result;
}

using Set = std::set<std::string>;

class CrashImagesTest : public testing::Test {
 protected:
  void start(SimProfile profile) {
    m_a.reset();
    m_b.reset();
    m_env = std::make_unique<SimEnv>(SimOptions{.profile = profile});
    m_a = open(m_env.get(), "/a");
    m_b = open(m_env.get(), "/b");
    ASSERT_TRUE(m_a->write_zeros(0, 4 * 4096).ok());
    ASSERT_TRUE(m_b->write_zeros(0, 4 * 4096).ok());
    ASSERT_TRUE(m_a->sync().ok());
    ASSERT_TRUE(m_b->sync().ok());
    m_env->restart_trace();
  }
  ~CrashImagesTest() override {
    m_a.reset();
    m_b.reset();
  }
  // States at the end of the run.
  Set at_end(const std::string& path, bool torn = false) {
    CrashImages images(m_env->trace(), {.torn = torn});
    return summaries(&images, images.cut_count() - 1, path);
  }

  std::unique_ptr<SimEnv> m_env;
  std::unique_ptr<File> m_a;
  std::unique_ptr<File> m_b;
};

TEST_F(CrashImagesTest, UnsyncedWritesLandInAnySubset) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, '0');
  write(m_a.get(), 1, '1');
  EXPECT_EQ(at_end("/a"), (Set{"....", "0...", ".1..", "01.."}));
}

TEST_F(CrashImagesTest, LaterWriteToTheSamePlaceWins) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, '0');
  write(m_a.get(), 0, '1');
  EXPECT_EQ(at_end("/a"), (Set{"....", "0...", "1..."}));
}

TEST_F(CrashImagesTest, SyncedWritesStay) {
  start(SimProfile::weakest);
  write(m_a.get(), 0, '0');
  ASSERT_TRUE(m_a->sync().ok());
  write(m_a.get(), 1, '1');
  EXPECT_EQ(at_end("/a"), (Set{"0...", "01.."}));
}

TEST_F(CrashImagesTest, SyncOfAnotherFileCoversPrimedSpaceOnExt4AndXfsOnly) {
  for (const SimProfile profile : {SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest}) {
    start(profile);
    write(m_a.get(), 0, '0');
    ASSERT_TRUE(m_b->sync().ok());
    const bool one_flush = profile == SimProfile::ext4 || profile == SimProfile::xfs;
    EXPECT_EQ(at_end("/a"), (one_flush ? Set{"0..."} : Set{"....", "0..."})) << to_string(profile);
  }
}

TEST_F(CrashImagesTest, SyncOfAnotherFileCoversNoUnprimedSpace) {
  start(SimProfile::ext4);
  ASSERT_TRUE(m_a->allocate(4 * 4096, 4096).ok());
  ASSERT_TRUE(m_a->sync().ok());
  write(m_a.get(), 4, '4');
  ASSERT_TRUE(m_b->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{".....", "....4"}));
  // Its own sync primes it.
  ASSERT_TRUE(m_a->sync().ok());
  write(m_a.get(), 4, '5');
  ASSERT_TRUE(m_b->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{"....5"}));
  // A hole is not primed any more.
  ASSERT_TRUE(m_a->punch_hole(4 * 4096, 4096).ok());
  ASSERT_TRUE(m_a->sync().ok());
  write(m_a.get(), 4, '6');
  ASSERT_TRUE(m_b->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{".....", "....6"}));
}

TEST_F(CrashImagesTest, SizeIsInDoubtUntilTheOwnSync) {
  start(SimProfile::ext4);
  write(m_a.get(), 5, '5');
  ASSERT_TRUE(m_b->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{"....", ".....5"}));
  ASSERT_TRUE(m_a->sync().ok());
  ASSERT_TRUE(m_a->truncate(4096).ok());
  EXPECT_EQ(at_end("/a"), (Set{".....5", "."}));
}

TEST_F(CrashImagesTest, NamesNeedADirectorySyncOnTheWeakest) {
  start(SimProfile::weakest);
  auto c = open(m_env.get(), "/c");
  write(c.get(), 0, 'c');
  ASSERT_TRUE(c->sync().ok());
  EXPECT_EQ(at_end("/c"), (Set{"none", "c"}));
  ASSERT_TRUE(m_env->sync_directory("/").ok());
  EXPECT_EQ(at_end("/c"), (Set{"c"}));
  ASSERT_TRUE(m_env->rename_file("/c", "/a").ok());
  EXPECT_EQ(at_end("/a"), (Set{"....", "c"}));
  ASSERT_TRUE(m_env->sync_directory("/").ok());
  EXPECT_EQ(at_end("/a"), (Set{"c"}));
  EXPECT_EQ(at_end("/c"), (Set{"none"}));
}

TEST_F(CrashImagesTest, SyncOfTheFileCoversItsNameElsewhere) {
  start(SimProfile::btrfs);
  ASSERT_TRUE(m_env->create_directory("/d").ok());
  auto c = open(m_env.get(), "/d/c");
  write(c.get(), 0, 'c');
  ASSERT_TRUE(c->sync().ok());
  EXPECT_EQ(at_end("/d/c"), (Set{"c"}));
}

TEST_F(CrashImagesTest, AnUnlinkIsInDoubtUntilTheDirectorySync) {
  start(SimProfile::ext4);
  ASSERT_TRUE(m_env->remove_file("/a").ok());
  EXPECT_EQ(at_end("/a"), (Set{"none", "...."}));
  ASSERT_TRUE(m_env->sync_directory("/").ok());
  EXPECT_EQ(at_end("/a"), (Set{"none"}));
}

TEST_F(CrashImagesTest, ReplacedSmallFileIsOldOrNew) {
  for (const SimProfile profile : {SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest}) {
    SimEnv env({.profile = profile});
    ASSERT_TRUE(replace_small_file(&env, "/current", "old").ok());
    env.restart_trace();
    ASSERT_TRUE(replace_small_file(&env, "/current", "new").ok());
    CrashImages images(env.trace(), {});
    std::set<std::string> seen;
    std::string text;
    for (CrashState state; images.next(&state);) {
      auto crashed = images.materialize(state);
      ASSERT_TRUE(read_small_file(crashed.get(), "/current", &text).ok()) << state.to_string();
      seen.insert(text);
      if (state.cut_index + 1 == images.cut_count()) {
        EXPECT_EQ(text, "new");
      }
    }
    EXPECT_EQ(seen, (std::set<std::string>{"old", "new"})) << to_string(profile);
  }
}

TEST_F(CrashImagesTest, TornWriteLeavesSomeFragments) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, 'x', 3);
  const Set torn = at_end("/a", /*torn=*/true);
  EXPECT_TRUE(torn.contains("x...")) << "the first 4 KiB";
  EXPECT_TRUE(torn.contains(".xx.")) << "all but the first 4 KiB";
  EXPECT_TRUE(torn.contains("?...")) << "the first 512 bytes";
  EXPECT_TRUE(torn.contains("xx?.")) << "all but the last 512 bytes";
}

TEST_F(CrashImagesTest, FailedSyncLeavesWritesInDoubtForEver) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, '0');
  m_env->fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "disk"), false);
  ASSERT_FALSE(m_a->sync().ok());
  ASSERT_TRUE(m_a->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{"....", "0..."}));
}

TEST_F(CrashImagesTest, FailedWriteMayHaveLanded) {
  start(SimProfile::ext4);
  m_env->fail_nth(SimCall::write, 1, Status::from_errno(EIO, "disk"), false);
  AlignedBuffer data;
  data.append(std::string(4096, 'x'));
  ASSERT_FALSE(m_a->write(0, data.data(), data.size()).ok());
  ASSERT_TRUE(m_a->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{"....", "x..."}));
}

TEST_F(CrashImagesTest, WhatCameAfterAFailedWriteInItsPlaceStays) {
  start(SimProfile::ext4);
  m_env->fail_nth(SimCall::write, 1, Status::from_errno(EIO, "disk"), false);
  AlignedBuffer data;
  data.append(std::string(4096, 'x'));
  ASSERT_FALSE(m_a->write(0, data.data(), data.size()).ok());
  write(m_a.get(), 0, 'y');
  ASSERT_TRUE(m_a->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{"y..."}));
}

// A hole that was punched over it, and a neighbour that was written into the hole.
TEST_F(CrashImagesTest, WhatCameAfterThatStaysAsWell) {
  start(SimProfile::ext4);
  m_env->fail_nth(SimCall::write, 1, Status::from_errno(EIO, "disk"), false);
  AlignedBuffer data;
  data.append(std::string(4096, 'x'));
  ASSERT_FALSE(m_a->write(0, data.data(), data.size()).ok());
  ASSERT_TRUE(m_a->punch_hole(0, 8192).ok());
  write(m_a.get(), 1, 'y');
  ASSERT_TRUE(m_a->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{".y.."}));
}

TEST_F(CrashImagesTest, WriteNotReapedBeforeTheSyncIsNotCovered) {
  start(SimProfile::ext4);
  for (const bool reap_first : {false, true}) {
    m_env->restart_trace();
    AlignedBuffer data;
    data.append(std::string(4096, reap_first ? '2' : '1'));
    IoRequest request;
    request.file = m_a.get();
    request.buffers = {{data.data(), 4096}};
    bool submitted = false;
    int steps = 0;
    auto worker = m_env->start_worker("w", 4, [&](IoQueue& io) {
      std::vector<IoRequest*> completed;
      ++steps;
      if (!submitted) {
        io.submit(&request);
        submitted = true;
      } else if (reap_first) {
        io.reap(&completed);
      }
      return reap_first ? NextStep::on_event() : NextStep::now();
    });
    if (reap_first) {
      m_env->run_until_idle();
    } else {
      auto signal = m_env->new_signal();
      Mutex mutex;
      MutexLock lock(mutex);
      // Long enough for the disk to have done it: only the program does not know.
      signal->wait(lock, [&] { return steps > 50; });
      ASSERT_NE(m_env->trace().ops[0].executed, kSimNever);
    }
    ASSERT_TRUE(m_a->sync().ok());
    EXPECT_EQ(at_end("/a"), (reap_first ? Set{"2..."} : Set{"....", "1..."}));
    worker.reset();
  }
}

TEST_F(CrashImagesTest, WriteReapedAfterTheSyncWasSubmittedIsNotCovered) {
  start(SimProfile::ext4);
  AlignedBuffer data;
  data.append(std::string(4096, '1'));
  IoRequest request;
  request.file = m_a.get();
  request.buffers = {{data.data(), 4096}};
  IoRequest sync;
  sync.op = IoRequest::Op::sync;
  sync.file = m_a.get();
  size_t reaped = 0;
  auto worker = m_env->start_worker("w", 4, [&](IoQueue& io) {
    std::vector<IoRequest*> completed;
    io.reap(&completed);
    reaped += completed.size();
    if (io.in_flight() == 0 && reaped == 0) {
      io.submit(&request);
      io.submit(&sync);
    }
    return NextStep::on_event();
  });
  m_env->run_until_idle();
  ASSERT_EQ(reaped, 2U);
  EXPECT_EQ(at_end("/a"), (Set{"....", "1..."}));
  ASSERT_TRUE(m_a->sync().ok());
  EXPECT_EQ(at_end("/a"), (Set{"1..."}));
}

TEST_F(CrashImagesTest, MarksBeforeTheCutAreKnown) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, '0');
  ASSERT_TRUE(m_a->sync().ok());
  m_env->mark(7, "acknowledged");
  write(m_a.get(), 1, '1');
  CrashImages images(m_env->trace(), {});
  ASSERT_EQ(images.cut_count(), 2U);
  EXPECT_TRUE(images.marks(images.state(0, 0)).empty());
  ASSERT_EQ(images.marks(images.state(1, 0)).size(), 1U);
  EXPECT_EQ(images.marks(images.state(1, 0))[0].id, 7U);
}

TEST_F(CrashImagesTest, CrashInsideRecoveryIsACrashOfTheCrashed) {
  start(SimProfile::weakest);
  write(m_a.get(), 0, '0');
  CrashImages images(m_env->trace(), {.torn = false});
  auto crashed = images.materialize(images.state(0, 1));
  auto file = open(crashed.get(), "/a");
  write(file.get(), 1, '1');
  CrashImages nested(crashed->trace(), {.torn = false});
  EXPECT_EQ(summaries(&nested, 0, "/a"), (Set{"0...", "01.."})) << "what the first crash left is durable";
  file.reset();
}

TEST_F(CrashImagesTest, ManyInDoubtGivePrefixesAndNeighbours) {
  start(SimProfile::weakest);
  ASSERT_TRUE(m_a->write_zeros(0, 20 * 4096).ok());
  ASSERT_TRUE(m_a->sync().ok());
  m_env->restart_trace();
  for (uint64_t block = 0; block < 20; ++block) {
    write(m_a.get(), block, 'x');
  }
  CrashImages images(m_env->trace(), {.samples = 100, .torn = false});
  EXPECT_EQ(images.state_count(0), 21U + 20 + 20 + 190 + 100);
  const Set seen = summaries(&images, 0, "/a");
  const std::string none(20, '.');
  const std::string all(20, 'x');
  for (size_t i = 0; i < 20; ++i) {
    std::string state = none;
    state[i] = 'x';
    EXPECT_TRUE(seen.contains(state)) << "only " << i;
    state = all;
    state[i] = '.';
    EXPECT_TRUE(seen.contains(state)) << "all but " << i;
    for (size_t j = i + 1; j < 20; ++j) {
      std::string pair = state;
      pair[j] = '.';
      EXPECT_TRUE(seen.contains(pair)) << "all but " << i << " and " << j;
    }
    EXPECT_TRUE(seen.contains(std::string(i, 'x') + std::string(20 - i, '.'))) << "prefix " << i;
  }
}

TEST_F(CrashImagesTest, StatesAreTheSameEveryTime) {
  start(SimProfile::ext4);
  for (uint64_t block = 0; block < 15; ++block) {
    write(m_a.get(), block, 'x', 2);
  }
  CrashImages first(m_env->trace(), {});
  CrashImages second(m_env->trace(), {});
  for (CrashState a, b; first.next(&a) && second.next(&b);) {
    ASSERT_EQ(a.to_string(), b.to_string());
  }
  EXPECT_EQ(first.sample(5).to_string(), second.sample(5).to_string());
}

TEST_F(CrashImagesTest, AStateSharesWhatItDoesNotChange) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, 'x');
  CrashImages images(m_env->trace(), {});
  auto crashed = images.materialize(images.state(0, 1));
  const SimImage& before = images.trace().base;
  const SimImage& after = crashed->trace().base;
  const uint64_t a = before.names.at("/a");
  const uint64_t b = before.names.at("/b");
  EXPECT_EQ(after.inodes.at(b), before.inodes.at(b));
  EXPECT_NE(after.inodes.at(a), before.inodes.at(a));
}

// A second crash, of the recovery, has a seed and a time of its own: their sum may be that of the first.
TEST_F(CrashImagesTest, HostsAfterCrashesDrawNumbersOfTheirOwn) {
  start(SimProfile::ext4);
  write(m_a.get(), 0, 'a');
  CrashImages early(m_env->trace(), {.seed = 8}), late(m_env->trace(), {.seed = 7});
  CrashState first, second;
  first.cut = 0;
  second.cut = 1;
  EXPECT_NE(early.materialize(first)->random_u64(), late.materialize(second)->random_u64());
}

}  // namespace
}  // namespace vtkv
