// SPDX-License-Identifier: LGPL-2.1-or-later
// Compressed blocks: what they take, that they read as they were, and what is refused.

#include "vtkv/span/block_compression.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>

#include "vtkv/span/block.h"
#include "vtkv/span/block_builder.h"
#include "vtkv/testing/format_page.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {
namespace {

constexpr Block::Identity kIdentity{BlockKind::entries, 0x1122334455667788, 3};
constexpr size_t kBodyOffset = sizeof(block_header_t);

std::string compress(const std::string& plain) {
  std::string stored;
  EXPECT_TRUE(compress_body(plain, 1 << 20, &stored));
  return stored;
}

bool decompress(const std::string& stored, std::string* plain) {
  std::unique_ptr<char[]> bytes;
  uint32_t length = 0;
  const bool good = decompress_body(stored, &bytes, &length).ok();
  plain->assign(bytes.get(), length);
  return good;
}

// The compressed bytes are the library's, as the plain ones are the body's.
TEST(CompressedBlockFormat, CompressedBlockIsAsOnThePage) {
  FormatCheck<std::string> check("Compressed block", compress, decompress);
  check.example("compressed block", std::string(64, 'a'));
  check.constant("algorithm", static_cast<uint8_t>(CompressionAlgorithm::lz4));
  check.derived("plain bytes", [](const std::string& plain) { return PageValue(plain.size()); });
  check.part("compressed", std::string("\x1f\x62\x01\x00\x27\x50\x62\x62\x62\x62\x62", 11),
             [](std::string& plain) { plain.assign(64, 'b'); });
  EXPECT_EQ(check.findings(), "");
}

struct SomeEntries {
  explicit SomeEntries(int count, bool random_values = false) {
    std::mt19937_64 random(7);
    for (int i = 0; i < count; ++i) {
      keys.push_back("object " + std::to_string(100000 + i));
      values.emplace_back(50, 'v');
      for (char& c : values.back()) {
        c = random_values ? static_cast<char>(random()) : c;
      }
    }
  }
  void add_to(BlockBuilder* builder) const {
    for (size_t i = 0; i < keys.size(); ++i) {
      builder->add({keys[i], 9, EntryType::value, values[i]});
    }
  }
  std::vector<std::string> keys, values;
};

// Of a block that was compressed, if that saves a unit.
std::string finished(const SomeEntries& entries, bool compress, double* ratio = nullptr) {
  BlockBuilder builder(BlockKind::entries);
  entries.add_to(&builder);
  if (compress) {
    const double found = builder.compress();
    ratio ? void(*ratio = found) : void();
  }
  const size_t announced = builder.bytes();
  std::string bytes;
  builder.finish(kIdentity.span_id, kIdentity.unit, &bytes);
  EXPECT_EQ(units_of(announced) * kUnitBytes, bytes.size());
  EXPECT_TRUE(builder.empty());
  return bytes;
}

uint8_t version_of(const std::string& block) { return static_cast<uint8_t>(block[6]); }

void fix_checksum(std::string* bytes) {
  uint32_t body_bytes;
  std::memcpy(&body_bytes, bytes->data() + offsetof(block_header_t, body_bytes), 4);
  const uint32_t crc = crc32c(bytes->data() + 4, kBodyOffset - 4 + body_bytes);
  std::memcpy(bytes->data(), &crc, 4);
}

Status parse(const std::string& bytes, std::shared_ptr<const Block>* block) {
  return Block::parse(bytes, kIdentity, block);
}

TEST(CompressedBlock, ReadsAsIfItWereNot) {
  const SomeEntries entries(200);
  double ratio = 0;
  const std::string stored = finished(entries, true, &ratio);
  const std::string plain = finished(entries, false);
  EXPECT_EQ(version_of(stored), kCompressedBlockVersion);
  EXPECT_LT(stored.size(), plain.size() / 2);
  EXPECT_GT(ratio, 2);
  std::shared_ptr<const Block> block, plain_block;
  ASSERT_TRUE(parse(stored, &block).ok());
  ASSERT_TRUE(parse(plain, &plain_block).ok());
  EXPECT_EQ(block->body(), plain_block->body());
  EXPECT_EQ(block->memory_bytes(), plain_block->memory_bytes()) << "the cache holds it as it is read";
  BlockIterator iterator(block);
  for (size_t i = 0; i < entries.keys.size(); ++i) {
    iterator.seek(entries.keys[i], 9);
    ASSERT_TRUE(iterator.valid());
    EXPECT_EQ(iterator.entry().key, entries.keys[i]);
    EXPECT_EQ(iterator.entry().value, entries.values[i]);
  }
}

TEST(CompressedBlock, IsMadeOnlyWhereItSavesAUnit) {
  double ratio = 0;
  EXPECT_EQ(version_of(finished(SomeEntries(40), true, &ratio)), kBlockVersion) << "one unit in any case";
  EXPECT_GT(ratio, 2);
  EXPECT_EQ(version_of(finished(SomeEntries(200, true), true, &ratio)), kBlockVersion);
  EXPECT_LT(ratio, 1.3);
  EXPECT_EQ(finished(SomeEntries(200, true), true), finished(SomeEntries(200, true), false));
}

TEST(CompressedBlock, OfAnotherAlgorithmIsTheWorkOfANewerProgram) {
  std::string stored = finished(SomeEntries(200), true);
  stored[kBodyOffset] = 2;
  fix_checksum(&stored);
  std::shared_ptr<const Block> block;
  const Status status = parse(stored, &block);
  EXPECT_EQ(status.code(), Status::Code::unsupported);
  EXPECT_NE(status.message().find("algorithm 2"), std::string::npos) << status.to_string();
}

// A descriptor or a filter is read at open, whatever it becomes.
TEST(CompressedBlock, OfAnotherKindIsRefused) {
  for (const BlockKind kind : {BlockKind::index, BlockKind::tombstones, BlockKind::filter, BlockKind::descriptor}) {
    std::string stored = finished(SomeEntries(200), true);
    stored[offsetof(block_header_t, kind)] = static_cast<char>(kind);
    fix_checksum(&stored);
    std::shared_ptr<const Block> block;
    const Status status = Block::parse(stored, {kind, kIdentity.span_id, kIdentity.unit}, &block);
    EXPECT_TRUE(status.is_corruption());
    EXPECT_NE(status.message().find("never compressed"), std::string_view::npos) << status.to_string();
  }
}

TEST(CompressedBlock, OfOneVeryLargeValueIsNotTried) {
  std::string stored;
  EXPECT_TRUE(compress_body(std::string(kCompressedBodyMax, 'v'), kCompressedBodyMax, &stored));
  EXPECT_FALSE(compress_body(std::string(kCompressedBodyMax + 1, 'v'), kCompressedBodyMax, &stored));
  EXPECT_FALSE(compress_body("", 4096, &stored));
}

// Of a disk that can make its checksums right. A length is believed only where that many bytes can come of what is
// there: nobody allocates a GiB for a block of 4 KiB.
TEST(CompressedBlock, AnImpossibleLengthIsRefused) {
  const std::string good = finished(SomeEntries(200), true);
  uint32_t stored_bytes;
  std::memcpy(&stored_bytes, good.data() + offsetof(block_header_t, body_bytes), sizeof(stored_bytes));
  const uint32_t too_long = (stored_bytes - sizeof(compressed_body_t) + 1) * kCompressionRatioMax;
  for (const auto& [length, why] : {std::pair<uint32_t, const char*>{0, "an impossible length"},
                                    {1, "is malformed"},
                                    {too_long - 1, "is malformed"},
                                    {too_long, "an impossible length"},
                                    {kBlockBytesMax, "an impossible length"},
                                    {UINT32_MAX, "an impossible length"}}) {
    std::string bad = good;
    std::memcpy(bad.data() + kBodyOffset + offsetof(compressed_body_t, plain_bytes), &length, sizeof(length));
    fix_checksum(&bad);
    std::shared_ptr<const Block> block;
    const Status status = parse(bad, &block);
    EXPECT_TRUE(status.is_corruption()) << length;
    EXPECT_NE(status.message().find(why), std::string_view::npos) << length << ": " << status.to_string();
  }
  for (const uint32_t body_bytes : {0u, 1u, 7u, 8u}) {
    std::string bad = good;
    std::memcpy(bad.data() + offsetof(block_header_t, body_bytes), &body_bytes, sizeof(body_bytes));
    fix_checksum(&bad);
    std::shared_ptr<const Block> block;
    EXPECT_TRUE(parse(bad, &block).is_corruption()) << body_bytes;
  }
}

TEST(CompressedBlock, MalformedBytesUnderAGoodChecksumAreHarmless) {
  const std::string good = finished(SomeEntries(200), true);
  uint32_t body_bytes;
  std::memcpy(&body_bytes, good.data() + offsetof(block_header_t, body_bytes), 4);
  std::mt19937_64 random(5);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      bad[kBodyOffset + random() % body_bytes] = static_cast<char>(random());
    }
    fix_checksum(&bad);
    std::shared_ptr<const Block> block;
    if (!parse(bad, &block).ok()) {
      ++refused;
      continue;
    }
    BlockIterator iterator(block);
    int steps = 0;
    for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
      ASSERT_LT(++steps, 100000);
    }
    iterator.seek("object 1001", 5);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace vtkv
