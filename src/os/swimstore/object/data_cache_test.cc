// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/data_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace swimstore {
namespace {

constexpr SlotAddress kSlot{8, 3};

ceph::bufferptr blocks_of(const std::string& letters) {
  ceph::bufferptr blocks(ceph::buffer::create_page_aligned(letters.size() * kBlockBytes));
  for (size_t i = 0; i < letters.size(); ++i) {
    std::memset(blocks.c_str() + i * kBlockBytes, letters[i], kBlockBytes);
  }
  return blocks;
}

// Of no block's bytes: the cache compares them only with what it is told.
std::vector<uint32_t> crcs_of(uint32_t first, size_t count) {
  std::vector<uint32_t> crcs(count);
  std::iota(crcs.begin(), crcs.end(), first);
  return crcs;
}

void add(DataCache& cache, SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks) {
  cache.add(slot, first, blocks, crcs_of(first, blocks.length() / kBlockBytes).data());
}

void add_if_room(DataCache& cache, SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks) {
  cache.add_if_room(slot, first, blocks, crcs_of(first, blocks.length() / kBlockBytes).data());
}

ceph::bufferptr get(DataCache& cache, SlotAddress slot, uint32_t first, uint32_t count, uint32_t* missing,
                    bool scan = false) {
  return cache.get(slot, first, count, crcs_of(first, count).data(), missing, scan);
}

// One letter per block of [first, first + count); '-' where the cache has none.
std::string letters_in(DataCache& cache, SlotAddress slot, uint32_t first, uint32_t count) {
  std::string letters;
  while (letters.size() < count) {
    uint32_t missing = 0;
    const ceph::bufferptr found = get(cache, slot, first + letters.size(), count - letters.size(), &missing);
    for (uint32_t i = 0; i < found.length() / kBlockBytes; ++i) {
      const std::string block(found.c_str() + i * kBlockBytes, kBlockBytes);
      EXPECT_EQ(block, std::string(kBlockBytes, block[0]));
      letters += block[0];
    }
    letters.append(missing, '-');
    EXPECT_TRUE((found.length() == 0) != (missing == 0));
  }
  return letters;
}

TEST(DataCacheTest, FindsWhatWasAddedAcrossPages) {
  DataCache cache(16 << 20);
  add(cache, kSlot, 14, blocks_of("abcdef"));
  EXPECT_EQ(letters_in(cache, kSlot, 12, 10), "--abcdef--");
  EXPECT_EQ(cache.memory_bytes(), 6 * kBlockBytes);
  EXPECT_EQ(letters_in(cache, {8, 4}, 14, 2), "--");
}

TEST(DataCacheTest, ReplacesAndForgetsSlices) {
  DataCache cache(16 << 20);
  add(cache, kSlot, 0, blocks_of("aaaaaa"));
  add(cache, kSlot, 2, blocks_of("bb"));
  EXPECT_EQ(letters_in(cache, kSlot, 0, 6), "aabbaa");
  cache.forget(kSlot, 1, 2);
  EXPECT_EQ(letters_in(cache, kSlot, 0, 6), "a--baa");
  EXPECT_EQ(cache.memory_bytes(), 4 * kBlockBytes);
  cache.forget(kSlot, 0, 1024);
  EXPECT_EQ(cache.memory_bytes(), 0u);
}

TEST(DataCacheTest, SharesMemoryUnlessItIsMuchMore) {
  DataCache cache(16 << 20);
  const ceph::bufferptr whole = blocks_of("ab");
  add(cache, kSlot, 0, whole);
  EXPECT_EQ(whole.raw_nref(), 2);
  const ceph::bufferptr large = blocks_of("cdefgh");
  add(cache, kSlot, 2, ceph::bufferptr(large, 0, kBlockBytes));
  EXPECT_EQ(large.raw_nref(), 1);
  EXPECT_EQ(letters_in(cache, kSlot, 0, 3), "abc");
}

TEST(DataCacheTest, DropsTheLeastRecentlyUsed) {
  DataCache cache(16 << 20);
  for (uint64_t index = 0; index < 8192; ++index) {
    add(cache, {0, index}, 0, blocks_of("x"));
    EXPECT_EQ(letters_in(cache, {0, 0}, 0, 1), "x");  // in use all the time
  }
  EXPECT_LE(cache.memory_bytes(), size_t{16} << 20);
  EXPECT_GE(cache.memory_bytes(), size_t{12} << 20);
  cache.set_capacity(2 << 20);
  EXPECT_LE(cache.memory_bytes(), size_t{2} << 20);
  EXPECT_EQ(letters_in(cache, {0, 0}, 0, 1), "x");
  cache.clear();
  EXPECT_EQ(cache.memory_bytes(), 0u);
}

TEST(DataCacheTest, AScanTakesOnlyTheRoomThatIsLeft) {
  DataCache cache(16 << 20);
  const std::string page(16, 's');
  for (uint64_t index = 0; index < 512; ++index) {  // 32 MiB
    add_if_room(cache, {4, index}, 0, blocks_of(page));
  }
  EXPECT_LE(cache.memory_bytes(), size_t{16} << 20);
  EXPECT_GE(cache.memory_bytes(), size_t{12} << 20);
  EXPECT_EQ(letters_in(cache, {4, 0}, 0, 16), page);
  for (uint64_t index = 0; index < 1024; ++index) {
    add(cache, {0, index}, 0, blocks_of("x"));
  }
  for (uint64_t index = 0; index < 512; ++index) {
    add_if_room(cache, {4, 512 + index}, 0, blocks_of(page));
  }
  for (uint64_t index = 0; index < 1024; ++index) {
    ASSERT_EQ(letters_in(cache, {0, index}, 0, 1), "x") << index;
  }
}

TEST(DataCacheTest, AScanMakesNothingRecent) {
  DataCache cache(16 * 16 * kBlockBytes * 2);  // two pages per shard
  add_if_room(cache, kSlot, 0, blocks_of("s"));
  uint32_t missing = 0;
  EXPECT_EQ(get(cache, kSlot, 0, 1, &missing, true).length(), kBlockBytes);
  for (uint64_t index = 0; index < 2048; ++index) {
    add(cache, {0, index}, 0, blocks_of("x"));
    (void)get(cache, kSlot, 0, 1, &missing, true);
  }
  EXPECT_EQ(letters_in(cache, kSlot, 0, 1), "-");
}

// A write's first and last block may have buffers of their own.
TEST(DataCacheTest, WhatWasWrittenInSeveralBuffersWasNotRead) {
  const auto gone_after = [](const std::vector<ceph::bufferptr>& buffers) {
    for (uint64_t others = 1;; ++others) {
      DataCache cache(16 * 16 * kBlockBytes * 2);  // two pages per shard
      ceph::bufferlist written;
      for (const ceph::bufferptr& buffer : buffers) {
        written.append(buffer);
      }
      cache.add(kSlot, written, crcs_of(0, written.length() / kBlockBytes).data());
      for (uint64_t index = 0; index < others; ++index) {
        add(cache, {0, index}, 0, blocks_of("x"));
      }
      if (letters_in(cache, kSlot, 0, 2) == "--") {
        return others;
      }
    }
  };
  EXPECT_EQ(gone_after({blocks_of("st")}), gone_after({blocks_of("s"), blocks_of("t")}));
}

// All that is there has been read: who needs room passes over the eight oldest, and the ninth goes.
TEST(DataCacheTest, NotAllThatWasReadHasAnotherRound) {
  constexpr size_t kPageBlocks = 16, kCapacity = 16 * kPageBlocks * kBlockBytes;  // a page per shard, or its blocks
  std::vector<SlotAddress> slots{{4, 0}};
  for (uint64_t index = 1; slots.size() < kPageBlocks + 1; ++index) {  // of one shard
    DataCache cache(kCapacity);
    add(cache, slots[0], 0, blocks_of(std::string(kPageBlocks, 'a')));
    add(cache, {4, index}, 0, blocks_of(std::string(kPageBlocks, 'b')));
    if (letters_in(cache, slots[0], 0, 1) == "-") {
      slots.emplace_back(4, index);
    }
  }
  DataCache cache(kCapacity);
  for (size_t i = 0; i < kPageBlocks; ++i) {
    add(cache, slots[i], 0, blocks_of("x"));
    EXPECT_EQ(letters_in(cache, slots[i], 0, 1), "x");
  }
  add(cache, slots.back(), 0, blocks_of("x"));
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(letters_in(cache, slots[i], 0, 1), i == 8 ? "-" : "x") << i;
  }
}

TEST(DataCacheTest, OnlyBlocksWithTheExpectedChecksumsAreThere) {
  DataCache cache(16 << 20);
  add(cache, kSlot, 0, blocks_of("abcdef"));
  std::vector<uint32_t> crcs = crcs_of(0, 6);
  crcs[2] = crcs[3] = 99;
  uint32_t missing = 0;
  EXPECT_EQ(cache.get(kSlot, 0, 6, crcs.data(), &missing).length(), 2 * kBlockBytes);
  EXPECT_EQ(cache.get(kSlot, 2, 4, &crcs[2], &missing).length(), 0u);
  EXPECT_EQ(missing, 2u);
  EXPECT_EQ(cache.get(kSlot, 4, 2, &crcs[4], &missing).length(), 2 * kBlockBytes);
}

TEST(DataCacheTest, WhatIsLeftOfASliceHoldsOnToItsOwnMemoryAlone) {
  DataCache cache(16 << 20);
  add(cache, kSlot, 0, blocks_of("abcdefghijklmnop"));
  cache.forget(kSlot, 1, 6);
  cache.forget(kSlot, 8, 8);
  EXPECT_EQ(letters_in(cache, kSlot, 0, 16), "a------h--------");
  uint32_t missing = 0;
  for (const uint32_t block : {0u, 7u}) {
    EXPECT_LE(get(cache, kSlot, block, 1, &missing).raw_length(), 2 * kBlockBytes);
  }
}

TEST(DataCacheTest, AgreesWithAModel) {
  DataCache cache(64 << 20);
  std::string model(64, '-');
  std::mt19937 random(7);
  for (int step = 0; step < 3000; ++step) {
    const uint32_t first = random() % model.size();
    const uint32_t count = 1 + random() % std::min<uint32_t>(24, model.size() - first);
    const char letter = static_cast<char>('a' + random() % 26);
    if (random() % 3 == 0) {
      cache.forget(kSlot, first, count);
      model.replace(first, count, count, '-');
    } else {
      add(cache, kSlot, first, blocks_of(std::string(count, letter)));
      model.replace(first, count, count, letter);
    }
    ASSERT_EQ(letters_in(cache, kSlot, 0, model.size()), model) << step;
  }
  EXPECT_EQ(cache.memory_bytes(), (model.size() - std::count(model.begin(), model.end(), '-')) * kBlockBytes);
}

}  // namespace
}  // namespace swimstore
