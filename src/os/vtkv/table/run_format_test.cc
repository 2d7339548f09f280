// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/run_format.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "vtkv/testing/format_page.h"

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

std::string encode_descriptor(const RunDescriptor& descriptor) {
  std::string bytes;
  descriptor.encode(&bytes);
  return bytes;
}

bool decode_descriptor(const std::string& bytes, RunDescriptor* descriptor) {
  return RunDescriptor::decode(bytes, uint64_t{1} << 45, descriptor).ok();
}

TEST(RunFormat, RunDescriptorIsAsOnThePage) {
  FormatCheck<RunDescriptor> check("Run descriptor", encode_descriptor, decode_descriptor);
  check.example("run descriptor", example());
  check.field("run id", 0x1122334455667788, &RunDescriptor::run_id);
  check.field("smallest sequence", 0x1122334455667788, &RunDescriptor::smallest_sequence);
  check.field("greatest sequence", 0x1122334455667788, &RunDescriptor::greatest_sequence);
  check.derived("number of spans", [](const RunDescriptor& it) { return PageValue(it.spans.size()); });
  std::string first = page_example("span with an index");
  first.back() = 15;  // where its index lies
  const std::string second = page_example("span without an index");
  check.part("spans", first + second + first, [](RunDescriptor& it) { it.spans.push_back(it.spans[0]); });
  check.derived("number of slices", [](const RunDescriptor& it) { return PageValue(it.slices.size()); });
  check.part("slices", "", [](RunDescriptor& it) { it.slices.clear(); });
  check.derived("number of tombstone blocks",
                [](const RunDescriptor& it) { return PageValue(it.tombstone_blocks.size()); });
  check.part("tombstone blocks", std::string("\1\1\1\1\2\1"),
             [](RunDescriptor& it) { it.tombstone_blocks.push_back(it.filter_blocks[0]); });
  check.derived("number of filter blocks", [](const RunDescriptor& it) { return PageValue(it.filter_blocks.size()); });
  check.part("filter blocks", std::string("\1\2\1\1\1\1"),
             [](RunDescriptor& it) { it.filter_blocks.push_back(it.tombstone_blocks[0]); });
  EXPECT_EQ(check.findings(), "");
  // Its lists are made of the structures below.
  const std::string bytes = encode_descriptor(example());
  EXPECT_EQ(bytes.substr(5, first.size() + second.size()), first + second);
  EXPECT_EQ(bytes.substr(6 + first.size() + second.size(), page_example("slice of a run").size()),
            page_example("slice of a run"));
  EXPECT_TRUE(page_example("slice of a run").ends_with(page_example("block range")));
}

// Of a descriptor that has nothing else.
RunDescriptor with_span(const Span& span) {
  RunDescriptor descriptor;
  descriptor.spans = {span};
  return descriptor;
}

TEST(RunFormat, SpanIsAsOnThePage) {
  const auto encode = [](const RunDescriptor& it) {
    const std::string bytes = encode_descriptor(it);
    return bytes.substr(4, bytes.size() - 4 - 3);
  };
  const auto decode = [](const std::string& bytes, RunDescriptor* it) {
    return decode_descriptor(std::string("\0\0\0\1", 4) + bytes + std::string(3, '\0'), it);
  };
  FormatCheck<RunDescriptor> check("Span of a run", encode, decode);
  Span with_index = example().spans[0];
  with_index.index_unit = 14;
  check.example("span with an index", with_span(with_index));
  check.example("span without an index", with_span(example().spans[1]));
  check.field("id", 0x2233445566778899, [](RunDescriptor& it) -> auto& { return it.spans[0].id; });
  check.field(
      "first unit", 0x11223344, [](RunDescriptor& it) { return PageValue(it.spans[0].offset / kUnitBytes); },
      [](RunDescriptor& it, const PageValue& value) { it.spans[0].offset = *value.number * kUnitBytes; });
  check.field("units", 0x1122, [](RunDescriptor& it) -> auto& { return it.spans[0].units; });
  check.field("index unit", 3, [](RunDescriptor& it) -> auto& { return it.spans[0].index_unit; });
  check.field("index units", 2, [](RunDescriptor& it) -> auto& { return it.spans[0].index_units; });
  EXPECT_EQ(check.findings(), "");
}

TEST(RunFormat, SliceIsAsOnThePage) {
  const auto before = [] {
    RunDescriptor descriptor;
    descriptor.spans = {example().spans[0], example().spans[0]};
    return descriptor;
  };
  const size_t offset = encode_descriptor(before()).size() - 2;
  const auto encode = [&](const RunDescriptor& it) {
    const std::string bytes = encode_descriptor(it);
    return bytes.substr(offset, bytes.size() - offset - 2);
  };
  const auto decode = [&](const std::string& bytes, RunDescriptor* it) {
    std::string whole = encode_descriptor(before());
    whole[offset - 1] = 1;
    return decode_descriptor(whole.insert(offset, bytes), it);
  };
  RunDescriptor descriptor = before();
  descriptor.slices = example().slices;
  FormatCheck<RunDescriptor> check("Slice of a run", encode, decode);
  check.example("slice of a run", descriptor);
  check.field("span", 1, [](RunDescriptor& it) -> auto& { return it.slices[0].span; });
  // The last key begins with as much of it as before.
  check.field("first key", "ape", [](RunDescriptor& it) -> auto& { return it.slices[0].blocks.first_key; });
  check.field("first sequence", 900, [](RunDescriptor& it) -> auto& { return it.slices[0].blocks.first_sequence; });
  check.part("blocks", std::string("\5") + page_example("block range").substr(1),
             [](RunDescriptor& it) { it.slices[0].blocks.unit = 5; });
  EXPECT_EQ(check.findings(), "");
}

TEST(RunFormat, BlockHandleIsAsOnThePage) {
  const auto encode = [](const BlockHandle& handle) {
    std::string bytes;
    handle.encode(&bytes);
    return bytes;
  };
  const auto decode = [](const std::string& bytes, BlockHandle* handle) {
    std::string_view cursor = bytes;
    return handle->decode(&cursor) && cursor.empty();
  };
  FormatCheck<BlockHandle> check("Block handle", encode, decode);
  check.example("block handle", {1, 300, 2});
  check.field("span", 0x11223344, &BlockHandle::span);
  check.field("unit", 0x11223344, &BlockHandle::unit);
  check.field("units", 0x11223344, &BlockHandle::units);
  EXPECT_EQ(check.findings(), "");
}

struct TombstoneExample {
  std::string end;
  std::vector<SequenceNumber> sequences;
};

TEST(RunFormat, RangeTombstoneIsAsOnThePage) {
  const auto encode = [](const TombstoneExample& it) {
    std::string bytes;
    TombstoneRange{it.end, it.sequences}.encode(&bytes);
    return bytes;
  };
  const auto decode = [](const std::string& bytes, TombstoneExample* it) {
    TombstoneRange range;
    const bool good = range.decode(bytes);
    *it = {std::string(range.end), range.sequences};
    return good;
  };
  FormatCheck<TombstoneExample> check("Range tombstone", encode, decode);
  check.example("range tombstone", {"hi", {300, 7}});
  check.field("end", "another end", &TombstoneExample::end);
  check.derived("count", [](const TombstoneExample& it) { return PageValue(it.sequences.size()); });
  check.part("sequences", "\x08\x07\x06", [](TombstoneExample& it) { it.sequences = {8, 7, 6}; });
  EXPECT_EQ(check.findings(), "");
  TombstoneExample read;
  EXPECT_FALSE(decode(std::string("\1z\2\7\0", 5), &read)) << "sequence 0";
  EXPECT_FALSE(decode("\1z\2\7", &read)) << "cut";
  EXPECT_FALSE(decode("\1z\1\7x", &read)) << "left over";
}

TEST(RunFormat, BlockRangeIsAsOnThePage) {
  const auto encode = [](const BlockRange& range) {
    std::string bytes;
    range.encode(&bytes);
    return bytes;
  };
  const auto decode = [](const std::string& bytes, BlockRange* range) {
    std::string_view cursor = bytes;
    range->first_key = "apple";
    range->first_sequence = 12;
    return range->decode(&cursor) && cursor.empty();
  };
  FormatCheck<BlockRange> check("Block range", encode, decode);
  check.example("block range", example().slices[0].blocks);
  check.field("unit", 0x11223344, &BlockRange::unit);
  check.field("units", 0x11223344, &BlockRange::units);
  check.field("entries", 0x1122334455667788, &BlockRange::entries);
  check.field("doubtful", 299, &BlockRange::doubtful);
  check.field("pointers", 299, &BlockRange::pointers);
  check.field("smallest sequence", 10, &BlockRange::smallest_sequence);
  check.derived("sequences",
                [](const BlockRange& it) { return PageValue(it.greatest_sequence - it.smallest_sequence); });
  check.derived("shared", [](const BlockRange& it) { return PageValue(it.last_key == "apricot" ? 2 : 1); });
  check.part("rest of the last key", "zoo", [](BlockRange& it) { it.last_key = "azoo"; });
  EXPECT_EQ(check.findings(), "");
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
  EXPECT_TRUE(refused([](RunDescriptor* d) { d->spans.push_back({.id = 99, .offset = 0, .units = 0}); })) << "empty";
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
