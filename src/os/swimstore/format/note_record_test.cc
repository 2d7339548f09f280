// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/note_record.h"

#include <gtest/gtest.h>

#include <random>

#include "swimstore/format/format_version.h"
#include "vtkv/testing/format_page.h"

namespace swimstore {
namespace {

using vtkv::FormatCheck;
using vtkv::PageValue;

CubeDelta example() {
  CubeDelta delta;
  delta.allocation.allocated = {SlotBlocks::all({0, 5}), SlotBlocks::all({0, 6, 10}), SlotBlocks::all({10, 1}, 1000)};
  delta.allocation.freed = {{{3, 300}, 2, 5, 8}, SlotBlocks::all({1, 299, 3})};
  delta.pools[-2] = {4096, -100, 7, 1};
  delta.next_object_id = 130;
  return delta;
}

PoolUsage pool_with_blob() {
  return {.allocated = 4096,
          .stored = -100,
          .omap = 7,
          .objects = 1,
          .compressed_original = 8192,
          .compressed = 300,
          .compressed_allocated = 4096};
}

bool decode_note(const std::string& bytes, CubeDelta* delta) { return CubeDelta::decode(bytes, delta).ok(); }

TEST(NoteRecord, NoteIsAsOnThePage) {
  FormatCheck<CubeDelta> check("Note", [](const CubeDelta& delta) { return delta.encode(); }, decode_note);
  check.example("note", example());
  CubeDelta on_blob;
  on_blob.pools[-2] = pool_with_blob();
  check.example("note on a compressed blob", on_blob);
  check.derived("version", [](const CubeDelta& it) {
    const bool compressed = it.pools.contains(-2) && it.pools.at(-2).has_compressed();
    return PageValue(compressed ? kNoteVersion : kNoteVersionOldest);
  });
  check.field("next object id", 0x22334455667788, &CubeDelta::next_object_id);
  check.derived("number allocated", [](const CubeDelta& it) { return PageValue(it.allocation.allocated.size()); });
  check.part("allocated", vtkv::page_example("slot of a note") + std::string("\0\2", 2),
             [](CubeDelta& it) { it.allocation.allocated = {SlotBlocks::all({0, 5}), SlotBlocks::all({0, 6})}; });
  check.derived("number freed", [](const CubeDelta& it) { return PageValue(it.allocation.freed.size()); });
  check.part("freed", vtkv::page_example("slot of a note, in part"),
             [](CubeDelta& it) { it.allocation.freed.pop_back(); });
  check.derived("number of pools", [](const CubeDelta& it) { return PageValue(it.pools.size()); });
  check.part("pools", vtkv::page_example("pool of a note") + std::string("\2\0\0\0\2", 5),
             [](CubeDelta& it) { it.pools[1] = {0, 0, 0, 1}; });
  EXPECT_EQ(check.findings(), "");
  EXPECT_EQ(vtkv::page_example("note"), example().encode());
}

// Of a note that has nothing else.
CubeDelta with_slot(const SlotBlocks& blocks) {
  CubeDelta delta;
  delta.allocation.allocated = {blocks};
  return delta;
}

TEST(NoteRecord, SlotOfANoteIsAsOnThePage) {
  const auto encode = [](const SlotBlocks& blocks) {
    const std::string bytes = with_slot(blocks).encode();
    return bytes.substr(3, bytes.size() - 5);
  };
  const auto decode = [](const std::string& bytes, SlotBlocks* blocks) {
    CubeDelta delta;
    const bool good = decode_note(std::string("\2\0\1", 3) + bytes + std::string(2, '\0'), &delta);
    *blocks = good ? delta.allocation.allocated.at(0) : SlotBlocks{};
    return good;
  };
  FormatCheck<SlotBlocks> check("Slot of a note", encode, decode);
  check.example("slot of a note, in part", {{3, 300}, 2, 5, 8});
  check.example("slot of a note", SlotBlocks::all({0, 5}));
  check.example("slot of a note, all its blocks", SlotBlocks::all({10, 5}, 1000));
  check.field("size class", 4, [](SlotBlocks& it) -> auto& { return it.slot.size_class; });
  check.field("levels split", 5, [](SlotBlocks& it) -> auto& { return it.slot.split_levels; });
  check.field("index", 0x33445566778899, [](SlotBlocks& it) -> auto& { return it.slot.index; });
  check.derived("in part", [](const SlotBlocks& it) { return PageValue(it.count != it.written); });
  check.field("written", 7, &SlotBlocks::written);
  check.field("first block", 1, &SlotBlocks::first);
  check.field("blocks", 3, &SlotBlocks::count);
  EXPECT_EQ(check.findings(), "");
}

TEST(NoteRecord, ASlotsIndexIsLessThatOfTheOneBefore) {
  CubeDelta delta = with_slot(SlotBlocks::all({0, 6}));
  delta.allocation.allocated.push_back(SlotBlocks::all({10, 1}, 1000));
  EXPECT_EQ(delta.encode().substr(5, 4), "\x0a\x09\xd0\x0f");
}

TEST(NoteRecord, PoolOfANoteIsAsOnThePage) {
  struct Pool {
    int64_t id = 0;
    PoolUsage usage;
  };
  const auto encode = [](const Pool& pool) {
    CubeDelta delta;
    delta.pools[pool.id] = pool.usage;
    return delta.encode().substr(5);
  };
  const auto decode = [](const std::string& bytes, Pool* pool) {
    CubeDelta delta;
    const bool good = decode_note(std::string("\2\0\0\0\1", 5) + bytes, &delta) ||
                      decode_note(std::string("\3\0\0\0\1", 5) + bytes, &delta);
    *pool = good ? Pool{delta.pools.begin()->first, delta.pools.begin()->second} : Pool{};
    return good;
  };
  FormatCheck<Pool> check("Pool of a note", encode, decode);
  check.example("pool of a note", {-2, {4096, -100, 7, 1}});
  check.example("pool of a note on a compressed blob", {-2, pool_with_blob()});
  check.field("compressed original", -3, [](Pool& it) -> auto& { return it.usage.compressed_original; });
  check.field("compressed", 4, [](Pool& it) -> auto& { return it.usage.compressed; });
  check.field("compressed allocated", -5, [](Pool& it) -> auto& { return it.usage.compressed_allocated; });
  check.field("pool", 0x1122334455667788, &Pool::id);
  check.field("allocated", -0x1122334455667788, [](Pool& it) -> auto& { return it.usage.allocated; });
  check.field("stored", 0x1122334455667788, [](Pool& it) -> auto& { return it.usage.stored; });
  check.field("omap", -1, [](Pool& it) -> auto& { return it.usage.omap; });
  check.field("objects", INT64_MIN, [](Pool& it) -> auto& { return it.usage.objects; });
  EXPECT_EQ(check.findings(), "");
}

TEST(NoteRecord, DecodesWhatItEncoded) {
  CubeDelta delta;
  ASSERT_TRUE(CubeDelta::decode(example().encode(), &delta).ok());
  EXPECT_EQ(delta.allocation.allocated, example().allocation.allocated);
  EXPECT_EQ(delta.allocation.freed, example().allocation.freed);
  EXPECT_EQ(delta.pools, example().pools);
  EXPECT_EQ(delta.next_object_id, 130u);
}

TEST(NoteRecord, RefusesEveryTruncation) {
  const std::string bytes = example().encode();
  for (size_t length = 0; length < bytes.size(); length++) {
    CubeDelta delta;
    EXPECT_FALSE(CubeDelta::decode(std::string_view(bytes).substr(0, length), &delta).ok()) << length;
  }
}

TEST(NoteRecord, RefusesObjectIdsThatNobodyReaches) {
  CubeDelta delta;
  EXPECT_TRUE(CubeDelta::decode(CubeDelta{.next_object_id = kObjectIdMax}.encode(), &delta).ok());
  EXPECT_TRUE(CubeDelta::decode(CubeDelta{.next_object_id = UINT64_MAX}.encode(), &delta).is_corruption());
}

TEST(NoteRecord, NamesTheVersionsItDoesNotRead) {
  for (const char version : {1, 9}) {
    std::string bytes = example().encode();
    bytes[0] = version;
    CubeDelta delta;
    EXPECT_EQ(CubeDelta::decode(bytes, &delta).code(), vtkv::Status::Code::unsupported);
  }
}

TEST(NoteRecord, SurvivesAnyBytes) {
  std::mt19937_64 random(7);
  const std::string bytes = example().encode();
  for (int i = 0; i < 20000; i++) {
    std::string damaged = bytes;
    for (uint64_t n = 1 + random() % 3; n > 0; n--) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    CubeDelta delta;
    if (CubeDelta::decode(damaged, &delta).ok()) {
      for (const auto* list : {&delta.allocation.allocated, &delta.allocation.freed}) {
        for (const SlotBlocks& blocks : *list) {
          ASSERT_TRUE(blocks.is_valid());
        }
      }
    }
  }
}

}  // namespace
}  // namespace swimstore
