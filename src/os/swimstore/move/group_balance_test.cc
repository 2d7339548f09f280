// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/group_balance.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace swimstore {

namespace {

constexpr uint64_t kMiB = 1u << 20;

coll_t pg(unsigned number) { return coll_t(spg_t(pg_t(number, 1))); }

std::map<unsigned, uint64_t> held_after(const std::vector<GroupSize>& groups, const std::vector<unsigned>& cubes,
                                        const std::vector<GroupMove>& moves) {
  std::map<coll_t, GroupSize> now;
  for (const GroupSize& group : groups) {
    now[group.cid] = group;
  }
  std::set<coll_t> moved;
  for (const GroupMove& move : moves) {
    EXPECT_EQ(now[move.cid].cube, move.from) << move.cid;
    EXPECT_EQ(now[move.cid].slot_bytes, move.slot_bytes) << move.cid;
    EXPECT_TRUE(moved.insert(move.cid).second) << move.cid << " moves twice";
    now[move.cid].cube = move.to;
  }
  std::map<unsigned, uint64_t> held;
  for (const unsigned cube : cubes) {
    held[cube] = 0;
  }
  for (const auto& [cid, group] : now) {
    held[group.cube] += group.slot_bytes;
  }
  return held;
}

}  // namespace

// As the groups of a pool that grew from one of them by splitting.
TEST(GroupBalance, GroupsThatLieInOneCubeAreSpreadEvenly) {
  std::vector<GroupSize> groups;
  for (unsigned number = 0; number < 16; ++number) {
    groups.push_back({pg(number), 2, 10 * kMiB});
  }
  const std::vector<GroupMove> moves = plan_balance(groups, {1, 2, 3, 4});
  EXPECT_EQ(moves.size(), 12u) << "no more than has to go";
  EXPECT_EQ(held_after(groups, {1, 2, 3, 4}, moves),
            (std::map<unsigned, uint64_t>{{1, 40 * kMiB}, {2, 40 * kMiB}, {3, 40 * kMiB}, {4, 40 * kMiB}}));
}

// As those of a store that had one cube: all leave it, whatever a move costs.
TEST(GroupBalance, GroupsThatLieInNoneOfTheCubesAllMoveThere) {
  std::vector<GroupSize> groups = {{pg(100), 1, 30 * kMiB}};
  for (unsigned number = 0; number < 9; ++number) {
    groups.push_back({pg(number), 0, number < 8 ? 10 * kMiB : 1000 * kMiB});
  }
  std::vector<GroupMove> moves = plan_balance(groups, {1, 2});
  ASSERT_EQ(moves.size(), 9u) << "and no other";
  EXPECT_EQ(moves.front().cid, pg(8)) << "the largest first";
  EXPECT_EQ(held_after(groups, {1, 2}, moves), (std::map<unsigned, uint64_t>{{1, 110 * kMiB}, {2, 1000 * kMiB}}));
  moves = plan_balance({{pg(1), 0, 0}}, {3});
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves.front().to, 3u);
}

TEST(GroupBalance, GroupsWithoutDataAreSpreadByTheirNumber) {
  std::vector<GroupSize> groups;
  for (unsigned number = 0; number < 8; ++number) {
    groups.push_back({pg(number), 1, 0});
  }
  EXPECT_EQ(plan_balance(groups, {1, 2}).size(), 4u);
}

TEST(GroupBalance, NothingMovesThatWouldNotHelp) {
  EXPECT_TRUE(plan_balance({}, {1, 2}).empty());
  EXPECT_TRUE(plan_balance({{pg(0), 1, 100 * kMiB}}, {1, 2}).empty()) << "it would be as unequal the other way round";
  EXPECT_TRUE(plan_balance({{pg(0), 1, 100 * kMiB}, {pg(1), 2, 97 * kMiB}, {pg(2), 1, kMiB}}, {1, 2}).empty())
      << "a few percent are not worth a copy";
  EXPECT_TRUE(plan_balance({{pg(0), 1, kMiB}, {pg(1), 1, kMiB}}, {1}).empty()) << "the others are abandoned";
}

// As many as an OSD usually has: what one of them weighs is little beside a cube.
TEST(GroupBalance, ManySmallGroupsAreSpread) {
  for (const unsigned count : {80, 128, 1000}) {
    std::vector<GroupSize> groups;
    for (unsigned number = 0; number < count; ++number) {
      groups.push_back({pg(number), 2, 10 * kMiB});
    }
    const uint64_t average = count * 10 * kMiB / 4;
    for (const auto& [cube, bytes] : held_after(groups, {1, 2, 3, 4}, plan_balance(groups, {1, 2, 3, 4}))) {
      EXPECT_GE(bytes, average * 9 / 10) << count << " groups, cube " << cube;
      EXPECT_LE(bytes, average * 11 / 10) << count << " groups, cube " << cube;
    }
  }
}

TEST(GroupBalance, ACubeWithOneLargeGroupKeepsNobodyElseBack) {
  std::vector<GroupSize> groups = {{pg(0), 1, 1000 * kMiB}};
  for (unsigned number = 1; number <= 8; ++number) {
    groups.push_back({pg(number), 2, 100 * kMiB});
  }
  EXPECT_EQ(held_after(groups, {1, 2, 3, 4}, plan_balance(groups, {1, 2, 3, 4})),
            (std::map<unsigned, uint64_t>{{1, 1000 * kMiB}, {2, 300 * kMiB}, {3, 300 * kMiB}, {4, 200 * kMiB}}));
}

// A large one that would leave least of the difference does not pay, small ones do.
TEST(GroupBalance, SmallGroupsGoWhereALargeOneDoesNotPay) {
  std::vector<GroupSize> groups = {{pg(0), 1, 810 * kMiB}, {pg(1), 2, 710 * kMiB}};
  for (unsigned number = 2; number < 11; ++number) {
    groups.push_back({pg(number), 1, 100 * kMiB});
  }
  EXPECT_EQ(held_after(groups, {1, 2}, plan_balance(groups, {1, 2})),
            (std::map<unsigned, uint64_t>{{1, 1210 * kMiB}, {2, 1210 * kMiB}}));
}

TEST(GroupBalance, WhateverTheSizesNoCubeIsFullerThanBefore) {
  std::mt19937_64 random(1);
  for (unsigned round = 0; round < 200; ++round) {
    const std::vector<unsigned> cubes = {1, 2, 3, 4, 6};
    std::vector<GroupSize> groups;
    for (unsigned number = 0; number < 40; ++number) {
      groups.push_back({pg(number), cubes[random() % (1 + round % cubes.size())], (random() % 100) * kMiB});
    }
    const auto most = [](const std::map<unsigned, uint64_t>& held) {
      return std::max_element(held.begin(), held.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
    };
    const auto before = held_after(groups, cubes, {});
    const auto after = held_after(groups, cubes, plan_balance(groups, cubes));
    EXPECT_LE(most(after), most(before)) << round;
    uint64_t total = 0;
    for (const auto& [cube, bytes] : after) {
      total += bytes;
    }
    EXPECT_LE(most(after), total / cubes.size() + 100 * kMiB) << round;  // one group more than its share
  }
}

}  // namespace swimstore
