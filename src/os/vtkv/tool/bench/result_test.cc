// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/result.h"

#include <gtest/gtest.h>

namespace vtkv::bench {
namespace {

Result make(const std::string& engine, const std::string& workload, double ops_per_s) {
  Result result;
  result.engine = engine;
  result.workload = workload;
  result.value_bytes = 64;
  result[Metric::ops_per_s] = ops_per_s;
  return result;
}

TEST(BenchResult, RoundsBecomeTheirMedian) {
  const std::vector<Result> merged = merge_rounds({make("vtkv", "a", 1), make("rocksdb", "a", 10), make("vtkv", "a", 9),
                                                   make("rocksdb", "a", 30), make("vtkv", "a", 2)});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].engine, "vtkv");
  EXPECT_EQ(merged[0].rounds, 3u);
  EXPECT_EQ(merged[0][Metric::ops_per_s], 2);
  EXPECT_EQ(merged[1][Metric::ops_per_s], 20);
}

TEST(BenchResult, GroupsStayApart) {
  Result synced = make("vtkv", "a", 1);
  synced.group = "synced";
  EXPECT_EQ(merge_rounds({make("vtkv", "a", 1), synced}).size(), 2u);
}

TEST(BenchResult, TheTableComparesWithRocksdb) {
  const std::string table = to_table({make("vtkv", "a", 250), make("rocksdb", "a", 100)});
  EXPECT_NE(table.find("2.50"), std::string::npos) << table;
}

TEST(BenchResult, WhatIsUnknownIsNull) {
  const std::string json = to_json({make("vtkv", "a", 250)});
  EXPECT_NE(json.find("\"ops_per_s\": 250,"), std::string::npos) << json;
  EXPECT_NE(json.find("\"write_amplification\": null"), std::string::npos) << json;
}

}  // namespace
}  // namespace vtkv::bench
