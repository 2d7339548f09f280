// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/allocation_page.h"

#include <gtest/gtest.h>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

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

TEST(AllocationPage, AllocationPageIsAsOnThePage) {
  const auto decode = [](const std::string& bytes, AllocationPage* page) {
    return AllocationPage::decode(example().encode_key(), bytes, page).ok();
  };
  FormatCheck<AllocationPage> check(
      "A: allocation page", [](const AllocationPage& page) { return page.encode_value(); }, decode);
  check.example("allocation page", example());
  check.constant("version", kAllocationPageVersion);
  check.field("slots", 0x7f, &AllocationPage::slots);
  check.part("owned", vtkv::raw_bytes(uint64_t{0x1122334455667788}) + vtkv::raw_bytes(uint64_t{0x3f}),
             [](AllocationPage& it) { it.owned = {0x1122334455667788, 0x3f}; });
  check.part("primed", vtkv::raw_bytes(uint64_t{0x2233445566778899}) + vtkv::raw_bytes(uint64_t{0x1f}),
             [](AllocationPage& it) { it.primed = {0x2233445566778899, 0x1f}; });
  EXPECT_EQ(check.findings(), "");
}

TEST(AllocationPage, KeyIsAsOnThePage) {
  FormatCheck<AllocationPage> check(
      "Key of an allocation page", [](const AllocationPage& page) { return page.encode_key(); },
      [](const std::string& bytes, AllocationPage* page) {
        return AllocationPage::decode(bytes, example().encode_value(), page).ok();
      });
  check.example("key of an allocation page", example());
  check.constant("prefix", std::string(1, kAllocationKeyPrefix));
  check.field("size class", 9, &AllocationPage::size_class);
  check.field("page number", 0x11223344, &AllocationPage::number);
  EXPECT_EQ(check.findings(), "");
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
