// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads of one range and of several: what they ask of the device, what the reader gets, and whose memory it is.

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
  int read_all(const std::vector<std::pair<uint64_t, uint64_t>>& ranges, ceph::bufferlist* bytes) {
    interval_set<uint64_t> intervals;
    for (const auto& [offset, length] : ranges) {
      intervals.insert(offset, length);
    }
    return m_store->readv(m_pg, m_object, intervals, *bytes);
  }
  // Returns how many requests that took at the device.
  uint64_t read_all(const std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
    std::string expected;
    for (const auto& [offset, length] : ranges) {
      expected += m_expected.substr(offset, length);
    }
    const uint64_t requests = m_env.calls(vtkv::SimCall::read);
    ceph::bufferlist bytes;
    EXPECT_EQ(static_cast<int>(expected.size()), read_all(ranges, &bytes));
    EXPECT_TRUE(bytes.to_str() == expected);
    return m_env.calls(vtkv::SimCall::read) - requests;
  }
  // What an object of many holes reads as: blocks one behind the other in the container, and none between them here.
  std::vector<std::pair<uint64_t, uint64_t>> write_every_second_block(uint64_t end) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (uint64_t block = 0; block < end; block += 2) {
      write(kBytes + block * 4096, 4096);
      ranges.emplace_back(kBytes + block * 4096, 4096);
    }
    forget_data();
    return ranges;
  }
  // The onode is in memory again.
  void forget_data() {
    m_store->flush_cache(nullptr);
    std::map<uint64_t, uint64_t> extents;
    EXPECT_EQ(0, m_store->fiemap(m_pg, m_object, 0, m_expected.size(), extents));
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

TEST_F(BlockReaderTest, SeveralRangesAreAskedOfTheDeviceTogether) {
  const auto ranges = write_every_second_block(64);
  EXPECT_EQ(1u, read_all(ranges));
}

TEST_F(BlockReaderTest, ABlockOfWhichTwoRangesWantAPartIsReadOnce) {
  forget_data();
  EXPECT_EQ(1u, read_all({{100, 200}, {1000, 96}, {4000, 50}, {4090, 10}}));
}

// Of those in memory, in holes and on disk, each its own bytes.
TEST_F(BlockReaderTest, SeveralRangesComeInOrderFromWhereverTheyAre) {
  write_every_second_block(64);
  read(kBytes + 8192, 4096);
  const uint64_t far = kBytes + 20 * 4096;
  read_all({{0, 10}, {4095, 4098}, {kBytes + 8000, 200}, {kBytes + 12288, 4096}, {far - 1, 4098}, {far + 8192, 1}});
}

TEST_F(BlockReaderTest, SeveralRangesInMemoryShareIt) {
  const ceph::bufferlist held = read(0, 64 << 10);
  ceph::bufferlist bytes;
  EXPECT_EQ(40000, read_all({{0, 20000}, {32 << 10, 20000}}, &bytes));
  EXPECT_EQ(memory_of(held), memory_of(bytes));
}

TEST_F(BlockReaderTest, OneRangeThatCannotBeReadFailsAll) {
  const auto ranges = write_every_second_block(8);
  m_env.set_bad(vtkv::SimBad::reads, kPath + "/cubes/0/containers/4K", 2 * 4096, 2 * 4096 + 1);
  ceph::bufferlist bytes;
  EXPECT_EQ(-EIO, read_all(ranges, &bytes));
  EXPECT_EQ(0u, bytes.length());
  m_env.clear_faults();
  read_all(ranges);
}

// As the OSD's bench has it, who frees the memory then.
TEST_F(BlockReaderTest, WhatTheOsdWritesForItselfMayChangeInMemoryOnceItIsCommitted) {
  ObjectStore::CollectionHandle meta = m_store->create_new_collection(coll_t::meta());
  ceph::bufferptr memory(ceph::buffer::create_page_aligned(8192));
  std::memset(memory.c_str(), 'a', memory.length());
  const ghobject_t object(hobject_t(sobject_t("disk_bw_test_0", 0)));
  ObjectStore::Transaction txn;
  txn.create_collection(coll_t::meta(), 0);
  ceph::bufferlist data = ceph::bufferlist::static_from_mem(memory.c_str(), memory.length());
  txn.write(coll_t::meta(), object, 0, data.length(), data);
  m_store->queue_transaction(meta, std::move(txn));
  m_env.run_until_idle();
  std::memset(memory.c_str(), 'b', memory.length());
  ceph::bufferlist bytes;
  EXPECT_EQ(8192, m_store->read(meta, object, 0, 8192, bytes));
  EXPECT_TRUE(bytes.to_str() == std::string(8192, 'a'));
}

}  // namespace
}  // namespace swimstore
