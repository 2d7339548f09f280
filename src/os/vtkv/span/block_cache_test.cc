#include "vtkv/span/block_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "vtkv/span/block_builder.h"

namespace vtkv {
namespace {

std::shared_ptr<const Block> make_block(size_t value_bytes) {
  BlockBuilder builder(BlockKind::entries);
  const std::string value(value_bytes, 'v');
  builder.add({"k", 1, EntryType::value, value});
  std::string bytes;
  builder.finish(1, 0, &bytes);
  std::shared_ptr<const Block> block;
  EXPECT_TRUE(Block::parse(bytes, {BlockKind::entries, 1, 0}, &block).ok());
  return block;
}

TEST(BlockCache, FindsWhatWasInserted) {
  BlockCache cache(1 << 20);
  const auto block = make_block(100);
  EXPECT_EQ(cache.find({1, 2}), nullptr);
  cache.insert({1, 2}, block);
  EXPECT_EQ(cache.find({1, 2}), block);
  EXPECT_EQ(cache.find({2, 2}), nullptr);
  EXPECT_EQ(cache.find({1, 3}), nullptr);
  EXPECT_EQ(cache.hits(), 1u);
  EXPECT_EQ(cache.misses(), 3u);
}

TEST(BlockCache, StaysBelowItsCapacity) {
  BlockCache cache(1 << 20);
  for (uint32_t i = 0; i < 5000; ++i) {
    cache.insert({i, i}, make_block(1000));
    ASSERT_LE(cache.bytes(), 1u << 20);
  }
  EXPECT_GT(cache.bytes(), 1u << 19);
}

TEST(BlockCache, ShrinksAtOnceAndGrowsAgain) {
  BlockCache cache(1 << 20);
  for (uint32_t i = 0; i < 500; ++i) {
    cache.insert({i, 0}, make_block(1000));
  }
  cache.resize(64 << 10);
  EXPECT_LE(cache.bytes(), 64u << 10);
  cache.resize(0);
  EXPECT_EQ(cache.bytes(), 0u);
  cache.insert({1, 0}, make_block(10));
  EXPECT_EQ(cache.find({1, 0}), nullptr);
  cache.resize(1 << 20);
  cache.insert({1, 0}, make_block(10));
  EXPECT_NE(cache.find({1, 0}), nullptr);
}

TEST(BlockCache, WhatIsUsedStays) {
  BlockCache cache(256 << 10);
  cache.insert({7, 7}, make_block(1000));
  for (uint32_t i = 0; i < 5000; ++i) {
    cache.insert({100 + i, 0}, make_block(1000));
    ASSERT_NE(cache.find({7, 7}), nullptr) << i;
  }
}

TEST(BlockCache, ManyThreadsMayUseIt) {
  BlockCache cache(128 << 10);
  const auto block = make_block(500);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 20000; ++i) {
        const BlockCache::Key key{(i * 7 + t) % 400, 0};
        if (const auto found = cache.find(key)) {
          EXPECT_EQ(found->body(), block->body());
        } else {
          cache.insert(key, block);
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
