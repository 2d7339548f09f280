// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/split_slot.h"

#include <gtest/gtest.h>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;
using vtkv::Status;

SplitSlotRecord example() { return {.container = 4, .slot = 0x0102, .owned = {0x8001}}; }

std::string key_of(const SplitSlotRecord& record) { return SplitSlotRecord::encode_key(record.container, record.slot); }

std::string value_of(const SplitSlotRecord& record) {
  return SplitSlotRecord::encode_value(record.container, record.owned);
}

TEST(SplitSlotRecord, SplitSlotIsAsOnThePage) {
  FormatCheck<SplitSlotRecord> check(
      "B: split slot", [](const SplitSlotRecord& record) { return value_of(record); },
      [](const std::string& bytes, SplitSlotRecord* record) {
        return SplitSlotRecord::decode(key_of(example()), bytes, record).ok();
      });
  check.example("split slot", example());
  check.constant("version", kSplitSlotVersion);
  check.part("owned", "\x22\x11", [](SplitSlotRecord& it) { it.owned = {0x1122}; });
  EXPECT_EQ(check.findings(), "");
}

TEST(SplitSlotRecord, KeyIsAsOnThePage) {
  // Whatever the class: the value is that of a slot of 16 blocks.
  FormatCheck<SplitSlotRecord> check("Key of a split slot", key_of,
                                     [](const std::string& bytes, SplitSlotRecord* record) {
                                       const std::string value(1 + (bytes[1] == 5 ? 4 : 2), '\1');
                                       return SplitSlotRecord::decode(bytes, value, record).ok();
                                     });
  check.example("key of a split slot", example());
  check.constant("prefix", std::string(1, kSplitSlotKeyPrefix));
  check.field("container", 5, &SplitSlotRecord::container);
  check.field("slot", 0x22334455667788, &SplitSlotRecord::slot);
  EXPECT_EQ(check.findings(), "");
}

TEST(SplitSlotRecord, DecodesWhatItEncoded) {
  for (uint8_t container = 1; container < kSizeClasses; ++container) {
    SplitSlotRecord record{.container = container, .slot = 99, .owned = {}};
    record.owned.resize((slot_blocks(container) + 63) / 64);
    record.owned.front() = 1;
    record.owned.back() |= uint64_t{1} << (slot_blocks(container) - 1) % 64;
    SplitSlotRecord decoded;
    ASSERT_TRUE(SplitSlotRecord::decode(SplitSlotRecord::encode_key(container, 99), value_of(record), &decoded).ok());
    EXPECT_EQ(decoded.container, container);
    EXPECT_EQ(decoded.slot, 99u);
    EXPECT_EQ(decoded.owned, record.owned);
  }
}

TEST(SplitSlotRecord, OneBitABlockInOrder) {
  for (uint8_t container = 1; container < kSizeClasses; ++container) {
    const uint32_t blocks = slot_blocks(container);
    std::vector<uint64_t> owned((blocks + 63) / 64);
    std::string expected(1 + (blocks + 7) / 8, '\0');
    expected[0] = kSplitSlotVersion;
    for (uint32_t block = 0; block < blocks; block += 1 + block % 7) {
      owned[block / 64] |= uint64_t{1} << block % 64;
      expected[1 + block / 8] = static_cast<char>(expected[1 + block / 8] | 1 << block % 8);
    }
    EXPECT_EQ(SplitSlotRecord::encode_value(container, owned), expected) << "class " << unsigned{container};
  }
}

TEST(SplitSlotRecord, RefusesWhatCannotBe) {
  const std::string key = SplitSlotRecord::encode_key(1, 5);
  SplitSlotRecord record;
  EXPECT_TRUE(SplitSlotRecord::decode(key, std::string("\x01\x02", 2), &record).ok());
  EXPECT_TRUE(SplitSlotRecord::decode(key, std::string("\x01\x04", 2), &record).is_corruption());  // past the end
  EXPECT_TRUE(SplitSlotRecord::decode(key, std::string("\x01\x00", 2), &record).is_corruption());  // nobody's
  EXPECT_TRUE(SplitSlotRecord::decode(key, std::string("\x01\x01\x01", 3), &record).is_corruption());
  EXPECT_TRUE(SplitSlotRecord::decode(key, "", &record).is_corruption());
  EXPECT_TRUE(SplitSlotRecord::decode(key + "x", std::string("\x01\x02", 2), &record).is_corruption());
  EXPECT_TRUE(SplitSlotRecord::decode(SplitSlotRecord::encode_key(0, 5), std::string("\x01\x01", 2), &record)
                  .is_corruption());  // one block cannot be split
  EXPECT_TRUE(
      SplitSlotRecord::decode(SplitSlotRecord::encode_key(11, 5), std::string("\x01\x01", 2), &record).is_corruption());
  EXPECT_EQ(SplitSlotRecord::decode(key, std::string("\x02\x02", 2), &record).code(), Status::Code::unsupported);
}

}  // namespace
}  // namespace swimstore
