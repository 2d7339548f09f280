// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/slot_references.h"

#include <gtest/gtest.h>

#include <random>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;
using Counts = SlotReferences::Counts;

std::string encode_counts(const Counts& counts) { return SlotReferences::encode(counts); }

TEST(SlotReferences, SlotReferencesAreAsOnThePage) {
  const auto decode = [](const std::string& bytes, Counts* counts) {
    counts->assign(8, 1);
    return SlotReferences::decode(bytes, *counts);
  };
  FormatCheck<Counts> check("S: slot references", encode_counts, decode);
  check.example("slot references", {1, 2, 2, 1, 1, 1, 5, 1});
  check.constant("version", kSlotReferencesVersion);
  check.part("runs", vtkv::page_example("run of references"), [](Counts& it) { it = {1, 1, 1, 5, 1, 1, 1, 1}; });
  EXPECT_EQ(check.findings(), "");
  EXPECT_EQ(encode_counts({1, 2, 2, 1, 1, 1, 5, 0}), vtkv::page_example("slot references"));
}

TEST(SlotReferences, RunOfReferencesIsAsOnThePage) {
  struct Run {
    uint32_t gap = 0, blocks = 0, references = 0;
  };
  const auto encode = [](const Run& run) {
    Counts counts(run.gap, 1);
    counts.resize(run.gap + run.blocks, run.references);
    return encode_counts(counts).substr(1);
  };
  const auto decode = [](const std::string& bytes, Run* run) {
    Counts counts(1000, 0);
    const bool good = SlotReferences::decode(std::string(1, kSlotReferencesVersion) + bytes, counts);
    for (const uint32_t count : counts) {
      run->gap += count == 0 && run->blocks == 0;
      run->blocks += count > 0;
      run->references = std::max(run->references, count);
    }
    return good;
  };
  FormatCheck<Run> check("Run of references", encode, decode);
  check.example("run of references", {3, 1, 5});
  check.field("gap", 300, &Run::gap);
  check.field("blocks", 300, &Run::blocks);
  check.field(
      "references less 2", 300, [](Run& it) { return PageValue(it.references - 2); },
      [](Run& it, const PageValue& value) { it.references = static_cast<uint32_t>(*value.number + 2); });
  EXPECT_EQ(check.findings(), "");
}

TEST(SlotReferences, NothingIsKeptOfBlocksWithOneOrNone) { EXPECT_EQ(SlotReferences::encode(Counts{1, 0, 1, 1}), ""); }

TEST(SlotReferences, DecodesWhatItEncoded) {
  std::mt19937 random(5);
  for (int round = 0; round < 1000; ++round) {
    Counts counts(1 + random() % 64);
    for (uint32_t& count : counts) {
      count = 1 + random() % 3;
    }
    const std::string value = SlotReferences::encode(counts);
    Counts decoded(counts.size(), 1);
    ASSERT_EQ(value.empty() || SlotReferences::decode(value, decoded), true);
    ASSERT_EQ(decoded, counts);
  }
}

TEST(SlotReferences, RefusesWhatCannotBe) {
  Counts counts(8, 1);
  EXPECT_FALSE(SlotReferences::decode("", counts));
  EXPECT_FALSE(SlotReferences::decode("\x02", counts));
  EXPECT_FALSE(SlotReferences::decode("\x05", counts));                             // version 1: a single count
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x00\x00", 4), counts));  // a run of no block
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x09\x00", 4), counts));  // past the slot's end
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x01", 3), counts));
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x01\xff\xff\xff\xff\x0f", 8), counts));
  EXPECT_TRUE(SlotReferences::decode(std::string("\x02\x00\x08\x00", 4), counts));
}

}  // namespace
}  // namespace swimstore
