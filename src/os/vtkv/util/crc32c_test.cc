// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace vtkv {
namespace {

std::string random_bytes(size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(length, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

// The definition, one bit at a time.
uint32_t crc32c_by_definition(std::string_view data) {
  uint32_t state = 0xffffffff;
  for (const char byte : data) {
    state ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78U : 0U);
    }
  }
  return ~state;
}

// The test vectors of RFC 3720, B.4.
TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(Crc32c, AgreesWithTheDefinition) {
  for (size_t length = 0; length < 300; ++length) {
    const std::string data = random_bytes(length, static_cast<uint32_t>(length));
    ASSERT_EQ(crc32c(data), crc32c_by_definition(data)) << length;
  }
}

TEST(Crc32c, ExtendEqualsTheWhole) {
  const std::string data = random_bytes(1000, 1);
  for (size_t split = 0; split <= data.size(); split += 37) {
    const uint32_t head = crc32c(data.data(), split);
    EXPECT_EQ(crc32c_extend(head, data.data() + split, data.size() - split), crc32c(data));
  }
}

TEST(Crc32c, CombineEqualsTheWhole) {
  const std::string head = random_bytes(777, 2);
  for (const size_t length : {0, 1, 2, 511, 512, 4095, 4096, 4097, 65536, 100001}) {
    const std::string tail = random_bytes(length, 3);
    EXPECT_EQ(crc32c_combine(crc32c(head), crc32c(tail), length), crc32c(head + tail)) << length;
  }
}

TEST(Crc32c, CombineOfBlocksEqualsTheWrite) {
  const std::string data = random_bytes(64 * 4096, 4);
  uint32_t combined = 0;
  for (size_t offset = 0; offset < data.size(); offset += 4096) {
    combined = crc32c_combine(combined, crc32c(data.data() + offset, 4096), 4096);
  }
  EXPECT_EQ(combined, crc32c(data));
}

}  // namespace
}  // namespace vtkv
