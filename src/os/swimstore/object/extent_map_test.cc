// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/extent_map.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace swimstore {
namespace {

// Where one block of the object lies; what a map of blocks would hold.
struct Address {
  SlotAddress slot;
  uint32_t slot_block = 0;
  uint32_t crc32c = 0;
  bool shared = false;
  bool operator==(const Address&) const = default;
};
using Model = std::map<uint64_t, Address>;

constexpr uint64_t kBlocks = 5 * kShardBlocks;

Model contents(ExtentMap& map) {
  Model model;
  std::vector<MappedRun> runs;
  map.resolve(0, kBlocks, &runs);
  for (const MappedRun& run : runs) {
    for (uint32_t i = 0; i < run.count; ++i) {
      const uint64_t block = run.block + i;
      const Extent* extent = map.shard(block / kShardBlocks).find(block % kShardBlocks);
      model[block] = {run.slot, run.slot_block + i, run.crc32c.at(i), extent != nullptr && extent->shared};
    }
  }
  return model;
}

// What its shards have allocated is counted; a node of the map is not more than this beside.
void expect_memory_counted(ExtentMap& map) {
  constexpr size_t kNodeBytesMax = 200;
  size_t bytes = 0;
  for (uint64_t number = 0; number < kBlocks / kShardBlocks; ++number) {
    bytes += sizeof(ExtentShard) + map.shard(number).extents.capacity() * sizeof(Extent);
  }
  EXPECT_GE(map.memory_bytes(), bytes);
  EXPECT_LE(map.memory_bytes(), bytes + kBlocks / kShardBlocks * kNodeBytesMax);
}

TEST(ExtentMap, AgreesWithAMapOfBlocks) {
  std::mt19937_64 random(1);
  ExtentMap map;
  map.set_all_loaded();
  Model model;
  uint64_t next_slot = 0;
  for (int step = 0; step < 20000; ++step) {
    const uint64_t first = random() % kBlocks;
    const uint64_t count = 1 + random() % std::min<uint64_t>(kBlocks - first, 40);
    std::vector<Extent> released;
    size_t held = 0;
    switch (random() % 3) {
      case 0:
        map.share(first, count);
        for (uint64_t block = first; block < first + count; ++block) {
          if (const auto found = model.find(block); found != model.end()) {
            found->second.shared = true;
          }
        }
        break;
      default: {
        for (uint64_t block = first; block < first + count; ++block) {
          held += model.erase(block);
        }
        map.punch(first, count, &released);
        size_t blocks = 0;
        for (const Extent& extent : released) {
          blocks += extent.count;
        }
        ASSERT_EQ(blocks, held);
        if (random() % 2 == 0) {
          break;
        }
        const SlotAddress slot{10, next_slot++};
        std::vector<uint32_t> crcs;
        for (uint64_t i = 0; i < count; ++i) {
          crcs.push_back(static_cast<uint32_t>(random()));
          model[first + i] = {slot, static_cast<uint32_t>(3 + i), crcs.back(), false};
        }
        map.insert(first, count, slot, 3, 100, false, crcs.data());
      }
    }
    ASSERT_EQ(contents(map), model) << "step " << step;
    ASSERT_NO_FATAL_FAILURE(expect_memory_counted(map));
  }
  ExtentMap other;
  other.take(&map);
  expect_memory_counted(other);
  EXPECT_EQ(map.memory_bytes(), 0u);
  other.clear();
  EXPECT_EQ(other.memory_bytes(), 0u);
}

TEST(ExtentMap, EveryChangedShardIsDirtyOnce) {
  ExtentMap map;
  map.set_all_loaded();
  const std::vector<uint32_t> crcs(3 * kShardBlocks, 7);
  map.insert(8, 2 * kShardBlocks, {10, 1}, 0, 32, false, crcs.data());
  EXPECT_EQ(map.take_dirty(), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(map.take_dirty().empty());
  std::vector<Extent> released;
  map.punch(kShardBlocks, 1, &released);
  map.punch(kShardBlocks + 1, 1, &released);
  EXPECT_EQ(map.take_dirty(), (std::vector<uint32_t>{1}));
  map.punch(4 * kShardBlocks, 8, &released);  // nothing there
  EXPECT_TRUE(map.take_dirty().empty());
  map.share(0, 9);
  map.share(0, 9);  // the second time nothing changes
  EXPECT_EQ(map.take_dirty(), (std::vector<uint32_t>{0}));
}

TEST(ExtentMap, ReleasedSlicesSayWhereTheyLay) {
  ExtentMap map;
  map.set_all_loaded();
  const std::vector<uint32_t> crcs(kShardBlocks, 7);
  map.insert(0, kShardBlocks, {4, 9}, 0, kShardBlocks, false, crcs.data());
  std::vector<Extent> released;
  map.punch(5, 2, &released);
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].slot, (SlotAddress{4, 9}));
  EXPECT_EQ(released[0].slot_block, 5u);
  EXPECT_EQ(released[0].count, 2);
  EXPECT_EQ(released[0].slot_written_blocks, kShardBlocks);
}

TEST(ExtentMap, TakeMovesEverything) {
  ExtentMap from, to;
  from.set_all_loaded();
  to.set_all_loaded();
  const uint32_t crc = 1;
  from.insert(2, 1, {0, 5}, 0, 1, false, &crc);
  to.take(&from);
  EXPECT_TRUE(contents(from).empty());
  EXPECT_EQ(contents(to).size(), 1u);
  EXPECT_EQ(to.take_dirty(), (std::vector<uint32_t>{0}));
}

}  // namespace
}  // namespace swimstore
