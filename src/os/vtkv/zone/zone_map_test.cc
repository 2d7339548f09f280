#include "vtkv/zone/zone_map.h"

#include <gtest/gtest.h>

#include <random>

namespace vtkv {
namespace {

constexpr uint64_t kZone = 16384;

TEST(ZoneMap, GrowsWhenNothingIsFree) {
  ZoneMap map(kZone, 0);
  bool grown = false;
  const ZoneRange first = map.acquire(ZoneStream::flush, 4096, &grown);
  EXPECT_TRUE(grown);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(first.bytes, kZone);
  const ZoneRange second = map.acquire(ZoneStream::merge, 4096, &grown);
  EXPECT_TRUE(grown);
  EXPECT_EQ(second.offset, kZone);
  EXPECT_EQ(map.file_bytes(), 2 * kZone);
}

TEST(ZoneMap, AFreeZoneComesBeforeANewOne) {
  ZoneMap map(kZone, 3);
  map.pin(0, 1);
  map.pin(2 * kZone, 1);
  bool grown = true;
  EXPECT_EQ(map.acquire(ZoneStream::flush, 4096, &grown).offset, kZone);
  EXPECT_FALSE(grown);
}

TEST(ZoneMap, AZoneIsFreeOnlyWhenItsLastPinIsGone) {
  ZoneMap map(kZone, 1);
  map.pin(0, 4096);
  map.pin(4096, 4096);
  map.unpin(0, 4096);
  bool grown = false;
  EXPECT_EQ(map.acquire(ZoneStream::flush, 1, &grown).offset, kZone);
  map.unpin(4096, 4096);
  EXPECT_EQ(map.acquire(ZoneStream::merge, 1, &grown).offset, 0u);
}

TEST(ZoneMap, TheTailGoesToTheSameStream) {
  ZoneMap map(kZone, 0);
  bool grown = false;
  const ZoneRange range = map.acquire(ZoneStream::flush, 4096, &grown);
  map.pin(range.offset, 4096);
  map.release(ZoneStream::flush, range, 4096);
  EXPECT_EQ(map.acquire(ZoneStream::merge, 4096, &grown).offset, kZone);
  const ZoneRange tail = map.acquire(ZoneStream::flush, 4096, &grown);
  EXPECT_EQ(tail.offset, 4096u);
  EXPECT_EQ(tail.bytes, kZone - 4096);
  EXPECT_FALSE(grown);
}

TEST(ZoneMap, ATailThatIsTooSmallIsLetGo) {
  ZoneMap map(kZone, 0);
  bool grown = false;
  const ZoneRange range = map.acquire(ZoneStream::flush, 4096, &grown);
  map.release(ZoneStream::flush, range, kZone - 4096);  // what was written was given up
  EXPECT_EQ(map.acquire(ZoneStream::flush, 2 * 4096, &grown).offset, 0u);
  EXPECT_FALSE(grown);
}

TEST(ZoneMap, TakesSeveralZonesInARowForALargeBlock) {
  ZoneMap map(kZone, 6);
  map.pin(1 * kZone, 1);
  map.pin(4 * kZone, 1);
  bool grown = false;
  const ZoneRange range = map.acquire(ZoneStream::flush, 2 * kZone - 4096, &grown);
  EXPECT_EQ(range.offset, 2 * kZone);
  EXPECT_EQ(range.bytes, 2 * kZone);
  const ZoneRange behind = map.acquire(ZoneStream::merge, 3 * kZone, &grown);
  EXPECT_TRUE(grown);
  EXPECT_EQ(behind.offset, 5 * kZone);
  EXPECT_EQ(map.file_bytes(), 8 * kZone);
}

// Whatever the order of requests, no byte has two owners.
TEST(ZoneMap, NoByteIsHandedOutTwice) {
  std::mt19937_64 random(5);
  ZoneMap map(kZone, 0);
  struct Owned {
    ZoneStream stream;
    ZoneRange range;
    bool writing;
  };
  std::vector<Owned> all;
  for (int step = 0; step < 20000; ++step) {
    bool grown = false;
    if (all.size() < 30 && random() % 2) {
      const auto stream = static_cast<ZoneStream>(random() % kZoneStreams);
      const ZoneRange range = map.acquire(stream, 4096 * (1 + random() % 6), &grown);
      for (const Owned& other : all) {
        ASSERT_TRUE(range.offset + range.bytes <= other.range.offset ||
                    other.range.offset + other.range.bytes <= range.offset);
      }
      all.push_back({stream, range, true});
    } else if (!all.empty()) {
      const size_t i = random() % all.size();
      Owned& owned = all[i];
      if (owned.writing) {
        const uint64_t written = 4096 * (1 + random() % (owned.range.bytes / 4096));
        map.pin(owned.range.offset, written);
        map.release(owned.stream, owned.range, written);
        owned.range.bytes = written;
        owned.writing = false;
      } else {
        map.unpin(owned.range.offset, owned.range.bytes);
        all.erase(all.begin() + i);
      }
    }
  }
}

}  // namespace
}  // namespace vtkv
