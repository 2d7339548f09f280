// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/omap_row.h"

#include <gtest/gtest.h>

#include "swimstore/format/note_record.h"
#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

struct Row {
  OmapRow::Kind kind = OmapRow::Kind::value;
  uint64_t write_id = 0;
  std::string value;
};

std::string encode(const Row& row) {
  std::string bytes;
  encode_omap_row({row.kind, row.write_id, row.value}, &bytes);
  return bytes;
}

bool decode(const std::string& bytes, Row* row) {
  OmapRow decoded;
  const bool good = decode_omap_row(bytes, &decoded);
  *row = {decoded.kind, decoded.write_id, std::string(decoded.value)};
  return good;
}

TEST(OmapRow, RowIsAsOnThePage) {
  FormatCheck<Row> check("P: row of an omap in parts", encode, decode);
  check.example("row of an omap in parts", {OmapRow::Kind::value, 300, "abc"});
  check.constant("version", kOmapRowVersion);
  check.constant("kind", static_cast<uint64_t>(OmapRow::Kind::value));
  check.names("kind", {{"value", static_cast<uint64_t>(OmapRow::Kind::value)},
                       {"tombstone", static_cast<uint64_t>(OmapRow::Kind::tombstone)}});
  check.field("write id", 0x22334455667788, &Row::write_id);
  check.field("value", std::string("\0\1", 2), &Row::value);
  EXPECT_EQ(check.findings(), "");
}

TEST(OmapRow, FloorIsAsOnThePage) {
  FormatCheck<uint64_t> check("F: floor of an omap in parts", encode_omap_floor, decode_omap_floor);
  check.example("floor of an omap in parts", 300);
  check.constant("version", kOmapFloorVersion);
  check.field(
      "write id", 0x22334455667788, [](uint64_t& it) { return PageValue(it); },
      [](uint64_t& it, const PageValue& value) { it = value.number.value(); });
  EXPECT_EQ(check.findings(), "");
}

TEST(OmapRow, ATombstoneHasNoValue) {
  Row row;
  EXPECT_TRUE(decode(encode({OmapRow::Kind::tombstone, 7, ""}), &row));
  EXPECT_EQ(row.kind, OmapRow::Kind::tombstone);
  EXPECT_EQ(row.write_id, 7u);
  EXPECT_FALSE(decode(encode({OmapRow::Kind::tombstone, 7, "x"}), &row));
  EXPECT_TRUE(decode(encode({OmapRow::Kind::value, 7, ""}), &row));
}

TEST(OmapRow, WhatNoProgramWroteIsRefused) {
  Row row;
  for (const char* bytes : {"", "\1", "\1\1", "\2\1\7", "\1\3\7", "\1\1\x80"}) {
    EXPECT_FALSE(decode(bytes, &row)) << bytes;
  }
  EXPECT_TRUE(decode(encode({OmapRow::Kind::value, kObjectIdMax, ""}), &row));
  EXPECT_FALSE(decode(encode({OmapRow::Kind::value, kObjectIdMax + 1, ""}), &row));
  uint64_t floor = 0;
  EXPECT_FALSE(decode_omap_floor(encode_omap_floor(kObjectIdMax + 1), &floor));
  EXPECT_FALSE(decode_omap_floor(encode_omap_floor(7) + "x", &floor));
}

}  // namespace
}  // namespace swimstore
