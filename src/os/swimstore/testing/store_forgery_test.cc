// SPDX-License-Identifier: LGPL-2.1-or-later
// Forged images: every one ends in an error, or in a store that works, never in an abort.
// swimstore_crash_explorer --forge goes on for as long as it is given.

#include <gtest/gtest.h>

#include <set>

#include "global/global_context.h"
#include "swimstore/testing/store_forgery.h"

namespace swimstore {

class StoreForgeryTest : public testing::TestWithParam<uint64_t> {};

TEST_P(StoreForgeryTest, EndsInAnErrorOrInAStore) {
  constexpr uint64_t kCases = 150;
  StoreForgery forgery(g_ceph_context, GetParam());
  uint64_t mounted = 0, refused = 0, with_errors = 0, with_findings = 0, compressed = 0;
  for (uint64_t number = GetParam() * 1000; number < GetParam() * 1000 + kCases; ++number) {
    const StoreForgery::Outcome outcome = forgery.run(number);
    ++(outcome.mounted ? mounted : refused);
    with_errors += outcome.errors > 0;
    with_findings += outcome.findings > 0;
    compressed += outcome.what.find("below its compression") != std::string::npos;
  }
  std::printf("%lu mounted, %lu refused, %lu with errors, %lu with findings\n", mounted, refused, with_errors,
              with_findings);
  // A scenario in which nothing happens shows nothing.
  EXPECT_GT(mounted, kCases / 5);
  EXPECT_GT(refused, kCases / 20);
  EXPECT_GT(with_errors, 0u);
  EXPECT_GT(with_findings, 0u);
  EXPECT_GT(compressed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoreForgeryTest, testing::Range<uint64_t>(1, 5));

}  // namespace swimstore
