// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/unowned_range.h"

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

bool decode(const std::string& bytes, UnownedRange* range) { return decode_unowned_range(bytes, range); }

TEST(UnownedRange, UnownedRangeIsAsOnThePage) {
  vtkv::FormatCheck<UnownedRange> check("U: unowned range", encode_unowned_range, decode);
  check.example("unowned range", {.bits = 5});
  check.constant("version", kUnownedRangeVersion);
  check.field("bits", 31, &UnownedRange::bits);
  EXPECT_EQ(check.findings(), "");
}

TEST(UnownedRange, WhatIsNoneIsRefused) {
  UnownedRange range;
  EXPECT_TRUE(decode(std::string("\1\x20"), &range));
  for (const std::string& bytes :
       {std::string(), std::string("\1"), std::string("\2\5"), std::string("\1\x21"), std::string("\1\5\0", 3)}) {
    EXPECT_FALSE(decode(bytes, &range)) << bytes;
  }
}

}  // namespace
}  // namespace swimstore
