// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/note_record.h"

#include <gtest/gtest.h>

#include <random>

namespace swimstore {
namespace {

CubeDelta example() {
  CubeDelta delta;
  delta.allocation.allocated = {SlotBlocks::all({0, 5}), SlotBlocks::all({0, 6, 10}), SlotBlocks::all({10, 1}, 1000)};
  delta.allocation.freed = {{{3, 300}, 2, 5, 8}, SlotBlocks::all({1, 299, 3})};
  delta.pools[-2] = {4096, -100, 7, 1};
  delta.next_object_id = 130;
  return delta;
}

TEST(NoteRecord, GoldenBytes) {
  const std::string expected(
      "\x02"                      // version
      "\x82\x01"                  // next object id 130
      "\x03"                      // three allocated:
      "\x00\x0a"                  //   4K, +5
      "\xa0\x02"                  //   4K of a slot of 4M, +1
      "\x0a\x09\xd0\x0f"          //   4M, -5, 1000 blocks written
      "\x02"                      // two freed:
      "\x03\xd8\x04"              //   32K, +300,
      "\x11\x02\x05"              //     8 blocks written, of which from 2 on 5
      "\x31\x01\x04"              //   8K of a slot of 64K, -1, 2 blocks written
      "\x01"                      // one pool:
      "\x03"                      //   -2
      "\x80\x40"                  //   allocated 4096
      "\xc7\x01"                  //   stored -100
      "\x0e"                      //   omap 7
      "\x02",                     //   objects 1
      30);
  EXPECT_EQ(example().encode(), expected);
}

TEST(NoteRecord, DecodesWhatItEncoded) {
  CubeDelta delta;
  ASSERT_TRUE(CubeDelta::decode(example().encode(), &delta).ok());
  EXPECT_EQ(delta.allocation.allocated, example().allocation.allocated);
  EXPECT_EQ(delta.allocation.freed, example().allocation.freed);
  EXPECT_EQ(delta.pools, example().pools);
  EXPECT_EQ(delta.next_object_id, 130u);
}

TEST(NoteRecord, RefusesEveryTruncation) {
  const std::string bytes = example().encode();
  for (size_t length = 0; length < bytes.size(); length++) {
    CubeDelta delta;
    EXPECT_FALSE(CubeDelta::decode(std::string_view(bytes).substr(0, length), &delta).ok()) << length;
  }
}

TEST(NoteRecord, RefusesObjectIdsThatNobodyReaches) {
  CubeDelta delta;
  EXPECT_TRUE(CubeDelta::decode(CubeDelta{.next_object_id = kObjectIdMax}.encode(), &delta).ok());
  EXPECT_TRUE(CubeDelta::decode(CubeDelta{.next_object_id = UINT64_MAX}.encode(), &delta).is_corruption());
}

TEST(NoteRecord, NamesTheVersionsItDoesNotRead) {
  for (const char version : {1, 9}) {
    std::string bytes = example().encode();
    bytes[0] = version;
    CubeDelta delta;
    EXPECT_EQ(CubeDelta::decode(bytes, &delta).code(), vtkv::Status::Code::unsupported);
  }
}

TEST(NoteRecord, SurvivesAnyBytes) {
  std::mt19937_64 random(7);
  const std::string bytes = example().encode();
  for (int i = 0; i < 20000; i++) {
    std::string damaged = bytes;
    for (uint64_t n = 1 + random() % 3; n > 0; n--) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    CubeDelta delta;
    if (CubeDelta::decode(damaged, &delta).ok()) {
      for (const auto* list : {&delta.allocation.allocated, &delta.allocation.freed}) {
        for (const SlotBlocks& blocks : *list) {
          ASSERT_TRUE(blocks.is_valid());
        }
      }
    }
  }
}

}  // namespace
}  // namespace swimstore
