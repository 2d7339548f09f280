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
}

}  // namespace
}  // namespace vtkv
