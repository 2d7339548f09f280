// SPDX-License-Identifier: LGPL-2.1-or-later
// How much memory a check of a store at rest takes.

#include "swimstore/fsck/check_at_rest.h"

#include "swimstore/fsck/check_memory.h"
#include "swimstore/testing/damage_fixture.h"

namespace swimstore {

namespace {

class CheckAtRestTest : public DamageFixture {
 protected:
  CheckResult result_with(uint64_t memory) {
    set_memory(std::to_string(memory).c_str());
    EXPECT_EQ(Kinds(), check(true));
    return m_result;
  }
};

}  // namespace

TEST(CheckMemoryTest, PassesAreAsManyAsTheLimitAsksFor) {
  const CheckMemory memory{.bytes = 240'000};
  EXPECT_EQ(1u, CheckMemory().passes_for(1));
  EXPECT_EQ(1u, memory.passes_for(270'000));
  EXPECT_EQ(2u, memory.passes_for(269'999));  // an eighth more than they take on average
  for (const uint64_t passes : {1, 2, 3, 7, 64}) {
    EXPECT_EQ(passes, memory.passes_for(memory.limit_for(passes)));
  }
}

TEST(CheckMemoryTest, PassesGrowUpToTheMost) {
  EXPECT_EQ(2u, more_passes(1));
  EXPECT_EQ(kFsckPassesMax, more_passes(kFsckPassesMax - 1));
  EXPECT_EQ(kFsckPassesMax, more_passes(kFsckPassesMax));
}

TEST_P(CheckAtRestTest, KeepsWithinItsMemory) {
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    for (unsigned number = 0; number < 500; ++number) {
      auto data = bytes(4096, 'o');
      txn.write(kPg, named("object " + std::to_string(number)), 0, 4096, data);
    }
    store.queue_transaction(pg, std::move(txn));
  });
  const CheckResult at_once = result_with(0);
  EXPECT_EQ(1u, at_once.passes);
  const CheckResult limited = result_with(at_once.memory_bytes / 4);
  EXPECT_LT(3u, limited.passes);
  EXPECT_GE(at_once.memory_bytes / 4, limited.memory_bytes);
  EXPECT_EQ(kFsckPassesMax, result_with(1).passes);  // not enough, and it goes on
}

// The fragments of a split slot take far more than a slot that is none. What the first round frees, the second writes
// to.
TEST_P(CheckAtRestTest, BeginsAnewWhereItTakesMoreThanWasEstimated) {
  for (const bool fills : {true, false, false}) {
    mounted([fills](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      auto all = bytes(1 << 20, 'p');
      auto block = bytes(4096, 'o');
      for (const std::string name : {"a", "b", "c", "d"}) {
        Transaction txn;
        for (uint64_t number = 1; !fills && number < 256; number += 2) {
          txn.write(kPg, named(name), number * 4096, 4096, block);
        }
        if (fills) {
          txn.write(kPg, named(name), 0, 1 << 20, all);
        }
        store.queue_transaction(pg, std::move(txn));
      }
    });
  }
  uint64_t limit = 0;
  damage([&](Cube& cube, Damage&) { limit = memory_of_check(cube).limit_for(1); });
  const CheckResult at_once = result_with(0);
  ASSERT_LT(limit, at_once.memory_bytes);  // else this shows nothing
  const CheckResult limited = result_with(limit);
  EXPECT_LT(1u, limited.passes);
  EXPECT_GT(at_once.memory_bytes, limited.memory_bytes);
}

INSTANTIATE_TEST_SUITE_P(, CheckAtRestTest, ::testing::Values(Host::simulated),
                         [](const auto&) { return std::string("Simulated"); });

}  // namespace swimstore
