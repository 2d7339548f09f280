// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/zone/zone_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

namespace vtkv {
namespace {

constexpr uint64_t kZone = 16384;

// The host has space for all of the file, but for `holes`.
class OpenedMap : public ZoneMap {
 public:
  explicit OpenedMap(uint64_t zones, const std::vector<FileRange>& holes = {}) : ZoneMap(kZone, zones) {
    set_holes(holes);
  }
};

TEST(ZoneMap, GrowsWhenNothingIsFree) {
  ZoneMap map(kZone, 0);
  bool needs_space = false;
  const ZoneRange first = map.acquire(ZoneStream::flush, 4096, &needs_space);
  EXPECT_TRUE(needs_space);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(first.bytes, kZone);
  const ZoneRange second = map.acquire(ZoneStream::tier, 4096, &needs_space);
  EXPECT_TRUE(needs_space);
  EXPECT_EQ(second.offset, kZone);
  EXPECT_EQ(map.file_bytes(), 2 * kZone);
}

TEST(ZoneMap, AFreeZoneComesBeforeANewOne) {
  OpenedMap map(3);
  map.pin(0, 1);
  map.pin(2 * kZone, 1);
  bool needs_space = true;
  EXPECT_EQ(map.acquire(ZoneStream::flush, 4096, &needs_space).offset, kZone);
  EXPECT_FALSE(needs_space);
}

TEST(ZoneMap, WhetherTheHostHasSpaceIsAskedUntilItIsKnown) {
  ZoneMap map(kZone, 1);
  bool needs_space = false;
  EXPECT_EQ(map.acquire(ZoneStream::flush, kZone, &needs_space).offset, 0u);
  EXPECT_TRUE(needs_space);
  map.unpin(0, kZone);
  map.acquire(ZoneStream::flush, kZone, &needs_space);
  EXPECT_FALSE(needs_space);
}

TEST(ZoneMap, SpaceThatIsThereComesBeforeHolesAndHolesBeforeNewZones) {
  // Holes: zone 0, a part of zone 1, zones 3 and 4.
  OpenedMap map(6, {{0, kZone + 4096}, {3 * kZone, 2 * kZone}});
  bool needs_space = true;
  const auto next = [&] { return map.acquire(ZoneStream::flush, kZone, &needs_space).offset / kZone; };
  EXPECT_EQ(next(), 2u);
  EXPECT_FALSE(needs_space);
  EXPECT_EQ(next(), 5u);
  EXPECT_FALSE(needs_space);
  for (const uint64_t zone : {1, 0, 3, 4, 6}) {
    EXPECT_EQ(next(), zone);
    EXPECT_TRUE(needs_space);
  }
}

TEST(ZoneMap, OfSeveralZonesInARowThoseComeFirstThatLackTheLeast) {
  // Free: 0 to 2, of which 1 is a hole; 4 to 6, of which 5 and 6 are; 8 and 9, and what comes behind.
  OpenedMap map(10, {{kZone, kZone}, {5 * kZone, 2 * kZone}});
  map.pin(3 * kZone, 1);
  map.pin(7 * kZone, 1);
  bool needs_space = true;
  EXPECT_EQ(map.acquire(ZoneStream::flush, 2 * kZone, &needs_space).offset, 8 * kZone);
  EXPECT_FALSE(needs_space);
  EXPECT_EQ(map.acquire(ZoneStream::flush, 3 * kZone, &needs_space).offset, 0u);
  EXPECT_TRUE(needs_space);
  EXPECT_EQ(map.acquire(ZoneStream::flush, 3 * kZone, &needs_space).offset, 4 * kZone);
  EXPECT_EQ(map.acquire(ZoneStream::flush, 2 * kZone, &needs_space).offset, 10 * kZone);
}

TEST(ZoneMap, AZoneIsFreeOnlyWhenItsLastPinIsGone) {
  ZoneMap map(kZone, 1);
  map.pin(0, 4096);
  map.pin(4096, 4096);
  map.unpin(0, 4096);
  bool needs_space = false;
  EXPECT_EQ(map.acquire(ZoneStream::flush, 1, &needs_space).offset, kZone);
  map.unpin(4096, 4096);
  EXPECT_EQ(map.acquire(ZoneStream::tier, 1, &needs_space).offset, 0u);
}

TEST(ZoneMap, TheTailGoesToTheSameStream) {
  ZoneMap map(kZone, 0);
  bool needs_space = false;
  const ZoneRange range = map.acquire(ZoneStream::flush, 4096, &needs_space);
  map.pin(range.offset, 4096);
  map.release(ZoneStream::flush, range, 4096);
  EXPECT_EQ(map.acquire(ZoneStream::tier, 4096, &needs_space).offset, kZone);
  const ZoneRange tail = map.acquire(ZoneStream::flush, 4096, &needs_space);
  EXPECT_EQ(tail.offset, 4096u);
  EXPECT_EQ(tail.bytes, kZone - 4096);
  EXPECT_FALSE(needs_space);
}

TEST(ZoneMap, ATailThatIsTooSmallIsLetGo) {
  ZoneMap map(kZone, 0);
  bool needs_space = false;
  const ZoneRange range = map.acquire(ZoneStream::flush, 4096, &needs_space);
  map.release(ZoneStream::flush, range, kZone - 4096);  // what was written was given up
  EXPECT_EQ(map.acquire(ZoneStream::flush, 2 * 4096, &needs_space).offset, 0u);
  EXPECT_FALSE(needs_space);
}

TEST(ZoneMap, TakesSeveralZonesInARowForALargeBlock) {
  ZoneMap map(kZone, 6);
  map.pin(1 * kZone, 1);
  map.pin(4 * kZone, 1);
  bool needs_space = false;
  const ZoneRange range = map.acquire(ZoneStream::flush, 2 * kZone - 4096, &needs_space);
  EXPECT_EQ(range.offset, 2 * kZone);
  EXPECT_EQ(range.bytes, 2 * kZone);
  const ZoneRange behind = map.acquire(ZoneStream::tier, 3 * kZone, &needs_space);
  EXPECT_TRUE(needs_space);
  EXPECT_EQ(behind.offset, 5 * kZone);
  EXPECT_EQ(map.file_bytes(), 8 * kZone);
}

TEST(ZoneMap, AHoleIsAllocatedOnceItIsTaken) {
  OpenedMap map(6, {{0, kZone + 4096}, {3 * kZone, 2 * kZone}});
  EXPECT_EQ(map.file_bytes(), 6 * kZone);
  EXPECT_EQ(map.allocated_bytes(), 3 * kZone);  // zone 1 has a part
  map.pin(3 * kZone, 1);  // of a run that lies there
  EXPECT_EQ(map.allocated_bytes(), 4 * kZone);
  bool needs_space = false;
  map.acquire(ZoneStream::flush, 7 * kZone, &needs_space);
  EXPECT_EQ(map.allocated_bytes(), 10 * kZone);
}

TEST(ZoneMap, ARefusedRangeAsksForSpaceAgain) {
  ZoneMap map(kZone, 0);
  bool needs_space = false;
  map.cancel(map.acquire(ZoneStream::flush, 4096, &needs_space));
  EXPECT_EQ(map.acquire(ZoneStream::flush, 4096, &needs_space).offset, 0u);
  EXPECT_TRUE(needs_space);
}

TEST(ZoneMap, SurplusIsGivenBackOnceAndAskedForAgain) {
  OpenedMap map(100);
  map.set_step_bytes(8 * kZone);
  map.pin(0, 8 * kZone);
  const auto surplus = map.take_surplus();
  EXPECT_EQ(surplus.size(), 100u - 8 - 8);
  bool needs_space = false;
  std::set<uint64_t> taken;
  for (const ZoneRange& range : surplus) {
    EXPECT_GE(range.offset, 8 * kZone);
    EXPECT_TRUE(taken.insert(range.offset).second);
    map.end_give_back(range, true);
  }
  EXPECT_TRUE(map.take_surplus().empty());
  for (int i = 0; i < 8; ++i) {
    map.acquire(ZoneStream::flush, kZone, &needs_space);
    EXPECT_FALSE(needs_space);
  }
  map.acquire(ZoneStream::flush, kZone, &needs_space);
  EXPECT_TRUE(needs_space);
}

TEST(ZoneMap, SpaceThatTheHostKeptIsGivenBackAgain) {
  OpenedMap map(8);
  const auto kept = map.take_surplus(true);
  EXPECT_EQ(kept.size(), 8u);
  for (const ZoneRange& range : kept) {
    map.end_give_back(range, range.offset == 0);
  }
  EXPECT_EQ(map.allocated_bytes(), 7 * kZone);
  EXPECT_EQ(map.take_surplus(true).size(), 7u);
}

// A compaction that fails gives its blocks up.
TEST(ZoneMap, WithAllFreeZonesGoTheTailsThatLieAlone) {
  ZoneMap map(kZone, 0);
  bool needs_space = false;
  for (const ZoneStream stream : {ZoneStream::flush, ZoneStream::tier}) {
    const ZoneRange range = map.acquire(stream, 4096, &needs_space);
    map.pin(range.offset, 4096);
    map.release(stream, range, 4096);
  }
  map.unpin(0, 4096);
  EXPECT_TRUE(map.take_surplus().empty());
  const auto surplus = map.take_surplus(true);
  ASSERT_EQ(surplus.size(), 1u);
  EXPECT_EQ(surplus[0].offset, 0u);
  EXPECT_EQ(map.acquire(ZoneStream::tier, 4096, &needs_space).offset, kZone + 4096);
}

TEST(ZoneMap, NoMoreStaysThanOneStepOfACompactionTakesAndTwoZones) {
  static constexpr uint64_t kLarge = 8 << 20;
  for (const auto& [pinned, most] : {std::pair<uint64_t, size_t>{0, 2}, {1, 3}, {4, 4}, {1024, 4}}) {
    const auto make = [pinned = pinned](uint64_t spare) {
      auto map = std::make_unique<ZoneMap>(kLarge, pinned + spare);
      map->set_holes({});
      map->pin(0, pinned * kLarge);
      map->set_step_bytes(2 * kLarge);
      return map;
    };
    EXPECT_TRUE(make(most)->take_surplus().empty()) << pinned;
    const auto map = make(most + 1);
    const auto surplus = map->take_surplus();
    EXPECT_EQ(surplus.size(), 3u) << pinned;  // not one at a time
    for (const ZoneRange& range : surplus) {
      EXPECT_GE(range.offset, (pinned + most - 2) * kLarge);
    }
    EXPECT_EQ(map->take_surplus(true).size(), most - 2) << pinned;
  }
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
    bool needs_space = false;
    if (all.size() < 30 && random() % 2) {
      const auto stream = static_cast<ZoneStream>(random() % kZoneStreams);
      const ZoneRange range = map.acquire(stream, 4096 * (1 + random() % 6), &needs_space);
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
