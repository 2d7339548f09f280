// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/collection_record.h"

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

CollectionRecord example() { return {0x12345678, 5, 300, 7}; }

bool decode(const std::string& bytes, CollectionRecord* record) { return decode_collection(bytes, record); }

TEST(CollectionRecord, CollectionIsAsOnThePage) {
  FormatCheck<CollectionRecord> check("C: collection", encode_collection, decode);
  check.example("collection", example());
  check.constant("version", kCollectionRecordVersion);
  check.field("bits", 31, &CollectionRecord::bits);
  check.constant("number of hash ranges", 1);
  const CollectionRecord other(0x0a0b0c0d, 3, 9, 7);
  const std::string encoded = encode_collection(other);
  check.part("hash ranges", encoded.substr(3, encoded.size() - 4),
             [&](CollectionRecord& it) { it.hash_ranges = other.hash_ranges; });
  check.field("generation", 0x22334455, &CollectionRecord::generation);
  EXPECT_EQ(check.findings(), "");
}

// As older programs read and write it.
TEST(CollectionRecord, OneOfAStoreWithOneCubeIsOfVersionOne) {
  const CollectionRecord record(0x12345678, 5, 0, 0);
  const std::string bytes = encode_collection(record);
  EXPECT_EQ(bytes, std::string("\1\5\1\x78\x56\x34\x12\5\0", 9));
  CollectionRecord decoded;
  ASSERT_TRUE(decode(bytes, &decoded));
  EXPECT_EQ(decoded, record);
}

TEST(CollectionRecord, HashRangeIsAsOnThePage) {
  FormatCheck<CollectionRecord> check(
      "Hash range",
      [](const CollectionRecord& it) {
        const std::string record = encode_collection(it);
        return record.substr(3, record.size() - 4);
      },
      [](const std::string& bytes, CollectionRecord* it) { return decode("\2\5\1" + bytes + "\7", it); });
  check.example("hash range", example());
  check.field("hash prefix", 0x22334455, [](CollectionRecord& it) -> auto& { return it.hash_ranges[0].hash_prefix; });
  check.field("bits", 31, [](CollectionRecord& it) -> auto& { return it.hash_ranges[0].bits; });
  check.field("cube", 0x22334455, [](CollectionRecord& it) -> auto& { return it.hash_ranges[0].cube; });
  EXPECT_EQ(check.findings(), "");
}

}  // namespace
}  // namespace swimstore
