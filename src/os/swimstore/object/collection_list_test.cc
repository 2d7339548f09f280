// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/collection_list.h"

#include <gtest/gtest.h>

namespace swimstore {

namespace {

ghobject_t object(int64_t pool, uint32_t hash, shard_id_t shard = shard_id_t::NO_SHARD) {
  return ghobject_t(hobject_t(object_t("name"), "", CEPH_NOSNAP, hash, pool, ""), ghobject_t::NO_GEN, shard);
}

bool holds(const std::vector<ObjectRange>& ranges, const ghobject_t& oid) {
  for (const ObjectRange& range : ranges) {
    if (range.begin <= oid && oid < range.end) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST(ObjectRangesTest, APgHoldsWhatItsBitsMatch) {
  const auto ranges = object_ranges(coll_t(spg_t(pg_t(5, 3))), 3);
  for (uint32_t hash = 0; hash < 64; ++hash) {
    EXPECT_EQ(hash % 8 == 5, holds(ranges, object(3, hash))) << hash;
  }
}

TEST(ObjectRangesTest, TheLastPgHoldsTheHighestHash) {
  const auto ranges = object_ranges(coll_t(spg_t(pg_t(7, 3))), 3);
  EXPECT_TRUE(holds(ranges, object(3, 0xffffffff)));
  EXPECT_FALSE(holds(ranges, object(4, 0)));
}

TEST(ObjectRangesTest, APgHoldsItsTemporaryObjects) {
  const auto ranges = object_ranges(coll_t(spg_t(pg_t(5, 3))), 3);
  EXPECT_TRUE(holds(ranges, object(-5, 5)));
  EXPECT_FALSE(holds(ranges, object(-5, 4)));
  EXPECT_FALSE(holds(ranges, object(-4, 5)));
}

TEST(ObjectRangesTest, AShardHoldsItsOwnOnly) {
  const auto ranges = object_ranges(coll_t(spg_t(pg_t(0, 3), shard_id_t(2))), 0);
  EXPECT_TRUE(holds(ranges, object(3, 9, shard_id_t(2))));
  EXPECT_FALSE(holds(ranges, object(3, 9, shard_id_t(1))));
  EXPECT_FALSE(holds(ranges, object(3, 9)));
}

TEST(ObjectRangesTest, APgsOwnMetadataObjectIsItsFirst) {
  const spg_t pg(pg_t(5, 3));
  const auto ranges = object_ranges(coll_t(pg), 3);
  EXPECT_TRUE(holds(ranges, pg.make_pgmeta_oid()));
}

TEST(ObjectRangesTest, TheMetaCollectionHoldsPoolMinusOne) {
  const auto ranges = object_ranges(coll_t::meta(), 0);
  EXPECT_TRUE(holds(ranges, object(-1, 0xffffffff)));
  EXPECT_FALSE(holds(ranges, object(0, 0)));
}

}  // namespace swimstore
