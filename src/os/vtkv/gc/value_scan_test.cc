// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/value_scan.h"

#include <gtest/gtest.h>

#include <map>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

// By key: epoch and offset of the value.
using Addresses = std::map<std::string, std::pair<uint64_t, uint64_t>>;

class ValueScanTest : public TreeFixture {
 protected:
  void SetUp() override {
    m_options.geometry.log_segment_bytes = 64 << 10;
    make();
  }
  // One run: every `stride`-th key, each with several versions that snapshots hold, in three segments by turns. The
  // newest is a tombstone in one of seven.
  void flush(uint64_t stride) {
    MemTable table;
    std::vector<SequenceNumber> snapshots;
    for (uint64_t i = 0; i < 500; i += stride) {
      const std::string key = "key" + std::to_string(1000 + i);
      for (uint64_t version = 0; version <= i % 3; ++version) {
        LogAddress* address = table.new_address();
        *address = {m_sequence % 3, 10 + m_sequence % 3, 4096 * (m_sequence + 1)};
        snapshots.push_back(++m_sequence);
        table.put_logged(m_sequence, key, std::string(1000, 'v'), address, 8);
        m_newest[key] = {address->epoch, address->offset + 8};
      }
      if (i % 7 == 0) {
        table.remove(++m_sequence, key);
        m_newest.erase(key);
      }
      table.put(++m_sequence, key + "x", "short");
    }
    ASSERT_TRUE(m_tree->flush(table, {m_sequence, 1, 20, m_sequence * 4096, 7}, snapshots).ok());
  }

  Addresses m_newest;
};

TEST_F(ValueScanTest, FindsTheNewestPointersIntoItsSegmentsInKeyOrder) {
  for (const uint64_t stride : {1, 3, 50}) {
    ASSERT_NO_FATAL_FAILURE(flush(stride));
  }
  Addresses expected = m_newest;
  std::erase_if(expected, [](const auto& address) { return address.second.first == 11; });
  ASSERT_GT(expected.size(), 250u);
  for (const uint64_t bytes_max : {1u, 5000u, 1u << 20}) {
    ValueScan scan(nullptr, nullptr);
    scan.start({10, 12});
    Addresses found;
    std::string last;
    size_t calls = 0;
    for (; !scan.at_end(); ++calls) {
      std::vector<Relocation> values;
      ASSERT_TRUE(scan.find(*m_tree->current(), bytes_max, &values).ok());
      for (const Relocation& value : values) {
        ASSERT_LE(last, value.key);
        last = value.key;
        ASSERT_TRUE(found.try_emplace(std::string(value.key), value.pointer.epoch, value.pointer.offset).second);
      }
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(calls > 3, bytes_max < 1u << 20);
  }
}

}  // namespace
}  // namespace vtkv
