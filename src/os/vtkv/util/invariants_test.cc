// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/invariants.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

#if defined(SWIM_CHECK_INVARIANTS)
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif

TEST(Invariants, AnAuditRunsWhereTheBuildAsksForItAlone) {
  int audits = 0;
  INVARIANT(++audits > 0);
  EXPECT_EQ(audits, kChecked ? 1 : 0);
}

TEST(InvariantsDeathTest, AFailedAuditEndsTheProgramWhereItRuns) {
  const auto audit = [] { INVARIANT(1 + 1 == 3); };
  if (kChecked) {
    EXPECT_DEATH(audit(), "assertion failed: 1 \\+ 1 == 3");
  } else {
    audit();
  }
}

TEST(InvariantsDeathTest, AnAssertionIsAlwaysChecked) { EXPECT_DEATH(VTKV_ASSERT(1 + 1 == 3), "assertion failed"); }

}  // namespace
}  // namespace vtkv
