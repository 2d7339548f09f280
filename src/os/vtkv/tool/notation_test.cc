// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/notation.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

TEST(Notation, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  const std::string text = to_notation(all);
  for (const char c : text) {
    ASSERT_TRUE(c >= 0x20 && c < 0x7f);
  }
  std::string back;
  ASSERT_TRUE(from_notation(text, &back).ok());
  EXPECT_EQ(back, all);
}

TEST(Notation, TextStandsForItself) {
  EXPECT_EQ(to_notation("a key"), "a key");
  EXPECT_EQ(to_notation(std::string("a\\\0", 3)), "a\\\\\\x00");
}

TEST(Notation, RefusesBrokenEscapes) {
  std::string back = "unchanged";
  for (const char* text : {"\\", "a\\", "\\n", "\\x", "\\x1", "\\x1g", "\\X00"}) {
    const Status status = from_notation(text, &back);
    EXPECT_EQ(status.code(), Status::Code::invalid_argument) << text;
    EXPECT_NE(status.message().find(text), std::string::npos);
  }
  EXPECT_EQ(back, "unchanged");
  EXPECT_TRUE(from_notation("\\xAf", &back).ok());
  EXPECT_EQ(back, "\xaf");
}

}  // namespace
}  // namespace vtkv
