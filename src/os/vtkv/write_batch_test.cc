// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/write_batch.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

// Ten puts of 22 bytes each, with a note before and an external write behind them.
WriteBatch ten_puts() {
  WriteBatch batch;
  batch.note("n");
  for (char letter = 'a'; letter < 'a' + 10; ++letter) {
    batch.put(std::string(1, letter), std::string(18, letter));
  }
  batch.external_write({.container = 1, .slot = 2, .offset = 0, .length = 4096, .crc32c = 7});
  return batch;
}

TEST(WriteBatchTest, FragmentsAreTheBatchInOrder) {
  const WriteBatch batch = ten_puts();
  for (size_t bytes_most = 1; bytes_most <= batch.encoded_bytes(); ++bytes_most) {
    std::string together;
    uint32_t updates = 0;
    for (const WriteBatch::Fragment& fragment : batch.cut(bytes_most)) {
      EXPECT_EQ(fragment.encoded.data(), batch.encoded().data() + together.size());
      EXPECT_TRUE(fragment.encoded.size() <= bytes_most || bytes_most < 22) << bytes_most;
      EXPECT_GE(fragment.sequence_count, 1u);
      together += fragment.encoded;
      updates += fragment.sequence_count;
    }
    EXPECT_EQ(together, batch.encoded());
    EXPECT_GE(updates, batch.sequence_count());
  }
}

TEST(WriteBatchTest, FragmentsAreAsLargeAsTheyMayBe) {
  const WriteBatch batch = ten_puts();
  const auto fragments = batch.cut(3 + 3 * 22);
  ASSERT_EQ(fragments.size(), 4u);
  EXPECT_EQ(fragments[0].encoded.size(), 3u + 3 * 22);
  EXPECT_EQ(fragments[1].encoded.size(), 3u * 22);
  EXPECT_EQ(fragments[0].sequence_count, 3u);
  EXPECT_EQ(fragments[3].sequence_count, 1u);
}

// It has to have a sequence number of its own: its record has one.
TEST(WriteBatchTest, AFragmentWithoutUpdatesTakesASequenceNumber) {
  WriteBatch batch;
  batch.put("a", "b");
  batch.note(std::string(100, 'n'));
  const auto fragments = batch.cut(10);
  ASSERT_EQ(fragments.size(), 2u);
  EXPECT_EQ(fragments[1].sequence_count, 1u);
}

TEST(WriteBatchTest, AnEmptyBatchIsOneFragment) {
  const auto fragments = WriteBatch().cut(10);
  ASSERT_EQ(fragments.size(), 1u);
  EXPECT_TRUE(fragments[0].encoded.empty());
  EXPECT_EQ(fragments[0].sequence_count, 1u);
}

}  // namespace
}  // namespace vtkv
