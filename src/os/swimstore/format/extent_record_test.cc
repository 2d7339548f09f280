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

CompressedBlob example_blob() {
  CompressedBlob blob;
  blob.block = 6;
  blob.count = 9;
  blob.live = 0x3b00;
  blob.algorithm = 4;
  blob.bytes = 300;
  blob.extents = {{0, 1, false, {0, 300}, 0, 1}};
  blob.crc32c = {0x04030201};
  return blob;
}

CompressedBlob zlib_blob() {
  CompressedBlob blob = example_blob();
  blob.algorithm = 2;
  blob.message = -15;
  return blob;
}

ExtentShard with_blobs(std::vector<CompressedBlob> blobs) {
  ExtentShard shard = example();
  shard.blobs = std::move(blobs);
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
  check.example("extent shard with a compressed blob", with_blobs({example_blob()}));
  check.derived("version",
                [](const ExtentShard& it) { return PageValue(it.blobs.empty() ? 1 : kExtentRecordVersion); });
  check.derived("number of blobs", [](const ExtentShard& it) { return PageValue(it.blobs.size()); });
  check.part("blobs", vtkv::page_example("compressed blob, as zlib makes one"),
             [](ExtentShard& it) { it.blobs = {zlib_blob()}; });
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
  ExtentShard one_block = with_extent({0, 1, false, {0, 7, 2}, 0, 1});
  one_block.crc32c[0] = 0x14131211;
  check.example("extent of a fragment of one block", one_block);
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

TEST(ExtentRecord, CompressedBlobIsAsOnThePage) {
  const auto behind_extents = [](const ExtentShard& shard) {
    return encoded(shard).substr(2 + encoded(example()).substr(2).size() + 1);
  };
  FormatCheck<ExtentShard> check("Compressed blob", behind_extents, [](const std::string& bytes, ExtentShard* shard) {
    std::string before = encoded(example());
    before[0] = kExtentRecordVersion;
    return decode_extent_shard(before + "\1" + bytes, shard);
  });
  check.example("compressed blob", with_blobs({example_blob()}));
  check.example("compressed blob, as zlib makes one", with_blobs({zlib_blob()}));
  const auto field = [&check](const std::string& row, PageValue other, auto access) {
    check.field(row, std::move(other), [access](ExtentShard& it) -> auto& { return access(it.blobs[0]); });
  };
  field("first block", 5, [](CompressedBlob& it) -> auto& { return it.block; });
  check.field(
      "blocks less 1", 7, [](ExtentShard& it) { return PageValue(it.blobs[0].count - 1); },
      [](ExtentShard& it, const PageValue& value) { it.blobs[0].count = static_cast<uint8_t>(*value.number + 1); });
  field("algorithm", 3, [](CompressedBlob& it) -> auto& { return it.algorithm; });
  check.derived("has a message", [](const ExtentShard& it) { return PageValue(it.blobs[0].message ? 1 : 0); });
  field("live blocks", 0x0200, [](CompressedBlob& it) -> auto& { return it.live; });
  field("compressed bytes", 4000, [](CompressedBlob& it) -> auto& { return it.bytes; });
  check.field(
      "message", 77, [](ExtentShard& it) { return PageValue(static_cast<uint32_t>(it.blobs[0].message.value_or(0))); },
      [](ExtentShard& it, const PageValue& value) { it.blobs[0].message = static_cast<int32_t>(*value.number); });
  check.derived("number of extents", [](const ExtentShard& it) { return PageValue(it.blobs[0].extents.size()); });
  check.part("extents", vtkv::page_example("extent of a fragment of one block"), [](ExtentShard& it) {
    it.blobs[0].extents = {{0, 1, false, {0, 7, 2}, 0, 1}};
    it.blobs[0].crc32c = {0x14131211};
  });
  EXPECT_EQ(check.findings(), "");
}

TEST(ExtentRecord, DecodesWhatItEncoded) {
  for (const ExtentShard& shard : {example(), with_blobs({example_blob()}), with_blobs({zlib_blob()})}) {
    ExtentShard decoded;
    ASSERT_TRUE(decode_extent_shard(encoded(shard), &decoded));
    EXPECT_EQ(decoded, shard);
  }
}

TEST(ExtentRecord, RefusesBlobsThatContradictThemselves) {
  ExtentShard decoded;
  const auto refuses = [&decoded](auto change) {
    CompressedBlob blob = example_blob();
    change(blob);
    return !decode_extent_shard(encoded(with_blobs({blob})), &decoded);
  };
  EXPECT_FALSE(refuses([](CompressedBlob&) {}));
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.live = 0; }));
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.live |= 1 << 3; }));  // before it
  EXPECT_TRUE(refuses([](CompressedBlob& it) {
    it.live = 1 << 5;
    it.block = 5;
  }));  // an extent has that one
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.count = 11; }));  // past the shard
  EXPECT_TRUE(refuses([](CompressedBlob& it) {
    it.block = 8;
    it.count = 1;
    it.live = 1 << 8;
  }));  // saves nothing
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.algorithm = 0; }));
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.bytes = 0; }));
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.bytes = 4097; }));  // there is one stored block
  EXPECT_TRUE(refuses([](CompressedBlob& it) { it.extents[0].block = 1; }));  // a hole
  EXPECT_FALSE(decode_extent_shard(encoded(with_blobs({example_blob(), example_blob()})), &decoded));
}

TEST(ExtentRecord, RefusesWhatIsCutOffOrTooLong) {
  for (const ExtentShard& whole : {example(), with_blobs({zlib_blob()})}) {
    const std::string bytes = encoded(whole);
    ExtentShard shard;
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(decode_extent_shard(bytes.substr(0, length), &shard)) << length;
    }
    EXPECT_FALSE(decode_extent_shard(bytes + "x", &shard));
  }
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
    std::string bytes = encoded(i % 2 == 0 ? example() : with_blobs({zlib_blob()}));
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
    for (const CompressedBlob& blob : shard.blobs) {
      ASSERT_NE(blob.live, 0);
      ASSERT_LT(blob.stored_blocks(), blob.count);
      ASSERT_LE(blob.bytes, blob.stored_blocks() * kBlockBytes);
      ASSERT_EQ(blob.live & ~block_bits(blob.block, blob.block + blob.count), 0);
    }
  }
}

}  // namespace
}  // namespace swimstore
