// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/key_space.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "vtkv/testing/format_page.h"

namespace vtkv {
namespace {

using Pair = std::pair<std::string, std::string>;

TEST(KeySpace, KeyOfAKeyValueDbIsAsOnThePage) {
  FormatCheck<Pair> check(
      "Keys of a KeyValueDB", [](const Pair& it) { return encode_key(it.first, it.second); },
      [](const std::string& bytes, Pair* it) { return decode_key(bytes, &it->first, &it->second); });
  check.example("key of a KeyValueDB", {"paxos\xff", std::string("12\0", 3)});
  check.part("prefix", std::string("\1\1\1\2\2\xfd\xfe\1\0", 9),
             [](Pair& it) { it.first = std::string("\0\1\2\xfd\xfe", 5); });
  check.field("key", std::string("\0\1\xfe\xff", 4), &Pair::second);
  EXPECT_EQ(check.findings(), "");
}

// Every string of up to `length` bytes from the ones that are special, and two that are not.
std::vector<std::string> strings(size_t length) {
  const std::string alphabet(
      "\x00\x01\x02"
      "a"
      "\xfd\xfe\xff",
      7);
  std::vector<std::string> all{""};
  for (size_t from = 0; all.back().size() < length;) {
    const size_t to = all.size();
    for (; from < to; ++from) {
      for (const char c : alphabet) {
        all.push_back(all[from] + c);
      }
    }
  }
  return all;
}

TEST(KeySpace, OrdersByPrefixThenKey) {
  std::vector<std::pair<Pair, std::string>> all;
  for (const std::string& prefix : strings(2)) {
    for (const std::string& key : strings(1)) {
      all.push_back({{prefix, key}, encode_key(prefix, key)});
    }
  }
  for (const auto& [pair, encoded] : all) {
    for (const auto& [other_pair, other_encoded] : all) {
      ASSERT_EQ(pair < other_pair, encoded < other_encoded);
    }
  }
}

TEST(KeySpace, GivesBackWhatItWasGiven) {
  for (const std::string& prefix : strings(3)) {
    for (const std::string& key : strings(2)) {
      Pair decoded;
      ASSERT_TRUE(decode_key(encode_key(prefix, key), &decoded.first, &decoded.second));
      ASSERT_EQ(decoded, Pair(prefix, key));
      ASSERT_EQ(key_part(encode_key(prefix, key)), key);
    }
  }
}

TEST(KeySpace, ARangeHoldsItsPrefixAndNothingElse) {
  for (const std::string& prefix : strings(2)) {
    const EncodedRange range = range_of_prefix(prefix);
    for (const std::string& other : strings(2)) {
      for (const std::string& key : {std::string(), std::string(1, '\0'), std::string("\xff\xff\xff")}) {
        const std::string encoded = encode_key(other, key);
        ASSERT_EQ(range.lower <= encoded && encoded < range.upper, other == prefix);
      }
    }
  }
}

TEST(KeySpace, EverythingIsBounded) {
  const EncodedRange all = range_of_everything();
  for (const std::string& prefix : strings(2)) {
    ASSERT_LE(all.lower, encode_key(prefix, ""));
    ASSERT_LT(encode_key(prefix, "\xff\xff\xff\xff"), all.upper);
  }
}

TEST(KeySpace, StoresTextAsItIs) {
  EXPECT_EQ(encode_key("paxos", "17"), std::string("paxos\0"
                                                   "17",
                                                   8));
}

TEST(KeySpace, RefusesWhatItDidNotWrite) {
  std::string prefix = "p", key = "k";
  EXPECT_FALSE(decode_key("no end", &prefix, &key));
  EXPECT_FALSE(decode_key(std::string("\x01\x03\x00", 3), &prefix, &key));
  EXPECT_FALSE(decode_key(std::string("\xfe\x00", 2), &prefix, &key));
  EXPECT_EQ(prefix + key, "pk");
}

}  // namespace
}  // namespace vtkv
