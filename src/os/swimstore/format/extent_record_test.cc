// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/extent_record.h"

#include <random>

#include <gtest/gtest.h>

namespace swimstore {
namespace {

ExtentShard example() {
  ExtentShard shard;
  shard.extents.push_back({0, 1, false, {0, 300}, 0, 1});
  shard.extents.push_back({4, 2, true, {5, 7}, 16, 32});
  shard.crc32c[0] = 0x04030201;
  shard.crc32c[4] = 0x14131211;
  shard.crc32c[5] = 0x24232221;
  return shard;
}

std::string encoded(const ExtentShard& shard) {
  std::string bytes;
  encode_extent_shard(shard, &bytes);
  return bytes;
}

TEST(ExtentRecord, GoldenBytes) {
  const std::string expected(
      "\x01\x02"                                           // version, two extents
      "\x00\x00\xac\x02"
      "\x01\x02\x03\x04"                // block 0, one; 4K slot 300; crc
      "\x14\x85\x07\x10\x20"                               // blocks 4-5; 128K, shared; slot 7; from 16 of 32
      "\x11\x12\x13\x14"
      "\x21\x22\x23\x24",
      23);
  EXPECT_EQ(encoded(example()), expected);
}

TEST(ExtentRecord, DecodesWhatItEncoded) {
  ExtentShard shard;
  ASSERT_TRUE(decode_extent_shard(encoded(example()), &shard));
  EXPECT_EQ(shard.extents, example().extents);
  EXPECT_EQ(shard.crc32c, example().crc32c);
}

TEST(ExtentRecord, RefusesWhatIsCutOffOrTooLong) {
  const std::string bytes = encoded(example());
  ExtentShard shard;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_extent_shard(bytes.substr(0, length), &shard)) << length;
  }
  EXPECT_FALSE(decode_extent_shard(bytes + "x", &shard));
}

TEST(ExtentRecord, RefusesExtentsThatOverlap) {
  ExtentShard shard = example();
  shard.extents[1].block = 0;
  ExtentShard decoded;
  EXPECT_FALSE(decode_extent_shard(encoded(shard), &decoded));
}

TEST(ExtentRecord, RefusesBlocksPastTheShardOrTheSlot) {
  ExtentShard decoded;
  std::string bytes = encoded(example());
  ASSERT_EQ(bytes[10], 0x14);
  bytes[10] = 0x1f;  // blocks 15 and 16: the encoder is never given such
  EXPECT_FALSE(decode_extent_shard(bytes, &decoded));
  ExtentShard shard = example();
  shard.extents[1].slot_block = 31;  // and 32, of 32 written
  EXPECT_FALSE(decode_extent_shard(encoded(shard), &decoded));
  shard = example();
  shard.extents[1].slot_written_blocks = 33;  // in a slot of 32
  EXPECT_FALSE(decode_extent_shard(encoded(shard), &decoded));
}

// What decodes obeys every rule, whatever the bytes were.
TEST(ExtentRecord, MutatedBytesNeverDecodeToNonsense) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    std::string bytes = encoded(example());
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    ExtentShard shard;
    if (!decode_extent_shard(bytes, &shard)) {
      continue;
    }
    unsigned next = 0;
    for (const Extent& extent : shard.extents) {
      ASSERT_GE(extent.block, next);
      next = extent.block + extent.count;
      ASSERT_LE(next, kShardBlocks);
      ASSERT_LT(extent.slot.size_class, kSizeClasses);
      ASSERT_LE(extent.slot_block + extent.count, extent.slot_written_blocks);
      ASSERT_LE(extent.slot_written_blocks, slot_blocks(extent.slot.size_class));
    }
  }
}

}  // namespace
}  // namespace swimstore
