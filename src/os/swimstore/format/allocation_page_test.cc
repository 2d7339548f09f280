// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/allocation_page.h"

#include <gtest/gtest.h>

namespace swimstore {
namespace {

AllocationPage example() {
  AllocationPage page;
  page.size_class = 2;
  page.number = 0x0102;
  page.slots = 70;
  page.owned[0] = 0x8000000000000001;
  page.owned[1] = 0x20;
  page.primed[0] = 3;
  return page;
}

TEST(AllocationPage, GoldenBytes) {
  EXPECT_EQ(example().encode_key(), std::string("A\x02\x00\x00\x01\x02", 6));
  const std::string expected(
      "\x01\x00\x46\x00"                  // version, 0, 70 slots
      "\x01\x00\x00\x00\x00\x00\x00\x80"  // owned: 0, 63
      "\x20\x00\x00\x00\x00\x00\x00\x00"  // 69
      "\x03\x00\x00\x00\x00\x00\x00\x00"  // primed: 0, 1
      "\x00\x00\x00\x00\x00\x00\x00\x00",
      36);
  EXPECT_EQ(example().encode_value(), expected);
}

TEST(AllocationPage, DecodesWhatItEncoded) {
  AllocationPage page;
  ASSERT_TRUE(AllocationPage::decode(example().encode_key(), example().encode_value(), &page).ok());
  EXPECT_EQ(page.number, example().number);
  EXPECT_EQ(page.slots, 70u);
  EXPECT_EQ(page.owned, example().owned);
  EXPECT_EQ(page.primed, example().primed);
}

TEST(AllocationPage, RefusesWhatCannotBe) {
  const std::string key = example().encode_key();
  const std::string value = example().encode_value();
  AllocationPage page;
  for (size_t length = 0; length < value.size(); length++) {
    EXPECT_TRUE(AllocationPage::decode(key, value.substr(0, length), &page).is_corruption()) << length;
  }
  EXPECT_TRUE(AllocationPage::decode(key + "x", value, &page).is_corruption());
  EXPECT_TRUE(AllocationPage::decode(std::string("A\x0b\x00\x00\x01\x02", 6), value, &page).is_corruption());
  std::string past = value;
  past[12] |= '\x40';  // slot 70 of 70
  EXPECT_TRUE(AllocationPage::decode(key, past, &page).is_corruption());
  std::string future = value;
  future[0] = 2;
  EXPECT_EQ(AllocationPage::decode(key, future, &page).code(), vtkv::Status::Code::unsupported);
}

}  // namespace
}  // namespace swimstore
