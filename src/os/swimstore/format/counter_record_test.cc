// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/counter_record.h"

#include <gtest/gtest.h>

namespace swimstore {
namespace {

TEST(CounterRecord, GoldenBytes) {
  EXPECT_EQ(Counters::next_object_id_key(), "NI");
  EXPECT_EQ(Counters::pool_key(5), std::string("NP\x80\x00\x00\x00\x00\x00\x00\x05", 10));
  EXPECT_EQ(Counters::pool_key(-2), std::string("NP\x7f\xff\xff\xff\xff\xff\xff\xfe", 10));
  Counters counters;
  counters.next_object_id = 300;
  EXPECT_EQ(counters.next_object_id_value(), std::string("\x01\xac\x02", 3));
  EXPECT_EQ(Counters::pool_value({4096, -1, 7, 1}), std::string("\x01\x80\x40\x01\x0e\x02", 6));
}

TEST(CounterRecord, LoadsWhatItEncoded) {
  Counters counters;
  const PoolUsage usage{1 << 20, -5, 9, 1000};
  ASSERT_TRUE(counters.load(Counters::pool_key(-7), Counters::pool_value(usage)).ok());
  EXPECT_EQ(counters.pools[-7], usage);
  ASSERT_TRUE(counters.load("NI", std::string("\x01\xac\x02", 3)).ok());
  EXPECT_EQ(counters.next_object_id, 300u);
}

TEST(CounterRecord, RefusesWhatCannotBe) {
  Counters counters;
  const std::string value = Counters::pool_value({1, 2, 3, 4});
  for (size_t length = 0; length < value.size(); length++) {
    EXPECT_TRUE(counters.load(Counters::pool_key(1), value.substr(0, length)).is_corruption()) << length;
  }
  EXPECT_TRUE(counters.load(Counters::pool_key(1), value + "x").is_corruption());
  EXPECT_TRUE(counters.load("NX", value).is_corruption());
  EXPECT_TRUE(counters.load("N", value).is_corruption());
  EXPECT_EQ(counters.load(Counters::pool_key(1), "\x02").code(), vtkv::Status::Code::unsupported);
}

TEST(CounterRecord, RefusesObjectIdsThatNobodyReaches) {
  Counters counters;
  counters.next_object_id = kObjectIdMax + 1;
  Counters loaded;
  EXPECT_TRUE(loaded.load(Counters::next_object_id_key(), counters.next_object_id_value()).is_corruption());
}

}  // namespace
}  // namespace swimstore
