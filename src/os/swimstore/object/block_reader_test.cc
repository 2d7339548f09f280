// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads whose blocks are in memory: what the reader gets, and whose memory it is.

#include "swimstore/object/block_reader.h"

#include <gtest/gtest.h>

#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

constexpr uint64_t kBytes = 128 << 10;

class BlockReaderTest : public SimStoreFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SimStoreFixture::SetUp());
    write(0, kBytes);
  }
  // Other bytes each time.
  void write(uint64_t offset, uint64_t length) {
    m_expected.resize(std::max(m_expected.size(), offset + length));
    for (uint64_t i = offset; i < offset + length; ++i) {
      m_expected[i] = static_cast<char>(i / 512 + i + m_writes * 7);
    }
    ++m_writes;
    ceph::bufferlist bytes;
    bytes.append(m_expected.substr(offset, length));
    ObjectStore::Transaction txn;
    txn.write(kPg, m_object, offset, length, bytes);
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  }
  ceph::bufferlist read(uint64_t offset, uint64_t length) {
    ceph::bufferlist bytes;
    EXPECT_EQ(static_cast<int>(length), m_store->read(m_pg, m_object, offset, length, bytes));
    EXPECT_TRUE(bytes.to_str() == m_expected.substr(offset, length)) << offset << " " << length;
    return bytes;
  }
  static const char* memory_of(const ceph::bufferlist& bytes) { return bytes.front().raw_c_str(); }

  const ghobject_t m_object = named("object");
  std::string m_expected;
  int m_writes = 0;
};

TEST_F(BlockReaderTest, WhatTheCacheHoldsContiguouslyIsShared) {
  const ceph::bufferlist first = read(0, 64 << 10);
  const ceph::bufferlist second = read(0, 64 << 10);
  EXPECT_EQ(memory_of(first), memory_of(second));
  EXPECT_EQ(memory_of(first), memory_of(read(5000, 10000)));
}

TEST_F(BlockReaderTest, ManySmallSlicesAreCopiedIntoOneBuffer) {
  for (uint64_t block = 0; block < 16; block += 2) {
    write(block * 4096, 4096);
    read(block * 4096, 4096);
  }
  read(0, 64 << 10);
  EXPECT_TRUE(read(0, 64 << 10).is_contiguous());
}

TEST_F(BlockReaderTest, AnOverwriteDoesNotReachWhatAReaderHolds) {
  const ceph::bufferlist held = read(0, kBytes);
  const std::string before = m_expected;
  write(8192, 4096);
  write(0, kBytes);
  EXPECT_TRUE(held.to_str() == before);
  read(0, kBytes);
}

// Its length is no int.
TEST_F(BlockReaderTest, AReadOfTwoGibibytesIsRefused) {
  constexpr uint64_t kLarge = 0xfffffffe;
  ObjectStore::Transaction txn;
  txn.truncate(kPg, m_object, kLarge);
  m_store->queue_transaction(m_pg, std::move(txn));
  ceph::bufferlist bytes;
  EXPECT_EQ(-E2BIG, m_store->read(m_pg, m_object, 0, 0, bytes));
  EXPECT_EQ(-E2BIG, m_store->read(m_pg, m_object, 0, 1u << 31, bytes));
  EXPECT_EQ(0u, bytes.length());
  interval_set<uint64_t> parts;  // none of which is as long
  parts.insert(0, 1u << 30);
  parts.insert(3ull << 29, 1u << 30);
  EXPECT_EQ(-E2BIG, m_store->readv(m_pg, m_object, parts, bytes));
  EXPECT_EQ(0u, bytes.length());
  EXPECT_EQ(kBytes, m_store->read(m_pg, m_object, kLarge - kBytes, kBytes, bytes));
}

TEST_F(BlockReaderTest, HolesBetweenSlicesInMemoryReadAsZeros) {
  ObjectStore::Transaction txn;
  txn.zero(kPg, m_object, 16 << 10, 16 << 10);
  txn.zero(kPg, m_object, 48 << 10, 16 << 10);
  m_store->queue_transaction(m_pg, std::move(txn));
  m_env.run_until_idle();
  m_expected.replace(16 << 10, 16 << 10, 16 << 10, '\0');
  m_expected.replace(48 << 10, 16 << 10, 16 << 10, '\0');
  for (int i = 0; i < 2; ++i) {
    read(0, kBytes);
    read(17 << 10, 20 << 10);
    read(60 << 10, 100);
  }
}

}  // namespace
}  // namespace swimstore
