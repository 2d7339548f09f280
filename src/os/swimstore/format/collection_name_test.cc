// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/collection_name.h"

#include <gtest/gtest.h>

namespace swimstore {
namespace {

TEST(CollectionNameTest, IsDecodedAsItIsWritten) {
  const coll_t group(spg_t(pg_t(0x1b, 1)));
  for (const coll_t& written : {coll_t::meta(), group, group.get_temp(), coll_t(spg_t(pg_t(7, 12), shard_id_t(2)))}) {
    coll_t decoded;
    EXPECT_TRUE(decode_collection_name(written.to_str(), &decoded)) << written;
    EXPECT_EQ(written, decoded);
  }
}

// Some of them end the process in coll_t::parse().
TEST(CollectionNameTest, AnotherNameIsRefused) {
  for (const char* name : {"", "1", "1.1b", "1.01b_head", "1.1B_head", "1.1b_head_head", "_head", "1.1b_TEMP_head",
                           "metadata", "1.1b_tail", "1.1bs_head"}) {
    coll_t decoded;
    EXPECT_FALSE(decode_collection_name(name, &decoded)) << name << " is " << decoded;
  }
}

}  // namespace
}  // namespace swimstore
