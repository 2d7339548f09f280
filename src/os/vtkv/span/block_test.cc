// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "vtkv/span/block_builder.h"
#include "vtkv/testing/format_page.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/wal/log_format.h"

namespace vtkv {
namespace {

constexpr Block::Identity kIdentity{BlockKind::entries, 0x1122334455667788, 3};

void fix_checksum(std::string* bytes) {
  uint32_t body_bytes;
  std::memcpy(&body_bytes, bytes->data() + 20, 4);
  const uint32_t crc = crc32c(bytes->data() + 4, 28 + body_bytes);
  std::memcpy(bytes->data(), &crc, 4);
}

struct OwnedEntry {
  std::string key;
  SequenceNumber sequence = 0;
  EntryType type = EntryType::value;
  std::string value;
};

struct BlockExample {
  Block::Identity identity;
  std::vector<OwnedEntry> entries;
};

std::string encode_block(const BlockExample& example) {
  BlockBuilder builder(example.identity.kind);
  for (const OwnedEntry& entry : example.entries) {
    builder.add({entry.key, entry.sequence, entry.type, entry.value});
  }
  const size_t announced = builder.bytes();
  std::string bytes;
  builder.finish(example.identity.span_id, example.identity.unit, &bytes);
  EXPECT_EQ(units_of(announced) * kUnitBytes, bytes.size());
  return bytes;
}

bool decode_block(const std::string& bytes, BlockExample* example) {
  block_header_t header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  example->identity = {static_cast<BlockKind>(header.kind), header.span_id, header.unit};
  std::shared_ptr<const Block> block;
  if (!Block::parse(bytes, example->identity, &block).ok()) {
    return false;
  }
  BlockIterator iterator(block);
  for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
    const Entry& entry = iterator.entry();
    example->entries.push_back({std::string(entry.key), entry.sequence, entry.type, std::string(entry.value)});
  }
  return iterator.status().ok();
}

BlockExample two_entries() {
  return {kIdentity, {{"apple", 300, EntryType::value, "red"}, {"apply", 7, EntryType::tombstone, ""}}};
}

TEST(BlockFormat, BlockIsAsOnThePage) {
  FormatCheck<BlockExample> check("Block", encode_block, decode_block);
  check.example("block", two_entries());
  check.constant("magic", raw_bytes(kBlockMagic));
  check.constant("version", kBlockVersion);
  check.field("kind", BlockKind::tombstones, [](BlockExample& it) -> auto& { return it.identity.kind; });
  check.names("kind", {{"entries", BlockKind::entries},
                       {"index", BlockKind::index},
                       {"tombstones", BlockKind::tombstones},
                       {"filter", BlockKind::filter},
                       {"descriptor", BlockKind::descriptor}});
  check.field("span id", 0x2233445566778899, [](BlockExample& it) -> auto& { return it.identity.span_id; });
  check.field("unit", 0x22334455, [](BlockExample& it) -> auto& { return it.identity.unit; });
  // The entries of the example, as bytes of the body.
  const auto body_bytes = [](const BlockExample& it) { return it.entries.size() == 2 ? 20u : 14u; };
  check.derived("body bytes", [&](const BlockExample& it) { return PageValue(body_bytes(it) + 4); });
  check.derived("entries", [](const BlockExample& it) { return PageValue(it.entries.size()); });
  check.derived("restarts", [](const BlockExample&) { return PageValue(1); });
  check.part("body", std::string("\x00\x05\x01\xac\x02\x03", 6) + "applered",
             [](BlockExample& it) { it.entries.pop_back(); });
  check.derived("restart offsets", [](const BlockExample&) { return PageValue(std::string(4, '\0')); });
  EXPECT_EQ(check.findings(), "");
  EXPECT_EQ(page_example("block").substr(32 + 14, 6), page_example("entry"));
}

// The 17th is at the next one.
TEST(BlockFormat, AnEntryThatSharesNoBytesIsAtEachRestart) {
  BlockExample example{kIdentity, {}};
  for (char c = 'a'; c < 'a' + 17; ++c) {
    example.entries.push_back({std::string("k") + c, 1, EntryType::value, ""});
  }
  const std::string bytes = encode_block(example);
  // The first has 2 bytes of its own, 15 have one.
  EXPECT_EQ(bytes.substr(32 + 7 + 15 * 6, 7), std::string("\x00\x02\x01\x01\x00kq", 7));
  EXPECT_EQ(bytes.substr(32 + 7 + 15 * 6 + 7, 8), std::string("\0\0\0\0\x61\0\0\0", 8));
}

// Behind "apple".
TEST(BlockFormat, EntryIsAsOnThePage) {
  const OwnedEntry before{"apple", 300, EntryType::value, "red"};
  constexpr size_t kBefore = sizeof(block_header_t) + 14;
  const auto encode = [&](const OwnedEntry& entry) {
    const std::string bytes = encode_block({kIdentity, {before, entry}});
    block_header_t header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return bytes.substr(kBefore, sizeof(header) + header.body_bytes - 4 - kBefore);
  };
  const auto decode = [&](const std::string& bytes, OwnedEntry* entry) {
    std::string block = encode_block({kIdentity, {before}});
    block.replace(kBefore, 4 + bytes.size(), bytes + std::string(4, '\0'));
    const uint32_t body_bytes = static_cast<uint32_t>(14 + bytes.size() + 4), entries = 2;
    std::memcpy(block.data() + offsetof(block_header_t, body_bytes), &body_bytes, 4);
    std::memcpy(block.data() + offsetof(block_header_t, entries), &entries, 4);
    fix_checksum(&block);
    BlockExample found;
    if (!decode_block(block, &found) || found.entries.size() != 2) {
      return false;
    }
    *entry = found.entries[1];
    return true;
  };
  const auto shared = [](const OwnedEntry& entry) { return entry.key.starts_with("appl") ? 4u : 1u; };
  FormatCheck<OwnedEntry> check("Entry", encode, decode);
  check.example("entry", {"apply", 7, EntryType::tombstone, ""});
  check.example("entry with a value", {"apply", 300, EntryType::value, "red"});
  check.derived("shared", [&](const OwnedEntry& entry) { return PageValue(shared(entry)); });
  check.derived("key bytes", [&](const OwnedEntry& entry) { return PageValue(entry.key.size() - shared(entry)); });
  check.field("type", EntryType::value_pointer, &OwnedEntry::type);
  check.names(
      "type",
      {{"tombstone", EntryType::tombstone}, {"value", EntryType::value}, {"value pointer", EntryType::value_pointer}});
  check.field("sequence", 0x1122334455667788, &OwnedEntry::sequence);
  check.derived("value bytes", [](const OwnedEntry& entry) { return PageValue(entry.value.size()); });
  check.part("rest of the key", "zoo", [](OwnedEntry& entry) { entry.key = "azoo"; });
  check.field("value", std::string(200, 'x'), &OwnedEntry::value);
  EXPECT_EQ(check.findings(), "");
}

class BlockTest : public testing::Test {
 protected:
  std::string build(const std::vector<Entry>& entries) {
    BlockBuilder builder(BlockKind::entries);
    for (const Entry& entry : entries) {
      builder.add(entry);
    }
    std::string bytes;
    builder.finish(kIdentity.span_id, kIdentity.unit, &bytes);
    return bytes;
  }
  std::shared_ptr<const Block> parse(std::string_view bytes) {
    std::shared_ptr<const Block> block;
    m_status = Block::parse(bytes, kIdentity, &block);
    return block;
  }
  Status m_status;
};

TEST_F(BlockTest, AnEmptyOneIteratesNothing) {
  BlockIterator iterator(parse(build({})));
  ASSERT_TRUE(m_status.ok());
  iterator.seek_to_first();
  EXPECT_FALSE(iterator.valid());
  iterator.seek_to_last();
  EXPECT_FALSE(iterator.valid());
  iterator.seek("a", 1);
  EXPECT_FALSE(iterator.valid());
}

TEST_F(BlockTest, RefusesWhatIsNotTheBlockAskedFor) {
  const std::string bytes = build({{"a", 1, EntryType::value, "v"}});
  std::shared_ptr<const Block> block;
  EXPECT_TRUE(Block::parse(bytes, kIdentity, &block).ok());
  for (const Block::Identity& other : {Block::Identity{BlockKind::index, kIdentity.span_id, 3},
                                       Block::Identity{BlockKind::entries, kIdentity.span_id + 1, 3},
                                       Block::Identity{BlockKind::entries, kIdentity.span_id, 4}}) {
    EXPECT_TRUE(Block::parse(bytes, other, &block).is_corruption());
  }
  EXPECT_TRUE(Block::parse(std::string(4096, '\0'), kIdentity, &block).is_corruption());
  EXPECT_TRUE(Block::parse("", kIdentity, &block).is_corruption());
}

TEST_F(BlockTest, NamesALaterFormatVersion) {
  std::string bytes = build({{"a", 1, EntryType::value, "v"}});
  bytes[6] = 2;
  fix_checksum(&bytes);
  parse(bytes);
  EXPECT_EQ(m_status.code(), Status::Code::unsupported);
}

TEST_F(BlockTest, EveryFlippedBitOfHeaderAndBodyIsNoticed) {
  const std::string good = build({{"key1", 5, EntryType::value, "value"}, {"key2", 4, EntryType::tombstone, ""}});
  uint32_t body_bytes;
  std::memcpy(&body_bytes, good.data() + 20, 4);
  for (size_t bit = 0; bit < (32 + body_bytes) * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << bit % 8);
    parse(bad);
    EXPECT_FALSE(m_status.ok()) << "bit " << bit;
  }
}

// A search by restarts and the way backwards rely on it: entries would be passed over without a word.
TEST_F(BlockTest, RefusesRestartsThatDoNotAscendFromTheBeginning) {
  std::vector<Entry> entries(40, {"same key", 9, EntryType::value, "v"});
  const std::string good = build(entries);
  uint32_t body_bytes;
  std::memcpy(&body_bytes, good.data() + 20, 4);
  const size_t first_restart = 32 + body_bytes - 3 * sizeof(uint32_t);
  ASSERT_NE(parse(good), nullptr);
  const auto copy_restart = [&](int from, int to) {
    std::string bad = good;
    std::memcpy(bad.data() + first_restart + to * 4, good.data() + first_restart + from * 4, 4);
    fix_checksum(&bad);
    parse(bad);
    return m_status.is_corruption();
  };
  EXPECT_TRUE(copy_restart(1, 0)) << "the first entry is behind no restart";
  EXPECT_TRUE(copy_restart(1, 2)) << "a restart twice";
  EXPECT_TRUE(copy_restart(0, 2)) << "a restart before the one before it";
}

// Whoever can write the checksum can write anything: the decoder must survive it.
TEST_F(BlockTest, MalformedBytesUnderAGoodChecksumAreHarmless) {
  std::mt19937_64 random(3);
  std::vector<std::string> keys;
  std::vector<Entry> entries;
  for (int i = 0; i < 60; ++i) {
    keys.push_back("key" + std::to_string(1000 + i));
  }
  for (int i = 0; i < 60; ++i) {
    entries.push_back({keys[i], 9, EntryType::value, "value"});
  }
  const std::string good = build(entries);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      bad[20 + random() % 1200] = static_cast<char>(random());
    }
    uint32_t body_bytes;
    std::memcpy(&body_bytes, bad.data() + 20, 4);
    if (body_bytes > 4096 - 32) {
      parse(bad);
      EXPECT_FALSE(m_status.ok());
      continue;
    }
    fix_checksum(&bad);
    const auto block = parse(bad);
    if (!m_status.ok()) {
      continue;
    }
    BlockIterator iterator(block);
    int steps = 0;
    for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
      ASSERT_LT(++steps, 5000);
    }
    for (iterator.seek_to_last(); iterator.valid() && steps < 10000; iterator.previous()) {
      ++steps;
    }
    iterator.seek(keys[random() % keys.size()], random() % 12);
    iterator.seek_for_previous(keys[random() % keys.size()], random() % 12);
  }
}

TEST_F(BlockTest, SeeksAndStepsAgreeWithAList) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::pair<std::string, SequenceNumber>> list;
    for (int i = 0; i < 200; ++i) {
      list.emplace_back(std::to_string(random() % 90), 1 + random() % 50);
    }
    const auto before = [](const auto& a, const auto& b) { return entry_before(a.first, a.second, b.first, b.second); };
    std::sort(list.begin(), list.end(), before);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    std::vector<Entry> entries;
    for (const auto& [key, sequence] : list) {
      entries.push_back({key, sequence, EntryType::value, key});
    }
    BlockIterator iterator(parse(build(entries)));
    ASSERT_TRUE(m_status.ok());
    size_t i = 0;
    for (iterator.seek_to_first(); iterator.valid(); iterator.next(), ++i) {
      ASSERT_EQ(iterator.entry().key, list[i].first);
      ASSERT_EQ(iterator.entry().sequence, list[i].second);
      ASSERT_EQ(iterator.entry().value, list[i].first);
    }
    ASSERT_EQ(i, list.size());
    for (iterator.seek_to_last(); iterator.valid(); iterator.previous()) {
      --i;
      ASSERT_EQ(iterator.entry().key, list[i].first);
      ASSERT_EQ(iterator.entry().sequence, list[i].second);
    }
    ASSERT_EQ(i, 0u);
    for (int probe = 0; probe < 200; ++probe) {
      const std::pair<std::string, SequenceNumber> target(std::to_string(random() % 95), random() % 55);
      const auto at = std::lower_bound(list.begin(), list.end(), target, before);
      iterator.seek(target.first, target.second);
      ASSERT_EQ(iterator.valid(), at != list.end());
      if (iterator.valid()) {
        ASSERT_EQ(iterator.entry().key, at->first);
        ASSERT_EQ(iterator.entry().sequence, at->second);
      }
      auto previous = std::upper_bound(list.begin(), list.end(), target, before);
      previous = previous == list.begin() ? previous : std::prev(previous);
      iterator.seek_for_previous(target.first, target.second);
      ASSERT_TRUE(iterator.valid());
      ASSERT_EQ(iterator.entry().key, previous->first);
      ASSERT_EQ(iterator.entry().sequence, previous->second);
    }
  }
}

// What a batch may hold, a flush must be able to write. Only lengths are looked at: the bytes are nowhere.
TEST(BlockBuilder, HoldsTheGreatestValueAndKeyThatABatchHolds) {
  const char byte = 0;
  constexpr size_t kPutBytes = 1 + 1 + 1;  // of the batch, at the least: tag, and the lengths of key and value
  for (const size_t key_bytes :
       {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 29, size_t{kMaxOperationBytes} - kPutBytes}) {
    const std::string_view key(&byte, key_bytes), value(&byte, kMaxOperationBytes - kPutBytes - key_bytes);
    const BlockBuilder entries(BlockKind::entries);
    EXPECT_LE(entries.bytes_with({key, UINT64_MAX, EntryType::value, value}), kBlockBytesMax);
    // Its line of the index: the key, and where it lies.
    constexpr size_t kLineBytes = 7 * 10;
    const BlockBuilder index(BlockKind::index);
    EXPECT_LE(index.bytes_with({key, UINT64_MAX, EntryType::value, {&byte, kLineBytes}}), kBlockBytesMax);
  }
}

}  // namespace
}  // namespace vtkv
