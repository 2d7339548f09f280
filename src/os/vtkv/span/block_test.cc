// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "vtkv/span/block_builder.h"
#include "vtkv/testing/golden.h"
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

TEST(BlockFormat, Golden) {
  BlockBuilder builder(BlockKind::entries);
  builder.add({"apple", 300, EntryType::value, "red"});
  builder.add({"apply", 7, EntryType::tombstone, ""});
  const size_t announced = builder.bytes();
  std::string bytes;
  builder.finish(kIdentity.span_id, kIdentity.unit, &bytes);

  std::string expected = bytes_from_hex(R"(
    00 00 00 00              # crc32c, filled in below
    62 6b                    # magic "bk"
    01                       # format version
    01                       # kind: entries
    88 77 66 55 44 33 22 11  # span id
    03 00 00 00              # unit
    18 00 00 00              # body: two entries of 14 and 6 bytes, a restart of 4
    02 00 00 00              # entries
    01 00 00 00              # restarts
    00 05 01                 # shares 0, adds 5 key bytes, value
    ac 02                    # sequence 300
    03                       # value bytes
    61 70 70 6c 65           # "apple"
    72 65 64                 # "red"
    04 01 00                 # shares 4, adds 1, tombstone
    07                       # sequence 7
    00                       # value bytes
    79                       # "y"
    00 00 00 00              # restart: offset 0
  )");
  fix_checksum(&expected);
  EXPECT_EQ(announced, expected.size());
  expected.resize(4096);
  EXPECT_EQ(hex_dump(bytes), hex_dump(expected));
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
