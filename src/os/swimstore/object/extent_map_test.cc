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
  MappedRuns runs;
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
    Unmapped released;
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
        for (const Extent& extent : released.extents) {
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
  Unmapped released;
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
  Unmapped released;
  map.punch(5, 2, &released);
  ASSERT_EQ(released.extents.size(), 1u);
  EXPECT_EQ(released.extents[0].slot, (SlotAddress{4, 9}));
  EXPECT_EQ(released.extents[0].slot_block, 5u);
  EXPECT_EQ(released.extents[0].count, 2);
  EXPECT_EQ(released.extents[0].slot_written_blocks, kShardBlocks);
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

// 16 blocks in 3, of two slots.
CompressedBlob blob_of_a_shard() {
  CompressedBlob blob;
  blob.count = kShardBlocks;
  blob.live = 0xffff;
  blob.algorithm = 1;
  blob.bytes = 10000;
  blob.extents = {{.block = 0, .count = 2, .slot = {1, 7}, .slot_written_blocks = 2},
                  {.block = 2, .count = 1, .slot = {0, 8}, .slot_written_blocks = 1}};
  blob.crc32c = {1, 2, 3};
  return blob;
}

TEST(ExtentMap, ABlobIsKeptAsLongAsABlockLivesInIt) {
  ExtentMap map;
  map.set_all_loaded();
  map.insert_blob(1, blob_of_a_shard());
  const size_t bytes = map.memory_bytes();
  const uint32_t crc = 5;
  Unmapped unmapped;
  map.punch(kShardBlocks + 3, 1, &unmapped);
  map.insert(kShardBlocks + 3, 1, {0, 9}, 0, 1, false, &crc);
  EXPECT_EQ(unmapped.blob_blocks, 1u);
  EXPECT_TRUE(unmapped.blobs.empty());
  MappedRuns runs;
  map.resolve(kShardBlocks + 2, 3, &runs);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].block, kShardBlocks + 2);
  EXPECT_FALSE(runs[1].blob);
  EXPECT_EQ(runs[2].blob, runs[0].blob);

  map.punch(kShardBlocks, kShardBlocks - 1, &unmapped);
  EXPECT_TRUE(unmapped.blobs.empty());
  map.punch(0, 4 * kShardBlocks, &unmapped);
  ASSERT_EQ(unmapped.blobs.size(), 1u);
  EXPECT_EQ(unmapped.blobs[0].extents, blob_of_a_shard().extents);
  EXPECT_EQ(unmapped.blob_blocks, kShardBlocks);
  EXPECT_LT(map.memory_bytes(), bytes);
  EXPECT_EQ(map.take_dirty(), (std::vector<uint32_t>{1}));
}

TEST(ExtentMap, ASharedBlockSharesItsWholeBlob) {
  for (const bool in_part : {false, true}) {  // before
    ExtentMap map;
    map.set_all_loaded();
    CompressedBlob blob = blob_of_a_shard();
    blob.extents[0].shared = in_part;
    map.insert_blob(0, blob);
    (void)map.take_dirty();
    map.share(4, 1);
    EXPECT_EQ(map.take_dirty(), (std::vector<uint32_t>{0}));
    for (const Extent& extent : map.shard(0).blobs.at(0).extents) {
      EXPECT_TRUE(extent.shared);
    }
  }
}

}  // namespace
}  // namespace swimstore
