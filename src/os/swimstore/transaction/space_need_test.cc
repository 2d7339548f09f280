// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_need.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "swimstore/release.h"

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;

const coll_t kPg(spg_t(pg_t(1, 1)));
const ghobject_t kObject(hobject_t(object_t("object"), "", CEPH_NOSNAP, 1, 1, ""));

void write(Transaction* transaction, uint64_t offset, uint64_t length) {
  ceph::bufferlist data;
  data.append_zero(length);
  transaction->write(kPg, kObject, offset, length, data);
}

uint64_t bytes_of(const Transaction& transaction) {
  std::vector<Transaction> transactions{transaction};
  return SpaceNeed::of(transactions).bytes;
}

TEST(SpaceNeedTest, DataCounts) {
  Transaction transaction;
  write(&transaction, 0, 64 << 10);
  EXPECT_LE(64u << 10, bytes_of(transaction));
  EXPECT_GT(65u << 10, bytes_of(transaction));
}

#if SWIM_CEPH_HAS_ALIGNED_TRANSACTIONS
TEST(SpaceNeedTest, DataThatLiesApartCounts) {
  const std::pair<uint64_t, uint64_t> kWrites[] = {{0, 4096},   {0, 65536},   {1, 8191},   {1, 12286},
                                                   {100, 8500}, {8192, 8191}, {5, 100000}, {4095, 4098}};
  for (const auto& [offset, length] : kWrites) {
    SCOPED_TRACE(testing::Message() << length << " bytes from " << offset);
    Transaction plain;
    Transaction aligned(CEPH_FEATURES_ALL);
    write(&plain, offset, length);
    write(&aligned, offset, length);
    ASSERT_GT(length, aligned.get_num_bytes());
    // The plain one has the length of the data beside it.
    EXPECT_EQ(bytes_of(plain) - sizeof(uint32_t), bytes_of(aligned));
  }
}

TEST(SpaceNeedTest, AtLeastHalfCountsWhereItCannotBeTold) {
  Transaction aligned(CEPH_FEATURES_ALL);
  write(&aligned, 0, 4096);
  ceph::bufferlist header;
  header.append_zero(8192);
  aligned.omap_setheader(kPg, kObject, header);
  EXPECT_LE((4096u + 8192u) / 2, bytes_of(aligned));
}
#endif

}  // namespace

}  // namespace swimstore
