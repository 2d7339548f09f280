// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/witness.h"

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

TEST(Witness, WitnessIsAsOnThePage) {
  vtkv::FormatCheck<WitnessedGroup> check(
      "W: witness", encode_witnessed_group,
      [](const std::string& bytes, WitnessedGroup* group) { return decode_witnessed_group(bytes, group); });
  check.example("witness", {.bits = 5, .home = 2});
  check.constant("version", kWitnessVersion);
  check.field("bits", 31, &WitnessedGroup::bits);
  check.field("home", 4, &WitnessedGroup::home);
  EXPECT_EQ(check.findings(), "");
}

TEST(Witness, WhatIsNoneIsRefused) {
  WitnessedGroup group;
  EXPECT_TRUE(decode_witnessed_group("\1\x20\1", &group));
  for (const std::string& bytes : {std::string(), std::string("\1\5"), std::string("\2\5\1"), std::string("\1\x21\1"),
                                   std::string("\1\5\1\0", 4)}) {
    EXPECT_FALSE(decode_witnessed_group(bytes, &group)) << bytes;
  }
}

// A group's transactions write the second and the others with every client's write.
TEST(Witness, OnlyWhatTellsOfTheGroupsPastIsWitnessed) {
  for (const std::string_view key : {"_infover", "_info", "_biginfo", "_epoch"}) {
    EXPECT_TRUE(is_witnessed(key)) << key;
  }
  for (const std::string_view key : {"_fastinfo", "0000000012.00000000000000000034", "can_rollback_to", "_inf", ""}) {
    EXPECT_FALSE(is_witnessed(key)) << key;
  }
}

}  // namespace
}  // namespace swimstore
