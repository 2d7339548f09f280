// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/read_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace vtkv {
namespace {

using Kind = ReadCache::Kind;

class Bytes final : public Cached {
 public:
  explicit Bytes(size_t bytes) : m_bytes(bytes) {}
  size_t memory_bytes() const override { return m_bytes; }

 private:
  const size_t m_bytes;
};

std::shared_ptr<const Cached> item(size_t bytes) { return std::make_shared<const Bytes>(bytes); }

TEST(ReadCache, FindsWhatWasInserted) {
  ReadCache cache(1 << 20);
  const auto cached = item(100);
  EXPECT_EQ(cache.find({Kind::block, 1, 2}), nullptr);
  cache.insert({Kind::block, 1, 2}, cached);
  EXPECT_EQ(cache.find({Kind::block, 1, 2}), cached);
  EXPECT_EQ(cache.find({Kind::block, 2, 2}), nullptr);
  EXPECT_EQ(cache.find({Kind::block, 1, 3}), nullptr);
  EXPECT_EQ(cache.find({Kind::value, 1, 2}), nullptr);
  EXPECT_EQ(cache.hits(Kind::block), 1u);
  EXPECT_EQ(cache.misses(Kind::block), 3u);
  EXPECT_EQ(cache.misses(Kind::value), 1u);
}

TEST(ReadCache, StaysBelowItsCapacity) {
  ReadCache cache(1 << 20);
  for (uint64_t i = 0; i < 5000; ++i) {
    cache.insert({i % 2 ? Kind::block : Kind::value, i, i}, item(1000));
    ASSERT_LE(cache.bytes(), 1u << 20);
  }
  EXPECT_GT(cache.bytes(), 1u << 19);
}

TEST(ReadCache, ShrinksAtOnceAndGrowsAgain) {
  ReadCache cache(1 << 20);
  for (uint64_t i = 0; i < 500; ++i) {
    cache.insert({Kind::block, i, 0}, item(1000));
  }
  cache.resize(64 << 10);
  EXPECT_LE(cache.bytes(), 64u << 10);
  cache.resize(0);
  EXPECT_EQ(cache.bytes(), 0u);
  cache.insert({Kind::block, 1, 0}, item(10));
  EXPECT_EQ(cache.find({Kind::block, 1, 0}), nullptr);
  cache.resize(1 << 20);
  cache.insert({Kind::block, 1, 0}, item(10));
  EXPECT_NE(cache.find({Kind::block, 1, 0}), nullptr);
}

TEST(ReadCache, WhatIsUsedStays) {
  ReadCache cache(256 << 10);
  cache.insert({Kind::value, 7, 7}, item(1000));
  for (uint64_t i = 0; i < 5000; ++i) {
    cache.insert({Kind::value, 100 + i, 0}, item(1000));
    ASSERT_NE(cache.find({Kind::value, 7, 7}), nullptr) << i;
  }
}

TEST(ReadCache, AScanDrivesOutLittle) {
  ReadCache cache(1 << 20);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 500; ++i) {
      if (!cache.find({Kind::value, i, 0})) {
        cache.insert({Kind::value, i, 0}, item(1000));
      }
    }
  }
  for (uint64_t i = 0; i < 20'000; ++i) {
    cache.insert({Kind::value, 10'000 + i, 0}, item(1000));
  }
  int found = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    found += cache.find({Kind::value, i, 0}) != nullptr;
  }
  EXPECT_GE(found, 450);
}

TEST(ReadCache, WhatReturnsSoonIsTakenBack) {
  ReadCache cache(256 << 10);
  // A ring a little larger than what waits in the small queue: nothing is used while it is there.
  for (int round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 150; ++i) {
      if (!cache.find({Kind::value, i, 0})) {
        cache.insert({Kind::value, i, 0}, item(1000));
      }
    }
  }
  const uint64_t before = cache.hits(Kind::value);
  for (uint64_t i = 0; i < 150; ++i) {
    cache.find({Kind::value, i, 0});
  }
  EXPECT_GE(cache.hits(Kind::value) - before, 120u);
}

TEST(ReadCache, ManyThreadsMayUseIt) {
  ReadCache cache(128 << 10);
  const auto cached = item(500);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 20000; ++i) {
        const ReadCache::Key key{Kind::block, (i * 7 + t) % 400, 0};
        if (const auto found = cache.find(key)) {
          EXPECT_EQ(found, cached);
        } else {
          cache.insert(key, cached);
        }
        if (i % 5000 == 0) {
          cache.resize(t % 2 ? 64 << 10 : 256 << 10);
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  cache.resize(0);
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace vtkv
