// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/slot_bitmap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace swimstore {
namespace {

TEST(SlotBitmap, IsEmptyAtFirst) {
  SlotBitmap bitmap;
  EXPECT_EQ(bitmap.find_from(0), SlotBitmap::npos);
  bitmap.resize(1000);
  EXPECT_EQ(bitmap.count(), 0u);
  EXPECT_EQ(bitmap.find_cyclic(999), SlotBitmap::npos);
}

TEST(SlotBitmap, KeepsMembersWhileItGrowsByLevels) {
  SlotBitmap bitmap;
  std::set<uint64_t> members;
  for (uint64_t size : {1u, 63u, 64u, 65u, 4096u, 4097u, 300000u, 17000000u}) {
    bitmap.resize(size);
    bitmap.set(size - 1);
    members.insert(size - 1);
    uint64_t at = 0;
    for (uint64_t member : members) {
      at = bitmap.find_from(at);
      ASSERT_EQ(at, member) << "size " << size;
      at++;
    }
    ASSERT_EQ(bitmap.find_from(at), SlotBitmap::npos);
  }
}

TEST(SlotBitmap, AgreesWithASet) {
  std::mt19937_64 random(1);
  for (uint64_t size : {70u, 5000u, 270000u}) {
    SlotBitmap bitmap;
    bitmap.resize(size);
    bitmap.set_word(size / 64 + 1, 0);
    std::set<uint64_t> model;
    for (int i = 0; i < 20000; i++) {
      const uint64_t slot = random() % size;
      if (const uint64_t choice = random() % 8; choice == 0) {
        const uint64_t word = slot / 64, slots = std::min<uint64_t>(64, size - word * 64);
        const uint64_t members = random() % 2 == 0 ? 0 : random() & random() & ~uint64_t{0} >> (64 - slots);
        bitmap.set_word(word, members);
        ASSERT_EQ(bitmap.word(word), members);
        for (uint64_t n = 0; n < slots; n++) {
          if (members >> n & 1) {
            model.insert(word * 64 + n);
          } else {
            model.erase(word * 64 + n);
          }
        }
      } else if (choice % 2 == 0) {
        bitmap.set(slot);
        model.insert(slot);
      } else {
        bitmap.clear(slot);
        model.erase(slot);
      }
      const uint64_t start = random() % size;
      const auto it = model.lower_bound(start);
      ASSERT_EQ(bitmap.find_from(start), it == model.end() ? SlotBitmap::npos : *it);
      const uint64_t around = it != model.end() ? *it : model.empty() ? SlotBitmap::npos : *model.begin();
      ASSERT_EQ(bitmap.find_cyclic(start), around);
      ASSERT_EQ(bitmap.count(), model.size());
      ASSERT_EQ(bitmap.test(slot), model.contains(slot));
    }
  }
}

}  // namespace
}  // namespace swimstore
