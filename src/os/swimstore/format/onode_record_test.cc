// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/onode_record.h"

#include <random>

#include <gtest/gtest.h>

namespace swimstore {
namespace {

OnodeRecord example() {
  OnodeRecord record;
  record.nid = 300;
  record.size = 5000;
  record.set(OnodeRecord::has_omap, true);
  record.set(OnodeRecord::has_hints, true);
  record.set(OnodeRecord::shard_inline, true);
  record.expected_object_size = 4 << 20;
  record.expected_write_size = 4096;
  record.alloc_hint_flags = 5;
  record.attrs["_"] = ceph::bufferptr("info", 4);
  record.attrs["snapset"] = ceph::bufferptr("", 0);
  return record;
}

ExtentShard one_extent() {
  ExtentShard shard;
  shard.extents.push_back({0, 2, false, {1, 9}, 0, 2});
  shard.crc32c[0] = 1;
  shard.crc32c[1] = 2;
  return shard;
}

std::string encoded(const OnodeRecord& record) {
  std::string bytes;
  encode_onode(record, one_extent(), &bytes);
  return bytes;
}

TEST(OnodeRecord, GoldenBytes) {
  const std::string expected(
      "\x01\x07\xac\x02\x88\x27"               // version, flags, nid 300, size 5000
      "\x80\x80\x80\x02\x80\x20\x05"           // hints
      "\x02\x01_\x04info\x07snapset\x00"       // two attrs
      "\x01\x01\x10\x01\x09\x00\x02"           // extent record
      "\x01\x00\x00\x00\x02\x00\x00\x00",
      45);
  EXPECT_EQ(encoded(example()), expected);
}

TEST(OnodeRecord, DecodesWhatItEncoded) {
  OnodeRecord record;
  ExtentShard shard;
  ASSERT_TRUE(decode_onode(encoded(example()), &record, &shard));
  EXPECT_EQ(record.nid, 300u);
  EXPECT_EQ(record.size, 5000u);
  EXPECT_EQ(record.flags, example().flags);
  EXPECT_EQ(record.expected_object_size, 4u << 20);
  EXPECT_EQ(record.expected_write_size, 4096u);
  EXPECT_EQ(record.alloc_hint_flags, 5u);
  ASSERT_EQ(record.attrs.size(), 2u);
  EXPECT_EQ(std::string(record.attrs["_"].c_str(), record.attrs["_"].length()), "info");
  EXPECT_EQ(shard.extents, one_extent().extents);
}

TEST(OnodeRecord, RefusesWhatIsCutOffTooLongOrFromTheFuture) {
  const std::string bytes = encoded(example());
  OnodeRecord record;
  ExtentShard shard;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_onode(bytes.substr(0, length), &record, &shard)) << length;
  }
  EXPECT_FALSE(decode_onode(bytes + "x", &record, &shard));
  std::string future = bytes;
  future[0] = 2;
  EXPECT_FALSE(decode_onode(future, &record, &shard));
  std::string flags = bytes;
  flags[1] |= 0x40;
  EXPECT_FALSE(decode_onode(flags, &record, &shard));
}

TEST(OnodeRecord, RefusesIdsAndSizesThatNoObjectHas) {
  for (const auto& [nid, size] : {std::pair<uint64_t, uint64_t>{UINT64_MAX, 5000},
                                  {kObjectIdMax + 1, 5000},
                                  {300, kObjectBytesMax + 1},
                                  {300, UINT64_MAX}}) {
    OnodeRecord record;
    record.nid = nid;
    record.size = size;
    std::string bytes;
    encode_onode(record, ExtentShard(), &bytes);
    ExtentShard shard;
    EXPECT_FALSE(decode_onode(bytes, &record, &shard)) << nid << " " << size;
  }
}

TEST(OnodeRecord, MutatedBytesDecodeOrAreRefused) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 50000; ++i) {
    std::string bytes = encoded(example());
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    OnodeRecord record;
    ExtentShard shard;
    if (decode_onode(bytes, &record, &shard) && record.test(OnodeRecord::shard_inline)) {
      ASSERT_LE(record.size, kShardBytes);
    }
  }
}

}  // namespace
}  // namespace swimstore
