// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/run_format.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "vtkv/testing/golden.h"

namespace vtkv {
namespace {

RunDescriptor example() {
  RunDescriptor descriptor;
  descriptor.run_id = 5;
  descriptor.smallest_sequence = 9;
  descriptor.greatest_sequence = 1000;
  descriptor.spans = {{0x0102030405060708, 0x4000, 16, 15, 1}, {0x1112131415161718, 0x20000, 3}};
  descriptor.slices = {{0,
                        {.unit = 4,
                         .units = 3,
                         .first_key = "apple",
                         .first_sequence = 12,
                         .last_key = "apricot",
                         .entries = 300,
                         .doubtful = 2,
                         .pointers = 1,
                         .smallest_sequence = 9,
                         .greatest_sequence = 1000}}};
  descriptor.tombstone_blocks = {{1, 1, 1}};
  descriptor.filter_blocks = {{1, 2, 1}};
  return descriptor;
}

TEST(RunFormat, Golden) {
  std::string encoded;
  example().encode(&encoded);
  EXPECT_EQ(hex_dump(encoded), hex_dump(bytes_from_hex(R"(
    05                              # run id
    09 e8 07                        # sequences 9 to 1000
    02                              # spans
    08 07 06 05 04 03 02 01         #   id
    04 10 01 0f                     #   offset 4 * 4096, 16 units; index: 1 unit, at unit 15
    18 17 16 15 14 13 12 11         #   id
    20 03 00                        #   offset 32 * 4096, 3 units, no entries
    01                              # slices
    00                              #   of span 0
    05 61 70 70 6c 65 0c            #   first key "apple" at 12
    04 03                           #   unit 4, 3 units
    ac 02 02 01                     #   300 entries, 2 doubtful, 1 pointer
    09 df 07                        #   sequences from 9, 991 more
    02 05 72 69 63 6f 74            #   last key: 2 bytes of the first, then "ricot"
    01 01 01 01                     # tombstone blocks: span 1, unit 1, 1 unit
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
  EXPECT_EQ(decoded.bytes(), (3u + 1u + 3u) * 4096);
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

TEST(RunFormat, RefusesPartsThatContradict) {
  const auto refused = [](const std::function<void(RunDescriptor*)>& spoil) {
    RunDescriptor descriptor = example(), decoded;
    spoil(&descriptor);
    std::string encoded;
    descriptor.encode(&encoded);
    return RunDescriptor::decode(encoded, 1 << 20, &decoded).is_corruption();
  };
  EXPECT_FALSE(refused([](RunDescriptor*) {}));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices.push_back(d->slices[0]); })) << "out of order";
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].span = 2; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].span = 1; })) << "no entries there";
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.units = 12; })) << "into the index";
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.units = UINT32_MAX - 3; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.units = 0; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.entries = 0; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.doubtful = 301; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.last_key = "aaa"; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->slices[0].blocks.first_sequence = 1001; }));
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->spans[0].index_unit = 16; })) << "index outside";
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->spans[0].index_units = 2; })) << "index outside";
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
    for (const SpanSlice& slice : decoded.slices) {
      ASSERT_LE(slice.blocks.end_unit(), decoded.spans.at(slice.span).units);
    }
  }
}

}  // namespace
}  // namespace vtkv
