#include "swimstore/format/note_record.h"

#include <gtest/gtest.h>

#include <random>

namespace swimstore {
namespace {

CubeDelta example() {
  CubeDelta delta;
  delta.allocation.allocated = {{0, 5}, {0, 6}, {10, 1}};
  delta.allocation.freed = {{3, 300}};
  delta.pools[-2] = {4096, -100, 7, 1};
  delta.next_object_id = 130;
  return delta;
}

TEST(NoteRecord, GoldenBytes) {
  const std::string expected(
      "\x01"                      // version
      "\x82\x01"                  // next object id 130
      "\x03"                      // three allocated:
      "\x00\x0a"                  //   4K, +5
      "\x00\x02"                  //   4K, +1
      "\x0a\x09"                  //   4M, -5
      "\x01"                      // one freed:
      "\x03\xd8\x04"              //   32K, +300
      "\x01"                      // one pool:
      "\x03"                      //   -2
      "\x80\x40"                  //   allocated 4096
      "\xc7\x01"                  //   stored -100
      "\x0e"                      //   omap 7
      "\x02",                     //   objects 1
      22);
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

TEST(NoteRecord, NamesTheVersionFromTheFuture) {
  std::string bytes = example().encode();
  bytes[0] = 9;
  CubeDelta delta;
  EXPECT_EQ(CubeDelta::decode(bytes, &delta).code(), vtkv::Status::Code::unsupported);
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
      for (const SlotAddress& slot : delta.allocation.allocated) {
        ASSERT_LT(slot.size_class, kSizeClasses);
      }
    }
  }
}

}  // namespace
}  // namespace swimstore
