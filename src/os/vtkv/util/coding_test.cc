// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/coding.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace vtkv {
namespace {

const std::vector<uint64_t>& edge_values() {
  static const std::vector<uint64_t> values = [] {
    std::vector<uint64_t> result{0};
    for (unsigned bit = 0; bit < 64; ++bit) {
      const uint64_t power = uint64_t{1} << bit;
      result.insert(result.end(), {power - 1, power, power + 1});
    }
    result.push_back(std::numeric_limits<uint64_t>::max());
    return result;
  }();
  return values;
}

TEST(Coding, FixedIsLittleEndian) {
  std::string bytes;
  put_fixed32(&bytes, 0x04030201);
  put_fixed64(&bytes, 0x0807060504030201);
  EXPECT_EQ(bytes, std::string("\1\2\3\4\1\2\3\4\5\6\7\10", 12));
}

TEST(Coding, OrderedBytesSortLikeNumbers) {
  for (const uint64_t a : edge_values()) {
    for (const uint64_t b : edge_values()) {
      std::string bytes_a;
      std::string bytes_b;
      put_ordered64(&bytes_a, a);
      put_ordered64(&bytes_b, b);
      ASSERT_EQ(a < b, bytes_a < bytes_b) << a << " " << b;
    }
  }
}

TEST(Coding, EveryIntegerFormRoundTrips) {
  for (const uint64_t value : edge_values()) {
    const auto value32 = static_cast<uint32_t>(value);
    std::string bytes;
    put_fixed8(&bytes, static_cast<uint8_t>(value));
    put_fixed16(&bytes, static_cast<uint16_t>(value));
    put_fixed32(&bytes, value32);
    put_fixed64(&bytes, value);
    put_ordered32(&bytes, value32);
    put_ordered64(&bytes, value);
    put_varint32(&bytes, value32);
    put_varint64(&bytes, value);
    std::string_view cursor = bytes;
    uint8_t u8 = 0;
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    ASSERT_TRUE(get_fixed8(&cursor, &u8) && u8 == static_cast<uint8_t>(value));
    ASSERT_TRUE(get_fixed16(&cursor, &u16) && u16 == static_cast<uint16_t>(value));
    ASSERT_TRUE(get_fixed32(&cursor, &u32) && u32 == value32);
    ASSERT_TRUE(get_fixed64(&cursor, &u64) && u64 == value);
    ASSERT_TRUE(get_ordered32(&cursor, &u32) && u32 == value32);
    ASSERT_TRUE(get_ordered64(&cursor, &u64) && u64 == value);
    ASSERT_TRUE(get_varint32(&cursor, &u32) && u32 == value32);
    ASSERT_TRUE(get_varint64(&cursor, &u64) && u64 == value);
    EXPECT_TRUE(cursor.empty());
  }
}

TEST(Coding, TruncatedInputIsRefusedAndTheCursorStays) {
  std::string varint;
  put_varint64(&varint, std::numeric_limits<uint64_t>::max());
  std::string prefixed;
  put_length_prefixed(&prefixed, "swimming");
  uint64_t value = 0;
  std::string_view text;
  for (size_t length = 0; length < varint.size(); ++length) {
    std::string_view cursor(varint.data(), length);
    EXPECT_FALSE(get_varint64(&cursor, &value));
    EXPECT_EQ(cursor.size(), length);
  }
  for (size_t length = 0; length < prefixed.size(); ++length) {
    std::string_view cursor(prefixed.data(), length);
    EXPECT_FALSE(get_length_prefixed(&cursor, &text));
    EXPECT_EQ(cursor.size(), length);
  }
  std::string_view seven("1234567");
  EXPECT_FALSE(get_fixed64(&seven, &value));
  EXPECT_EQ(seven.size(), 7U);
}

TEST(Coding, VarintBeyondItsWidthIsRefused) {
  std::string wide;
  put_varint64(&wide, uint64_t{1} << 32);
  std::string_view cursor = wide;
  uint32_t value32 = 0;
  EXPECT_FALSE(get_varint32(&cursor, &value32));

  const std::string endless(16, '\xff');
  cursor = endless;
  uint64_t value64 = 0;
  EXPECT_FALSE(get_varint64(&cursor, &value64));
  const std::string overflow = std::string(9, '\xff') + "\x02";
  cursor = overflow;
  EXPECT_FALSE(get_varint64(&cursor, &value64));
}

TEST(Coding, LengthPrefixedStringsFollowEachOther) {
  std::string bytes;
  put_length_prefixed(&bytes, "");
  put_length_prefixed(&bytes, std::string(300, 'x'));
  std::string_view cursor = bytes;
  std::string_view text = "?";
  ASSERT_TRUE(get_length_prefixed(&cursor, &text));
  EXPECT_EQ(text, "");
  ASSERT_TRUE(get_length_prefixed(&cursor, &text));
  EXPECT_EQ(text, std::string(300, 'x'));
  EXPECT_FALSE(get_length_prefixed(&cursor, &text));
}

}  // namespace
}  // namespace vtkv
