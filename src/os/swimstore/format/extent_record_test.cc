// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/extent_record.h"

#include <random>

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

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

bool decode_shard(const std::string& bytes, ExtentShard* shard) { return decode_extent_shard(bytes, shard); }

TEST(ExtentRecord, ExtentShardIsAsOnThePage) {
  FormatCheck<ExtentShard> check("E: extent shard", encoded, decode_shard);
  check.example("extent shard", example());
  check.constant("version", kExtentRecordVersion);
  check.derived("number of extents", [](const ExtentShard& it) { return PageValue(it.extents.size()); });
  check.part("extents", vtkv::page_example("extent"), [](ExtentShard& it) { it.extents.pop_back(); });
  EXPECT_EQ(check.findings(), "");
  EXPECT_EQ(encoded(example()).substr(2), vtkv::page_example("extent") + vtkv::page_example("extent of a large slot"));
}

// Of a shard that has nothing else.
ExtentShard with_extent(const Extent& extent) {
  ExtentShard shard;
  shard.extents = {extent};
  shard.crc32c = example().crc32c;
  return shard;
}

std::string checksums_of(const ExtentShard& shard) {
  std::string bytes;
  for (unsigned i = 0; i < shard.extents[0].count; ++i) {
    bytes += vtkv::raw_bytes(shard.crc32c[shard.extents[0].block + i]);
  }
  return bytes;
}

TEST(ExtentRecord, ExtentIsAsOnThePage) {
  FormatCheck<ExtentShard> check(
      "Extent", [](const ExtentShard& shard) { return encoded(shard).substr(2); },
      [](const std::string& bytes, ExtentShard* shard) { return decode_extent_shard("\1\1" + bytes, shard); });
  check.example("extent of a fragment", with_extent({4, 2, false, {5, 7, 2}, 16, 32}));
  check.example("extent of a large slot", with_extent({4, 2, true, {5, 7}, 16, 32}));
  check.example("extent", with_extent({0, 1, false, {0, 300}, 0, 1}));
  const auto field = [&check](const std::string& row, PageValue other, auto access) {
    check.field(row, std::move(other), [access](ExtentShard& it) -> auto& { return access(it.extents[0]); });
  };
  field("first block", 9, [](Extent& it) -> auto& { return it.block; });
  check.field(
      "blocks less 1", 4, [](ExtentShard& it) { return PageValue(it.extents[0].count - 1); },
      [](ExtentShard& it, const PageValue& value) { it.extents[0].count = static_cast<uint8_t>(*value.number + 1); });
  field("size class", 6, [](Extent& it) -> auto& { return it.slot.size_class; });
  check.derived("fragment", [](const ExtentShard& it) { return PageValue(it.extents[0].slot.split_levels > 0); });
  field("shared", 1, [](Extent& it) -> auto& { return it.shared; });
  field("levels split", 3, [](Extent& it) -> auto& { return it.slot.split_levels; });
  field("slot index", 0x33445566778899, [](Extent& it) -> auto& { return it.slot.index; });
  field("first block in the slot", 30, [](Extent& it) -> auto& { return it.slot_block; });
  field("blocks written", 31, [](Extent& it) -> auto& { return it.slot_written_blocks; });
  check.derived("checksums", [](const ExtentShard& it) { return PageValue(checksums_of(it)); });
  check.part("checksums", vtkv::raw_bytes(0x11223344) + vtkv::raw_bytes(0x55667788), [](ExtentShard& it) {
    it.crc32c[4] = 0x11223344;
    it.crc32c[5] = 0x55667788;
  });
  EXPECT_EQ(check.findings(), "");
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
