// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies of blocks that cannot be read: what they meet gives errors, and nothing else does.

#include <gtest/gtest.h>

#include <set>

#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kBlocks = 16;  // of the target, and of a source that is large

class UnreadableBlocksTest : public SimStoreFixture {
 protected:
  static std::string pattern(uint64_t bytes, char first) {
    std::string text(bytes, 0);
    for (uint64_t i = 0; i < bytes; ++i) {
      text[i] = static_cast<char>(first + (i / 97) % 23);
    }
    return text;
  }
  void queue(ObjectStore::Transaction txn) { ASSERT_EQ(0, m_store->queue_transaction(m_pg, std::move(txn))); }
  void write(const std::string& name, const std::string& text) {
    ceph::bufferlist data;
    data.append(text);
    ObjectStore::Transaction txn;
    txn.write(kPg, named(name), 0, data.length(), data);
    queue(std::move(txn));
  }
  // A source of so many blocks, in a slot of its own size, of which one block cannot be read; and the target.
  void make(uint64_t source_blocks, uint64_t bad_block) {
    m_source = pattern(source_blocks * kBlock, 'a');
    m_target = pattern(kBlocks * kBlock, 'A');
    write("source", m_source);
    m_env.run_until_idle();
    const uint64_t slot_bytes = source_blocks * kBlock;
    const std::string container = kPath + "/cubes/0/containers/" + std::to_string(slot_bytes / 1024) + "K";
    const auto make_bad = [&] {
      for (uint64_t slot = 0; slot < 64; ++slot) {
        const uint64_t at = slot * slot_bytes + bad_block * kBlock;
        m_env.set_bad(vtkv::SimBad::reads, container, at, at + kBlock);
      }
    };
    write("target", m_target);
    m_env.run_until_idle();
    m_store->flush_cache();
    make_bad();
  }
  void copy(ObjectStore::Transaction* txn, uint64_t from, uint64_t bytes, uint64_t to) {
    txn->clone_range(kPg, named("source"), named("target"), from, bytes, to);
    m_target.replace(to, bytes, m_source, from, bytes);
  }
  // Now, and after a restart that finds the disk whole.
  void expect_unreadable(const std::set<uint64_t>& blocks) {
    m_env.run_until_idle();
    for (const bool is_remounted : {false, true}) {
      for (uint64_t block = 0; block < kBlocks; ++block) {
        ceph::bufferlist data;
        const int r = m_store->read(m_pg, named("target"), block * kBlock, kBlock, data);
        if (blocks.contains(block)) {
          EXPECT_EQ(-EIO, r) << block << (is_remounted ? ", remounted" : "");
        } else {
          EXPECT_TRUE(data.to_str() == m_target.substr(block * kBlock, kBlock)) << block << ": " << r;
        }
      }
      m_env.clear_faults();
      m_pg.reset();
      ASSERT_EQ(0, m_store->umount());
      ASSERT_EQ(0, m_store->mount());
      m_pg = m_store->open_collection(kPg);
    }
  }

  std::string m_source, m_target;
};

// As a push that a recovering OSD completes from another clone: each copy loses the block anew.
TEST_F(UnreadableBlocksTest, TwoCopiesIntoOneBlock) {
  for (const uint64_t second_bytes : {uint64_t{1000}, 2 * kBlock - 2000}) {
    make(2, 0);
    ObjectStore::Transaction txn;
    copy(&txn, 0, 1000, 0);
    copy(&txn, 2000, second_bytes, 2000);
    queue(std::move(txn));
    expect_unreadable({0});
  }
}

TEST_F(UnreadableBlocksTest, TwoCopiesByTwoTransactions) {
  make(2, 0);
  for (const uint64_t at : {0u, 2000u}) {
    ObjectStore::Transaction txn;
    copy(&txn, at, 1000, at);
    queue(std::move(txn));
  }
  expect_unreadable({0});
}

// It ends in two of the target's.
TEST_F(UnreadableBlocksTest, OneOfMany) {
  make(8, 3);
  ObjectStore::Transaction txn;
  copy(&txn, 0, 8 * kBlock, 100);
  queue(std::move(txn));
  expect_unreadable({3, 4});
}

}  // namespace
}  // namespace swimstore
