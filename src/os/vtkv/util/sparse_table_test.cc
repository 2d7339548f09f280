// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/sparse_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace vtkv {
namespace {

TEST(SparseTable, BytesAreZerosAtFirstAndAgain) {
  SparseTable table(3);
  std::memset(table.insert(70), 'x', 3);
  table.erase(70);
  EXPECT_FALSE(table.contains(70));
  EXPECT_EQ(table.find(70), nullptr);
  EXPECT_EQ(std::string(table.insert(70), 3), std::string(3, '\0'));
}

TEST(SparseTable, FindsTheNextInOrder) {
  SparseTable table(1);
  for (const uint64_t number : {500, 63, 64}) {
    table.insert(number);
  }
  EXPECT_EQ(table.find_from(0), 63u);
  EXPECT_EQ(table.find_from(64), 64u);
  EXPECT_EQ(table.find_from(65), 500u);
  EXPECT_EQ(table.find_from(501), SparseTable::npos);
  EXPECT_EQ(table.find_from(100000), SparseTable::npos);
}

TEST(SparseTable, TakesLittleMoreThanTheBytes) {
  constexpr uint64_t kNumbers = 6400;
  SparseTable table(6);
  for (uint64_t number = 0; number < kNumbers; ++number) {
    table.insert(number);
  }
  EXPECT_LT(table.memory_bytes(), kNumbers * 7);
  for (uint64_t number = 0; number < kNumbers; ++number) {
    table.erase(number);
  }
  EXPECT_LT(table.memory_bytes(), kNumbers) << "without a number";
}

TEST(SparseTable, RandomUseMatchesAMap) {
  for (const size_t bytes : {1u, 6u, 384u}) {
    std::mt19937_64 random(bytes);
    SparseTable table(bytes);
    std::map<uint64_t, char> model;
    for (int step = 0; step < 5000; ++step) {
      const uint64_t number = random() % 200;
      if (!model.contains(number)) {
        model[number] = static_cast<char>(random());
        std::memset(table.insert(number), model[number], bytes);
      } else if (random() % 2 == 0) {
        model.erase(number);
        table.erase(number);
      }
      const uint64_t other = random() % 210;
      const auto next = model.lower_bound(other);
      ASSERT_EQ(table.find_from(other), next == model.end() ? SparseTable::npos : next->first);
      ASSERT_EQ(table.contains(other), model.contains(other));
      if (model.contains(other)) {
        ASSERT_EQ(std::string(table.find(other), bytes), std::string(bytes, model[other]));
      }
      ASSERT_EQ(table.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace vtkv
