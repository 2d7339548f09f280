// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/quarantine_record.h"

#include <gtest/gtest.h>

#include <cstring>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

QuarantineRecord example() {
  QuarantineRecord record;
  for (size_t i = 0; i < record.uuid.size(); i++) {
    record.uuid[i] = static_cast<uint8_t>(0xb0 + i);
  }
  record.epoch = 7;
  record.slots = {{0, 17}, {10, 3}};
  return record;
}

bool decode_copy(const std::string& bytes, QuarantineRecord* record) {
  return QuarantineRecord::decode("quarantine", bytes, record).ok();
}

TEST(QuarantineRecord, QuarantineIsAsOnThePage) {
  FormatCheck<QuarantineRecord> check(
      "Quarantine", [](const QuarantineRecord& record) { return record.encode(); }, decode_copy);
  check.example("quarantine", example());
  check.constant("magic", "SWIMQUAR");
  check.constant("version", kQuarantineVersion);
  check.derived("number of slots", [](const QuarantineRecord& it) { return PageValue(it.slots.size()); });
  check.field("uuid", std::array<uint8_t, 16>{9, 8, 7}, &QuarantineRecord::uuid);
  check.field("epoch", 0x2233445566778899, &QuarantineRecord::epoch);
  check.part("slots", vtkv::page_example("quarantined slot"), [](QuarantineRecord& it) { it.slots = {{10, 3}}; });
  EXPECT_EQ(check.findings(), "");
}

TEST(QuarantineRecord, QuarantinedSlotIsAsOnThePage) {
  constexpr size_t kOffset = 40;
  const auto encode = [](const QuarantineRecord& record) { return record.encode().substr(kOffset, 8); };
  const auto decode = [](const std::string& bytes, QuarantineRecord* record) {
    std::string copy = example().encode();
    copy.replace(kOffset, bytes.size(), bytes);
    vtkv::encode_fixed32(copy.data() + 4092, vtkv::crc32c(copy.data(), 4092));
    return decode_copy(copy, record);
  };
  FormatCheck<QuarantineRecord> check("Quarantined slot", encode, decode);
  QuarantineRecord record = example();
  record.slots = {{10, 3}};
  check.example("quarantined slot", record);
  check.field("index", 0x33445566778899, [](QuarantineRecord& it) -> auto& { return it.slots[0].index; });
  check.field("size class", 4, [](QuarantineRecord& it) -> auto& { return it.slots[0].size_class; });
  check.field("levels split", 5, [](QuarantineRecord& it) -> auto& { return it.slots[0].split_levels; });
  EXPECT_EQ(check.findings(), "");
}

TEST(QuarantineRecord, DecodesWhatItEncoded) {
  QuarantineRecord full = example();
  full.slots.assign(QuarantineRecord::kSlotsMax, {3, 5});
  for (const QuarantineRecord& one : {example(), full}) {
    QuarantineRecord record;
    ASSERT_TRUE(QuarantineRecord::decode("q", one.encode(), &record).ok());
    EXPECT_EQ(record.uuid, one.uuid);
    EXPECT_EQ(record.epoch, one.epoch);
    EXPECT_EQ(record.slots, one.slots);
  }
  QuarantineRecord blank;
  ASSERT_TRUE(QuarantineRecord::decode("q", std::string(QuarantineRecord::kBytes, '\0'), &blank).ok());
  EXPECT_EQ(blank.epoch, 0u);
}

TEST(QuarantineRecord, NoticesEveryFlippedByte) {
  const std::string bytes = example().encode();
  for (size_t offset = 0; offset < bytes.size(); offset++) {
    std::string damaged = bytes;
    damaged[offset] ^= 0x04;
    QuarantineRecord record;
    ASSERT_TRUE(QuarantineRecord::decode("/c/quarantine", damaged, &record).is_corruption()) << offset;
  }
}

TEST(QuarantineRecord, RefusesWhatNobodyWrites) {
  const auto refused = [](size_t offset, uint32_t value) {
    std::string bytes = example().encode().substr(0, 4092);
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    vtkv::put_fixed32(&bytes, vtkv::crc32c(bytes));
    QuarantineRecord record;
    return QuarantineRecord::decode("q", bytes, &record).code();
  };
  EXPECT_EQ(refused(8, 2), vtkv::Status::Code::unsupported);
  EXPECT_EQ(refused(12, 501), vtkv::Status::Code::corruption);
  EXPECT_EQ(refused(32, 0), vtkv::Status::Code::corruption);            // epoch 0
  EXPECT_EQ(refused(52, 0x0b000000), vtkv::Status::Code::corruption);  // there is no class 11
}

}  // namespace
}  // namespace swimstore
