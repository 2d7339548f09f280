// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/utf8.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

TEST(Utf8, CharactersStandForThemselves) {
  for (const char* text :
       {"", "plain \\ text\n", "\xc3\xbc", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x90\x9f", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(to_utf8(text), text);
  }
}

TEST(Utf8, OtherBytesAreWrittenInHexadecimal) {
  EXPECT_EQ(to_utf8("a\xff"), "a\\xff");
  EXPECT_EQ(to_utf8("\x80z"), "\\x80z");
  EXPECT_EQ(to_utf8("\xc3"), "\\xc3");                       // cut short
  EXPECT_EQ(to_utf8("\xe2\x82z"), "\\xe2\\x82z");
  EXPECT_EQ(to_utf8("\xc0\xaf"), "\\xc0\\xaf");              // longer than needed
  EXPECT_EQ(to_utf8("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");     // a surrogate
  EXPECT_EQ(to_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(to_utf8("\xff\xc3\xbc"), "\\xff\xc3\xbc");
}

}  // namespace
}  // namespace vtkv
