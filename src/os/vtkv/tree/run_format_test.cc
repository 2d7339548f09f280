#include "vtkv/tree/run_format.h"

#include <gtest/gtest.h>

#include <random>

#include "vtkv/testing/golden.h"

namespace vtkv {
namespace {

RunDescriptor example() {
  RunDescriptor descriptor;
  descriptor.run_id = 5;
  descriptor.entries = 300;
  descriptor.removals = 2;
  descriptor.smallest_sequence = 9;
  descriptor.greatest_sequence = 1000;
  descriptor.smallest_key = "a";
  descriptor.greatest_key = "zz";
  descriptor.spans = {{0x0102030405060708, 0x4000, 16, true}, {0x1112131415161718, 0x20000, 3, false}};
  descriptor.index = {{"a", 12, {1, 0, 1}}};
  descriptor.removal_blocks = {{1, 1, 1}};
  descriptor.filter_blocks = {{1, 2, 1}};
  return descriptor;
}

TEST(RunFormat, Golden) {
  std::string encoded;
  example().encode(&encoded);
  EXPECT_EQ(hex_dump(encoded), hex_dump(bytes_from_hex(R"(
    05                              # run id
    ac 02 02                        # 300 entries, 2 of them removals
    09 e8 07                        # sequences 9 to 1000
    01 61 02 7a 7a                  # keys "a" to "zz"
    02                              # spans
    08 07 06 05 04 03 02 01         #   id
    04 10 01                        #   offset 4 * 4096, 16 units, entries
    18 17 16 15 14 13 12 11         #   id
    20 03 00                        #   offset 32 * 4096, 3 units, others
    01                              # index blocks
    01 61 0c 01 00 01               #   first key "a" at 12; span 1, unit 0, 1 unit
    01 01 01 01                     # removals blocks: span 1, unit 1, 1 unit
    01 01 02 01                     # filter blocks: span 1, unit 2, 1 unit
  )")));
}

TEST(RunFormat, DecodesWhatItEncoded) {
  std::string encoded, again;
  example().encode(&encoded);
  RunDescriptor decoded;
  ASSERT_TRUE(RunDescriptor::decode(encoded, 1 << 20, &decoded).ok());
  decoded.encode(&again);
  EXPECT_EQ(again, encoded);
  EXPECT_EQ(decoded.bytes(), 19u * 4096);
}

TEST(RunFormat, RefusesSpansBeyondTheFile) {
  std::string encoded;
  example().encode(&encoded);
  RunDescriptor decoded;
  EXPECT_TRUE(RunDescriptor::decode(encoded, 35 * 4096, &decoded).ok());
  EXPECT_TRUE(RunDescriptor::decode(encoded, 34 * 4096, &decoded).is_corruption());
}

TEST(RunFormat, RefusesHandlesOutsideTheirSpan) {
  for (const BlockHandle handle : {BlockHandle{2, 0, 1}, BlockHandle{1, 3, 1}, BlockHandle{1, 2, 2},
                                   BlockHandle{1, 0, 0}, BlockHandle{1, UINT32_MAX, 2}}) {
    RunDescriptor descriptor = example(), decoded;
    descriptor.filter_blocks = {handle};
    std::string encoded;
    descriptor.encode(&encoded);
    EXPECT_TRUE(RunDescriptor::decode(encoded, 1 << 20, &decoded).is_corruption());
  }
}

TEST(RunFormat, RefusesAnIndexOutOfOrder) {
  RunDescriptor descriptor = example(), decoded;
  descriptor.index = {{"b", 1, {1, 0, 1}}, {"a", 1, {1, 0, 1}}};
  std::string encoded;
  descriptor.encode(&encoded);
  EXPECT_TRUE(RunDescriptor::decode(encoded, 1 << 20, &decoded).is_corruption());
}

TEST(RunFormat, AnyPrefixAndAnyGarbageIsRefusedOrHarmless) {
  std::string encoded;
  example().encode(&encoded);
  RunDescriptor decoded;
  for (size_t length = 0; length < encoded.size(); ++length) {
    EXPECT_TRUE(RunDescriptor::decode(encoded.substr(0, length), 1 << 20, &decoded).is_corruption()) << length;
  }
  EXPECT_TRUE(RunDescriptor::decode(encoded + "x", 1 << 20, &decoded).is_corruption());
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = encoded;
    bad[random() % bad.size()] = static_cast<char>(random());
    bad[random() % bad.size()] = static_cast<char>(random());
    if (!RunDescriptor::decode(bad, 1 << 20, &decoded).ok()) {
      continue;
    }
    for (const Span& span : decoded.spans) {
      ASSERT_LE(span.offset, 1u << 20);
      ASSERT_LE(span.offset + span.bytes(), 1u << 20);
    }
    for (const IndexRoot& root : decoded.index) {
      ASSERT_TRUE(is_inside(root.block, decoded.spans));
    }
  }
}

}  // namespace
}  // namespace vtkv
