// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/onode_record.h"

#include <random>

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

OnodeRecord example() {
  OnodeRecord record;
  record.nid = 300;
  record.size = 5000;
  record.set(OnodeRecord::has_omap, true);
  record.set(OnodeRecord::has_hints, true);
  record.set(OnodeRecord::shard_inline, true);
  record.expected_object_size = 4 << 20;
  record.expected_write_size = 4096;
  record.alloc_hint_flags = 5;
  record.attrs["_"] = ceph::bufferptr("info", 4);
  record.attrs["snapset"] = ceph::bufferptr("", 0);
  return record;
}

ExtentShard one_extent() {
  ExtentShard shard;
  shard.extents.push_back({0, 2, false, {1, 9}, 0, 2});
  shard.crc32c[0] = 1;
  shard.crc32c[1] = 2;
  return shard;
}

std::string encoded(const OnodeRecord& record) {
  std::string bytes;
  encode_onode(record, one_extent(), &bytes);
  return bytes;
}

struct Onode {
  OnodeRecord record;
  ExtentShard shard;
};

std::string encode_both(const Onode& onode) {
  std::string bytes;
  encode_onode(onode.record, onode.shard, &bytes);
  return bytes;
}

bool decode_both(const std::string& bytes, Onode* onode) { return decode_onode(bytes, &onode->record, &onode->shard); }

TEST(OnodeRecord, OnodeIsAsOnThePage) {
  FormatCheck<Onode> check("O: onode", encode_both, decode_both);
  Onode plain;
  plain.record.nid = 300;
  plain.record.size = 5000;
  check.example("onode", plain);
  check.example("onode with all it may have", {example(), one_extent()});
  const auto field = [&check](const std::string& row, PageValue other, auto member) {
    check.field(row, std::move(other), [member](Onode& it) -> auto& { return it.record.*member; });
  };
  check.constant("version", kOnodeRecordVersion);
  field("flags", OnodeRecord::has_omap, &OnodeRecord::flags);
  check.names("flags", {{"there may be omap", OnodeRecord::has_omap},
                        {"the only extent shard is here", OnodeRecord::shard_inline},
                        {"there are hints", OnodeRecord::has_hints},
                        {"its omap is in parts", OnodeRecord::omap_in_parts}});
  field("nid", 0x22334455667788, &OnodeRecord::nid);
  field("size", 0x11223344, &OnodeRecord::size);
  field("expected object size", 0x1122334455667788, &OnodeRecord::expected_object_size);
  field("expected write size", 0x1122334455667788, &OnodeRecord::expected_write_size);
  field("hint flags", 0x11223344, &OnodeRecord::alloc_hint_flags);
  check.derived("number of attributes", [](const Onode& it) { return PageValue(it.record.attrs.size()); });
  check.part("attributes", vtkv::page_example("attribute of an onode"),
             [](Onode& it) { it.record.attrs.erase("snapset"); });
  check.part("extents", std::string("\1\0", 2), [](Onode& it) { it.shard.extents.clear(); });
  EXPECT_EQ(check.findings(), "");
}

TEST(OnodeRecord, AttributeIsAsOnThePage) {
  struct Attribute {
    std::string name, value;
  };
  const auto encode = [](const Attribute& attribute) {
    Onode onode;
    onode.record.attrs[attribute.name] = ceph::buffer::copy(attribute.value.data(), attribute.value.size());
    return encode_both(onode).substr(5);
  };
  const auto decode = [](const std::string& bytes, Attribute* attribute) {
    Onode onode;
    const bool good = decode_both(std::string("\1\0\0\0\1", 5) + bytes, &onode);
    for (const auto& [name, value] : onode.record.attrs) {
      *attribute = {name, std::string(value.c_str(), value.length())};
    }
    return good;
  };
  FormatCheck<Attribute> check("Attribute of an onode", encode, decode);
  check.example("attribute of an onode", {"_", "info"});
  check.field("name", "another name", &Attribute::name);
  check.field("value", std::string(200, 'x'), &Attribute::value);
  EXPECT_EQ(check.findings(), "");
}

TEST(OnodeRecord, DecodesWhatItEncoded) {
  OnodeRecord record;
  ExtentShard shard;
  ASSERT_TRUE(decode_onode(encoded(example()), &record, &shard));
  EXPECT_EQ(record.nid, 300u);
  EXPECT_EQ(record.size, 5000u);
  EXPECT_EQ(record.flags, example().flags);
  EXPECT_EQ(record.expected_object_size, 4u << 20);
  EXPECT_EQ(record.expected_write_size, 4096u);
  EXPECT_EQ(record.alloc_hint_flags, 5u);
  ASSERT_EQ(record.attrs.size(), 2u);
  EXPECT_EQ(std::string(record.attrs["_"].c_str(), record.attrs["_"].length()), "info");
  EXPECT_EQ(shard.extents, one_extent().extents);
}

TEST(OnodeRecord, RefusesWhatIsCutOffTooLongOrFromTheFuture) {
  const std::string bytes = encoded(example());
  OnodeRecord record;
  ExtentShard shard;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_onode(bytes.substr(0, length), &record, &shard)) << length;
  }
  EXPECT_FALSE(decode_onode(bytes + "x", &record, &shard));
  std::string future = bytes;
  future[0] = 2;
  EXPECT_FALSE(decode_onode(future, &record, &shard));
  std::string flags = bytes;
  flags[1] |= 0x40;
  EXPECT_FALSE(decode_onode(flags, &record, &shard));
}

TEST(OnodeRecord, RefusesIdsAndSizesThatNoObjectHas) {
  for (const auto& [nid, size] : {std::pair<uint64_t, uint64_t>{UINT64_MAX, 5000},
                                  {kObjectIdMax + 1, 5000},
                                  {300, kObjectBytesMax + 1},
                                  {300, UINT64_MAX}}) {
    OnodeRecord record;
    record.nid = nid;
    record.size = size;
    std::string bytes;
    encode_onode(record, ExtentShard(), &bytes);
    ExtentShard shard;
    EXPECT_FALSE(decode_onode(bytes, &record, &shard)) << nid << " " << size;
  }
}

TEST(OnodeRecord, MutatedBytesDecodeOrAreRefused) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 50000; ++i) {
    std::string bytes = encoded(example());
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    OnodeRecord record;
    ExtentShard shard;
    if (decode_onode(bytes, &record, &shard) && record.test(OnodeRecord::shard_inline)) {
      ASSERT_LE(record.size, kShardBytes);
    }
  }
}

}  // namespace
}  // namespace swimstore
