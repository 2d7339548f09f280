// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/counter_record.h"

#include <gtest/gtest.h>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

TEST(CounterRecord, ObjectIdsAreAsOnThePage) {
  EXPECT_EQ(Counters::next_object_id_key(), "NI");
  FormatCheck<Counters> check(
      "N: object ids", [](const Counters& it) { return it.next_object_id_value(); },
      [](const std::string& bytes, Counters* it) { return it->load(Counters::next_object_id_key(), bytes).ok(); });
  Counters counters;
  counters.next_object_id = 300;
  check.example("object ids", counters);
  check.constant("version", kCounterVersionOldest);
  check.field("next object id", 0x22334455667788, &Counters::next_object_id);
  EXPECT_EQ(check.findings(), "");
}

TEST(CounterRecord, CountersOfAPoolAreAsOnThePage) {
  const auto decode = [](const std::string& bytes, PoolUsage* usage) {
    Counters counters;
    const bool good = counters.load(Counters::pool_key(1), bytes).ok();
    *usage = counters.pools[1];
    return good;
  };
  FormatCheck<PoolUsage> check("N: counters of a pool", Counters::pool_value, decode);
  check.example("counters of a pool", {4096, -1, 7, 1});
  check.example("counters of a pool with compressed blobs", {.allocated = 4096,
                                                             .stored = -1,
                                                             .omap = 7,
                                                             .objects = 1,
                                                             .compressed_original = 8192,
                                                             .compressed = 300,
                                                             .compressed_allocated = 4096});
  check.derived("version", [](const PoolUsage& it) {
    return PageValue(it.has_compressed() ? kCounterVersion : kCounterVersionOldest);
  });
  check.field("compressed original", -3, &PoolUsage::compressed_original);
  check.field("compressed", 4, &PoolUsage::compressed);
  check.field("compressed allocated", -5, &PoolUsage::compressed_allocated);
  check.field("allocated", -0x1122334455667788, &PoolUsage::allocated);
  check.field("stored", 0x1122334455667788, &PoolUsage::stored);
  check.field("omap", -1, &PoolUsage::omap);
  check.field("objects", INT64_MIN, &PoolUsage::objects);
  EXPECT_EQ(check.findings(), "");
}

TEST(CounterRecord, KeyOfAPoolIsAsOnThePage) {
  struct Pool {
    int64_t id = 0;
  };
  const auto decode = [](const std::string& bytes, Pool* pool) {
    Counters counters;
    const bool good = counters.load(bytes, Counters::pool_value({})).ok() && counters.pools.size() == 1;
    pool->id = good ? counters.pools.begin()->first : 0;
    return good;
  };
  FormatCheck<Pool> check("Key of a pool's counters", [](const Pool& it) { return Counters::pool_key(it.id); }, decode);
  check.example("key of a pool's counters", {-2});
  check.constant("prefix", std::string(1, kCounterKeyPrefix) + "P");
  check.field("pool", 0x1122334455667788, &Pool::id);
  EXPECT_EQ(check.findings(), "");
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
  EXPECT_EQ(counters.load(Counters::pool_key(1), "\x03").code(), vtkv::Status::Code::unsupported);
}

TEST(CounterRecord, RefusesObjectIdsThatNobodyReaches) {
  Counters counters;
  counters.next_object_id = kObjectIdMax + 1;
  Counters loaded;
  EXPECT_TRUE(loaded.load(Counters::next_object_id_key(), counters.next_object_id_value()).is_corruption());
}

}  // namespace
}  // namespace swimstore
