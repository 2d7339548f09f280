// SPDX-License-Identifier: LGPL-2.1-or-later
// A merge that has to copy a placement group into another cube, on a host that has no room for a second copy: it waits,
// as a write does, and goes on when there is some.

#include "swimstore/move/collection_mover.h"

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/testing/capped_env.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

constexpr int64_t kPool = 2;
constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kCapacity = 512 * kMiB;
constexpr unsigned kPieces = 16;  // of data
constexpr unsigned kOmapPieces = 8;
constexpr uint64_t kPieceBytes = 4 * kMiB;
constexpr unsigned kKeys = 1024;  // in each piece

// Others take what the store gives back, or fill it as soon as the store has taken some of it.
class SharedHost final : public CappedEnv {
 public:
  using CappedEnv::CappedEnv;

  void keep_free(uint64_t bytes) { m_free_bytes = bytes; }
  void fill_when_used(uint64_t bytes) { m_fill_at_bytes = bytes; }
  bool is_filled() const { return m_is_filled; }
  void free_all() { m_free_bytes = kCapacity; }

  vtkv::Status file_system_info(const std::string& path, vtkv::FileSystemInfo* info) override {
    const uint64_t used = used_bytes();
    if (used >= m_fill_at_bytes && !m_is_filled.exchange(true)) {
      m_free_bytes = 0;
    }
    const uint64_t free = m_free_bytes;
    set_capacity(free < kCapacity ? used + free : kCapacity);
    return CappedEnv::file_system_info(path, info);
  }

 private:
  std::atomic<uint64_t> m_free_bytes{kCapacity};
  std::atomic<uint64_t> m_fill_at_bytes{UINT64_MAX};
  std::atomic<bool> m_is_filled{false};
};

// A store of three cubes. Two groups of a pool lie in cubes 1 and 2; the second one, which moves, has an object.
class MoveOnAFullHost : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(m_path);
    std::filesystem::create_directory(m_path);
    use_small_stores(
        g_ceph_context,
        {{"swimstore_cubes", "2"}, {"swimstore_reserve_size", "4194304"}, {"swimstore_space_wait_time", "0.1"}});
    ASSERT_EQ(0, m_store.mkfs());
    ASSERT_EQ(0, m_store.mount());
    for (unsigned i = 0; i < 2; ++i) {
      m_groups[i] = m_store.create_new_collection(m_cids[i]);
      ObjectStore::Transaction create;
      create.create_collection(m_cids[i], 1);
      ASSERT_EQ(0, m_store.queue_transaction(m_groups[i], std::move(create)));
    }
  }
  void TearDown() override {
    m_groups = {};
    ASSERT_EQ(0, m_store.umount());
    EXPECT_EQ(0, m_store.fsck(true));
    use_small_stores(g_ceph_context);
    std::filesystem::remove_all(m_path);
  }

  void write_data() {
    for (unsigned i = 0; i < kPieces; ++i) {
      ceph::bufferlist data;
      data.append(m_text);
      ObjectStore::Transaction write;
      write.write(m_cids[1], m_oid, i * m_text.size(), m_text.size(), data);
      ASSERT_EQ(0, m_store.queue_transaction(m_groups[1], std::move(write)));
    }
  }
  // And a block of data.
  void write_omap() {
    ceph::bufferlist data;
    data.append(m_text.substr(0, kBlockBytes));
    ObjectStore::Transaction block;
    block.write(m_cids[1], m_oid, 0, data.length(), data);
    ASSERT_EQ(0, m_store.queue_transaction(m_groups[1], std::move(block)));
    for (unsigned i = 0; i < kOmapPieces; ++i) {
      std::map<std::string, ceph::bufferlist> entries;
      for (unsigned key = 0; key < kKeys; ++key) {
        entries[std::to_string(i * kKeys + key)].append(m_text.substr(0, kPieceBytes / kKeys));
      }
      ObjectStore::Transaction write;
      write.omap_setkeys(m_cids[1], m_oid, entries);
      ASSERT_EQ(0, m_store.queue_transaction(m_groups[1], std::move(write)));
    }
    // What the log has grown by is given back.
    m_groups = {};
    ASSERT_EQ(0, m_store.umount());
    ASSERT_EQ(0, m_store.mount());
    for (unsigned i = 0; i < 2; ++i) {
      m_groups[i] = m_store.open_collection(m_cids[i]);
    }
  }

  uint64_t target_bytes() const { return CappedEnv(vtkv::posix_env(), m_path + "/cubes/1", 0).used_bytes(); }
  void begin_merge() {
    m_merge = std::thread([this] {
      ObjectStore::Transaction txn;
      txn.merge_collection(m_cids[1], m_cids[0], 0);
      EXPECT_EQ(0, m_store.queue_transaction(m_groups[0], std::move(txn)));
      m_merged = true;
    });
  }
  bool is_said_to_wait() {
    osd_alert_list_t alerts;
    store_statfs_t report;
    m_store.statfs(&report, &alerts);
    return alerts.contains("SWIMSTORE_NO_SPACE");
  }
  // And holds no lock meanwhile.
  void expect_that_it_waits() {
    for (unsigned tries = 0; tries < 3000 && !is_said_to_wait() && !m_merged; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(is_said_to_wait());
    EXPECT_FALSE(m_merged);
    EXPECT_TRUE(m_merged || m_store.exists(m_groups[1], m_oid));
  }
  void end_merge() {
    m_env.free_all();
    m_merge.join();
  }
  // With what copies have.
  uint64_t stored_bytes() {
    store_statfs_t report;
    bool per_pool_omap = false;
    EXPECT_EQ(0, m_store.pool_statfs(kPool, &report, &per_pool_omap));
    return report.data_stored;
  }
  void expect_omap() {
    std::map<std::string, ceph::bufferlist> entries;
    ceph::bufferlist header;
    ASSERT_EQ(0, m_store.omap_get(m_groups[0], m_oid, &header, &entries));
    EXPECT_EQ(kOmapPieces * kKeys, entries.size());
    for (auto& [key, value] : entries) {
      ASSERT_EQ(m_text.substr(0, kPieceBytes / kKeys), value.to_str()) << key;
    }
  }

  const std::string m_path = std::filesystem::absolute(::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::array<coll_t, 2> m_cids{coll_t(spg_t(pg_t(0, kPool))), coll_t(spg_t(pg_t(1, kPool)))};
  const ghobject_t m_oid{hobject_t(object_t("object"), "", CEPH_NOSNAP, 1, kPool, "")};
  const std::string m_text = std::string(kPieceBytes, 'x');
  SharedHost m_env{vtkv::posix_env(), m_path, kCapacity};
  SwimStore m_store{g_ceph_context, m_path, &m_env};
  std::array<ObjectStore::CollectionHandle, 2> m_groups;
  std::atomic<bool> m_merged{false};
  std::thread m_merge;
};

TEST_F(MoveOnAFullHost, WaitsForRoom) {
  ASSERT_NO_FATAL_FAILURE(write_data());
  const uint64_t before_bytes = target_bytes();
  m_env.keep_free(2 * kMiB);
  begin_merge();
  expect_that_it_waits();
  uint64_t most_bytes = 0;
  for (unsigned look = 0; look < 500; ++look) {
    most_bytes = std::max(most_bytes, target_bytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(most_bytes, before_bytes + 8 * kMiB) << "it takes what is not enough, as others give it back";
  end_merge();
  ceph::bufferlist data;
  EXPECT_EQ(static_cast<int>(m_text.size()), m_store.read(m_groups[0], m_oid, 7 * m_text.size(), m_text.size(), data));
  EXPECT_EQ(m_text, data.to_str());
}

// Omap goes to log and tree, which nobody promises: it is asked for all the same.
TEST_F(MoveOnAFullHost, WaitsForRoomForOmap) {
  ASSERT_NO_FATAL_FAILURE(write_omap());
  const uint64_t before_bytes = target_bytes();
  m_env.keep_free(8 * kMiB);
  begin_merge();
  expect_that_it_waits();
  EXPECT_LT(target_bytes(), before_bytes + 8 * kMiB);
  end_merge();
  expect_omap();
}

// There was room when it began. It goes back before log and tree find none, and its copy with it.
TEST_F(MoveOnAFullHost, GoesBackWhereOthersFillTheHost) {
  ASSERT_NO_FATAL_FAILURE(write_omap());
  const uint64_t before_bytes = target_bytes();
  m_env.fill_when_used(m_env.used_bytes() + 8 * kMiB);
  begin_merge();
  expect_that_it_waits();
  EXPECT_TRUE(m_env.is_filled());
  EXPECT_LT(target_bytes(), before_bytes + kOmapPieces * kPieceBytes);
  EXPECT_EQ(kBlockBytes, stored_bytes());
  // What was enough before is not again.
  m_env.keep_free(kOmapPieces * kPieceBytes + 40 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(m_merged);
  EXPECT_EQ(kBlockBytes, stored_bytes());
  end_merge();
  expect_omap();
}

}  // namespace

}  // namespace swimstore
