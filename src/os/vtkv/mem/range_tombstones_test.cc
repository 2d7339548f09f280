// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/range_tombstones.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <utility>

namespace vtkv {
namespace {

TEST(RangeTombstones, EmptyCoversNothing) {
  RangeTombstones tombstones;
  EXPECT_TRUE(tombstones.empty());
  EXPECT_EQ(tombstones.covering("a", 100), 0u);
  EXPECT_EQ(tombstones.covered_until("a", 100, 0), "");
  EXPECT_FALSE(tombstones.covered_from("a", 100, 0));
  EXPECT_FALSE(tombstones.overlaps("", ""));
}

TEST(RangeTombstones, AnEmptyOrReversedRangeIsNothing) {
  RangeTombstones tombstones;
  tombstones.add(1, "b", "b");
  tombstones.add(2, "c", "b");
  EXPECT_TRUE(tombstones.empty());
}

TEST(RangeTombstones, CoversFromBeginUpToButNotEnd) {
  RangeTombstones tombstones;
  tombstones.add(5, "b", "d");
  EXPECT_EQ(tombstones.covering("a", 9), 0u);
  EXPECT_EQ(tombstones.covering("b", 9), 5u);
  EXPECT_EQ(tombstones.covering("czz", 9), 5u);
  EXPECT_EQ(tombstones.covering("d", 9), 0u);
}

TEST(RangeTombstones, AReaderOfThePastDoesNotSeeALaterTombstone) {
  RangeTombstones tombstones;
  tombstones.add(5, "b", "d");
  tombstones.add(9, "b", "d");
  EXPECT_EQ(tombstones.covering("c", 4), 0u);
  EXPECT_EQ(tombstones.covering("c", 5), 5u);
  EXPECT_EQ(tombstones.covering("c", 8), 5u);
  EXPECT_EQ(tombstones.covering("c", 9), 9u);
}

TEST(RangeTombstones, JumpsOverNeighbouringFragments) {
  RangeTombstones tombstones;
  tombstones.add(2, "f", "h");
  tombstones.add(5, "b", "d");
  tombstones.add(6, "d", "f");
  EXPECT_EQ(tombstones.covered_until("c", 9, 3), "f");
  EXPECT_EQ(tombstones.covered_until("c", 9, 1), "h");
  EXPECT_EQ(tombstones.covered_until("c", 5, 1), "d");
  EXPECT_EQ(tombstones.covered_from("e", 9, 3), "b");
  EXPECT_EQ(tombstones.covered_from("e", 9, 5), "d");
}

TEST(RangeTombstones, OverlapsKnowsTheGaps) {
  RangeTombstones tombstones;
  tombstones.add(5, "b", "d");
  tombstones.add(6, "m", "p");
  EXPECT_FALSE(tombstones.overlaps("a", "b"));
  EXPECT_TRUE(tombstones.overlaps("a", "c"));
  EXPECT_TRUE(tombstones.overlaps("c", "c1"));
  EXPECT_FALSE(tombstones.overlaps("d", "m"));
  EXPECT_TRUE(tombstones.overlaps("d", ""));
  EXPECT_FALSE(tombstones.overlaps("p", ""));
}

// The plain definition, over a list of tombstones, is the model.
struct Model {
  struct Tombstone {
    SequenceNumber sequence;
    std::string begin, end;
  };
  std::vector<Tombstone> tombstones;

  SequenceNumber covering(std::string_view key, SequenceNumber at_most, SequenceNumber newer_than = 0) const {
    SequenceNumber newest = 0;
    for (const Tombstone& tombstone : tombstones) {
      if (tombstone.begin <= key && key < tombstone.end && tombstone.sequence <= at_most &&
          tombstone.sequence > newer_than) {
        newest = std::max(newest, tombstone.sequence);
      }
    }
    return newest;
  }
};

void expect_equal(const RangeTombstones& tombstones, const Model& model, SequenceNumber at_most,
                  SequenceNumber newer_than) {
  for (char c = 'a'; c <= 'v'; ++c) {
    const std::string probe(1, c);
    const SequenceNumber expected = model.covering(probe, at_most);
    ASSERT_EQ(tombstones.covering(probe, at_most), expected) << probe << " at " << at_most;
    const std::string until = tombstones.covered_until(probe, at_most, newer_than);
    const auto from = tombstones.covered_from(probe, at_most, newer_than);
    ASSERT_EQ(!until.empty(), expected > newer_than);
    ASSERT_EQ(from.has_value(), expected > newer_than);
    for (char other = 'a'; other <= 'v'; ++other) {
      const std::string inside(1, other);
      if ((from && *from <= inside && inside <= probe) || (probe <= inside && inside < until)) {
        ASSERT_GT(model.covering(inside, at_most), newer_than);
      }
    }
    const std::string end(1, static_cast<char>(c + 1));
    ASSERT_EQ(tombstones.overlaps(probe, end), model.covering(probe, UINT64_MAX) > 0);
    const std::string last(1, std::min<char>(c + 2, 'w'));
    bool hides = false;
    for (char other = c; other <= last[0]; ++other) {
      hides = hides || model.covering(std::string(1, other), UINT64_MAX, newer_than) > 0;
    }
    ASSERT_EQ(tombstones.hides_any(probe, last, newer_than), hides) << probe << " above " << newer_than;
  }
}

TEST(RangeTombstones, AgreesWithAListOfTombstones) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    RangeTombstones tombstones;
    Model model;
    const auto key = [&] { return std::string(1, static_cast<char>('a' + random() % 20)); };
    SequenceNumber sequence = 0;
    for (int i = 0; i < 300; ++i) {
      sequence += random() % 3 > 0;
      Model::Tombstone tombstone{1 + sequence, key(), key()};
      tombstones.add(tombstone.sequence, tombstone.begin, tombstone.end);
      model.tombstones.push_back(tombstone);
      ASSERT_NO_FATAL_FAILURE(expect_equal(tombstones, model, random() % (sequence + 3), random() % (sequence + 3)))
          << "seed " << seed << " step " << i;
    }
  }
}

TEST(RangeTombstones, OfAListInAnyOrderIsTheSame) {
  std::mt19937_64 random(3);
  Model model;
  const auto key = [&] { return std::string(1, static_cast<char>('a' + random() % 20)); };
  std::vector<RangeTombstone> list;
  for (int i = 0; i < 200; ++i) {
    model.tombstones.push_back({1 + random() % 100, key(), key()});
  }
  for (const auto& tombstone : model.tombstones) {
    list.push_back({tombstone.begin, tombstone.end, tombstone.sequence});
  }
  const RangeTombstones tombstones(list);
  for (SequenceNumber at_most = 0; at_most < 103; ++at_most) {
    ASSERT_NO_FATAL_FAILURE(expect_equal(tombstones, model, at_most, random() % 100));
  }
}

// Several levels of nodes, with leaves of which some are not full.
TEST(RangeTombstones, OfALongListTheNewestIsFound) {
  std::mt19937_64 random(5);
  constexpr size_t kTombstones = 70'000, kKeys = 500;
  const auto key = [](size_t number) { return std::to_string(1000 + number); };
  std::vector<std::string> keys;
  for (size_t i = 0; i <= kKeys; ++i) {
    keys.push_back(key(i));
  }
  std::vector<RangeTombstone> list;
  for (size_t i = 0; i < kTombstones; ++i) {
    const size_t begin = random() % kKeys;
    list.push_back({keys[begin], keys[begin + 1], i + 1});
  }
  const RangeTombstones tombstones(list);
  EXPECT_EQ(tombstones.count(), kTombstones);
  SequenceNumber last = 0;
  size_t visited = 0;
  tombstones.for_each([&](const RangeTombstone& tombstone) {
    EXPECT_EQ(tombstone.sequence, std::exchange(last, tombstone.sequence) + 1);
    ++visited;
  });
  EXPECT_EQ(visited, kTombstones);
  for (int i = 0; i < 2000; ++i) {
    const size_t number = random() % kKeys, at_most = random() % (kTombstones + 10);
    SequenceNumber expected = 0;
    for (size_t at = std::min(at_most, kTombstones); at-- > 0 && expected == 0;) {
      expected = list[at].begin == keys[number] ? list[at].sequence : 0;
    }
    ASSERT_EQ(tombstones.covering(keys[number], at_most), expected);
  }
}

// Whatever snapshots cut the sequences into, on a built tree as on one that grew.
TEST(RangeTombstones, OfALongListEveryStripeIsAsOfOneThatGrew) {
  std::mt19937_64 random(11);
  std::vector<std::string> keys;
  for (size_t i = 0; i <= 300; ++i) {
    keys.push_back(std::to_string(1000 + i));
  }
  std::vector<RangeTombstone> list;
  RangeTombstones grown;
  for (size_t i = 0; i < 20'000; ++i) {
    const size_t begin = random() % 295;
    list.push_back({keys[begin], keys[begin + 1 + random() % 5], 1 + i / 2});
    grown.add(list.back().sequence, list.back().begin, list.back().end);
  }
  const RangeTombstones built(list);
  for (int round = 0; round < 5; ++round) {
    std::vector<SequenceNumber> snapshots(3);
    std::generate(snapshots.begin(), snapshots.end(), [&] { return random() % 10'100; });
    std::sort(snapshots.begin(), snapshots.end());
    const auto visited = [&](const RangeTombstones& tombstones) {
      std::map<std::pair<std::string, std::string>, std::vector<SequenceNumber>> found;
      tombstones.for_each_newest(snapshots, [&](auto begin, auto end, const auto& sequences) {
        found[{std::string(begin), std::string(end)}] = sequences;
      });
      return found;
    };
    EXPECT_EQ(visited(built), visited(grown));
  }
}

// As of many objects that were removed.
TEST(RangeTombstones, ThoseOfARunTakeLittleMemoryEach) {
  constexpr size_t kTombstones = 100'000;
  std::vector<std::string> keys;
  for (size_t i = 0; i < 2 * kTombstones; ++i) {
    keys.push_back(std::to_string(1'000'000 + i));
  }
  std::vector<RangeTombstone> list;
  for (size_t i = 0; i < kTombstones; ++i) {
    list.push_back({keys[2 * i], keys[2 * i + 1], i + 1});
  }
  const RangeTombstones tombstones(std::move(list));
  EXPECT_LT(tombstones.memory_bytes(), kTombstones * 200);
}

TEST(RangeTombstones, OfEveryStripeTheNewestIsVisited) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    RangeTombstones tombstones;
    Model model;
    const auto key = [&] { return std::string(1, static_cast<char>('a' + random() % 20)); };
    for (SequenceNumber sequence = 1; sequence <= 100; ++sequence) {
      model.tombstones.push_back({sequence, key(), key()});
      tombstones.add(sequence, model.tombstones.back().begin, model.tombstones.back().end);
    }
    std::vector<SequenceNumber> snapshots;
    for (SequenceNumber s = random() % 50; s < 110 && seed > 3; s += 1 + random() % 50) {
      snapshots.push_back(s);
    }
    std::string last_end;
    std::map<std::string, std::vector<SequenceNumber>> found;
    tombstones.for_each_newest(
        snapshots, [&](std::string_view begin, std::string_view end, const std::vector<SequenceNumber>& sequences) {
          ASSERT_LE(last_end, begin);
          ASSERT_LT(begin, end);
          last_end = end;
          for (char c = begin[0]; c < end[0]; ++c) {
            found[std::string(1, c)] = sequences;
          }
        });
    for (char c = 'a'; c < 'v'; ++c) {
      std::vector<SequenceNumber> expected;
      for (size_t i = snapshots.size() + 1; i-- > 0;) {
        const SequenceNumber newest = model.covering(
            std::string(1, c), i == snapshots.size() ? UINT64_MAX : snapshots[i], i == 0 ? 0 : snapshots[i - 1]);
        if (newest > 0) {
          expected.push_back(newest);
        }
      }
      ASSERT_EQ(found[std::string(1, c)], expected) << "seed " << seed << " key " << c;
    }
  }
}

// Ranges that grow over one another, as a log that is trimmed makes them: their number alone may count.
TEST(RangeTombstones, GrowingRangesTakeMemoryForEachTombstoneOnly) {
  RangeTombstones tombstones;
  constexpr int kTombstones = 20000;
  char end[8];
  for (int i = 1; i <= kTombstones; ++i) {
    std::snprintf(end, sizeof end, "%07d", i);
    tombstones.add(i, "0", end);
  }
  EXPECT_LT(tombstones.memory_bytes(), kTombstones * 140u);
  EXPECT_EQ(tombstones.covering("0000000", kTombstones), kTombstones);
  EXPECT_EQ(tombstones.covering("0000000", 17), 17u);
  EXPECT_EQ(tombstones.covering("0000016", 17), 17u);
  EXPECT_EQ(tombstones.covering("0000017", 17), 0u);
  size_t fragments = 0;
  tombstones.for_each_newest({}, [&](auto, auto, const auto&) { ++fragments; });
  EXPECT_EQ(fragments, 1u);
}

TEST(RangeTombstones, ReadersSeeWhatWasThereWhileOthersAreAdded) {
  RangeTombstones tombstones;
  tombstones.add(1, "b", "d");
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        ASSERT_EQ(tombstones.covering("c", 1), 1u);
        const SequenceNumber newest = tombstones.covering("c", UINT64_MAX);
        ASSERT_GE(tombstones.covering("c", UINT64_MAX), newest);
        ASSERT_EQ(tombstones.covering("c", newest), newest);
        ASSERT_NE(tombstones.covered_until("c", 1, 0), "");
      }
    });
  }
  for (SequenceNumber s = 2; s <= 3000; ++s) {
    tombstones.add(s, s % 2 ? "a" : "bb", s % 3 ? "e" : "cc");
  }
  stop = true;
  for (auto& reader : readers) {
    reader.join();
  }
}

}  // namespace
}  // namespace vtkv
