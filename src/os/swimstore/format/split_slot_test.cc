// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/split_slot.h"

#include <gtest/gtest.h>

namespace swimstore {
namespace {

using vtkv::Status;

TEST(SplitSlotRecord, GoldenBytes) {
  const SplitSlotRecord record{.container = 4, .slot = 0x0102, .owned = {0x8001}};
  EXPECT_EQ(SplitSlotRecord::encode_key(4, 0x0102), std::string("B\x04\x00\x00\x00\x00\x00\x00\x01\x02", 10));
  EXPECT_EQ(record.encode_value(),
            std::string("\x01"       // version
                        "\x01\x80",  // blocks 0 and 15 of 16
                        3));
}

TEST(SplitSlotRecord, DecodesWhatItEncoded) {
  for (uint8_t container = 1; container < kSizeClasses; ++container) {
    SplitSlotRecord record{.container = container, .slot = 99, .owned = {}};
    record.owned.resize((slot_blocks(container) + 63) / 64);
    record.owned.front() = 1;
    record.owned.back() |= uint64_t{1} << (slot_blocks(container) - 1) % 64;
    SplitSlotRecord decoded;
    ASSERT_TRUE(
        SplitSlotRecord::decode(SplitSlotRecord::encode_key(container, 99), record.encode_value(), &decoded).ok());
    EXPECT_EQ(decoded.container, container);
    EXPECT_EQ(decoded.slot, 99u);
    EXPECT_EQ(decoded.owned, record.owned);
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
