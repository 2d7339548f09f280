// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/quarantine_record.h"

#include <gtest/gtest.h>

#include <cstring>

#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

QuarantineRecord example() {
  QuarantineRecord record;
  for (size_t i = 0; i < record.uuid.size(); i++) {
    record.uuid[i] = static_cast<uint8_t>(0xb0 + i);
  }
  record.epoch = 7;
  record.slots = {{0, 17}, {10, 3}};
  return record;
}

TEST(QuarantineRecord, GoldenBytes) {
  std::string expected(
      "SWIMQUAR"
      "\x01\x00\x00\x00"                                                  // version
      "\x02\x00\x00\x00"                                                  // slots
      "\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xbb\xbc\xbd\xbe\xbf"  // uuid
      "\x07\x00\x00\x00\x00\x00\x00\x00"                                  // epoch
      "\x11\x00\x00\x00\x00\x00\x00\x00"                                  // slot 17 of 4K
      "\x03\x00\x00\x00\x00\x00\x00\x0a",                                 // slot 3 of 4M
      56);
  expected.resize(4092);
  vtkv::put_fixed32(&expected, vtkv::crc32c(expected));
  EXPECT_EQ(example().encode(), expected);
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
