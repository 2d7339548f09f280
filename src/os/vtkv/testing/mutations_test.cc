// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/mutations.h"

#include <gtest/gtest.h>

#include <set>

namespace vtkv {
namespace {

TEST(MutationsTest, EachHasOneName) {
  std::set<std::string_view> names;
  for (const Mutation mutation : mutations()) {
    EXPECT_TRUE(names.insert(to_string(mutation)).second) << to_string(mutation);
    Mutation parsed{};
    if (const Status status = parse_mutation(to_string(mutation), &parsed); kCanMutate) {
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(parsed, mutation);
    } else {
      EXPECT_EQ(status.code(), Status::Code::unsupported) << status.to_string();
    }
  }
  Mutation parsed{};
  EXPECT_EQ(parse_mutation("", &parsed).code(), Status::Code::invalid_argument);
  EXPECT_TRUE(is_of_engine(Mutation::flush_removed));
  EXPECT_FALSE(is_of_engine(Mutation::slot_punched_early));
}

TEST(MutationsTest, ARuleIsBrokenForAsLongAsSomebodyBreaksIt) {
  VTKV_NEEDS_MUTATIONS();
  const auto broken = [] {
    return std::pair(mutated(Mutation::flush_removed), mutated(Mutation::single_flush_everywhere));
  };
  EXPECT_EQ(broken(), std::pair(false, false));
  {
    const ScopedMutation flush(Mutation::flush_removed);
    {
      const ScopedMutation again(Mutation::flush_removed), other(Mutation::single_flush_everywhere);
      EXPECT_EQ(broken(), std::pair(true, true));
    }
    EXPECT_EQ(broken(), std::pair(true, false));
  }
  EXPECT_EQ(broken(), std::pair(false, false));
}

}  // namespace
}  // namespace vtkv
