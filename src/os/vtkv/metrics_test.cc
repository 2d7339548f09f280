// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace vtkv {
namespace {

// Printed as one JSON object: a second field of the same name would hide the first.
TEST(MetricsTest, NamesEachFieldOnce) {
  std::set<std::string> names;
  for (const Metric& metric : metrics_of({})) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
  }
  // Four fields take half as much as the others.
  constexpr size_t kShort = 4;
  EXPECT_EQ(names.size(), (sizeof(DBStatistics) - kShort * sizeof(uint32_t)) / sizeof(uint64_t) + kShort);
}

}  // namespace
}  // namespace vtkv
