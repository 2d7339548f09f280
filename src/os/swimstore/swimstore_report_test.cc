// SPDX-License-Identifier: LGPL-2.1-or-later
// The size that a store reports: that of its host, whatever holes the store's files have.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {

namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kHostBytes = 256 * kMiB;
constexpr unsigned kObjects = 16;

class StatfsTest : public SimStoreFixture {
 protected:
  StatfsTest() : SimStoreFixture({{"swimstore_compress_metadata", "false"}}) {}

  void SetUp() override {
    m_env.set_capacity(kHostBytes);
    SimStoreFixture::SetUp();
  }

  void queue(ObjectStore::Transaction&& transaction) {
    m_store->queue_transaction(m_pg, std::move(transaction));
    m_env.run_until_idle();
  }
  // 8 MiB of data in all, and twice as much omap.
  void write_objects() {
    for (unsigned number = 0; number < kObjects; ++number) {
      const ghobject_t object = named(std::to_string(number));
      ceph::bufferlist data, value;
      data.append(std::string(kMiB / 2, 'd'));
      value.append(std::string(16384, 'v'));
      std::map<std::string, ceph::bufferlist> keys;
      for (unsigned key = 0; key < 64; ++key) {
        keys[std::to_string(number * 1000 + key)] = value;
      }
      ObjectStore::Transaction transaction;
      transaction.write(kPg, object, 0, data.length(), data);
      transaction.omap_setkeys(kPg, object, keys);
      queue(std::move(transaction));
    }
  }
  void remove_objects() {
    for (unsigned number = 0; number < kObjects; ++number) {
      ObjectStore::Transaction transaction;
      transaction.remove(kPg, named(std::to_string(number)));
      queue(std::move(transaction));
    }
    for (int checkpoint = 0; checkpoint < 3; ++checkpoint) {  // the older copy lets go of what was removed
      ASSERT_EQ(0, m_store->compact());
      m_env.run_until_idle();
    }
  }
  void remount(const std::function<void()>& between) {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
    ASSERT_NO_FATAL_FAILURE(between());
    m_store = std::make_unique<SwimStore>(g_ceph_context, kPath, &m_env);
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
  }
  uint64_t size_of(const std::string& path) {
    std::unique_ptr<vtkv::File> file;
    uint64_t bytes = 0;
    const vtkv::Status status = m_env.open_file(path, {.read_only = true, .direct = false}, &file);
    EXPECT_TRUE(status.ok() && file->size(&bytes).ok()) << status.to_string();
    return bytes;
  }
  store_statfs_t statfs() {
    store_statfs_t report;
    EXPECT_EQ(0, m_store->statfs(&report, nullptr));
    return report;
  }
  // Within a hundredth: small files, and the manifest, are not counted.
  void expect_the_hosts_size() {
    const store_statfs_t report = statfs();
    EXPECT_LE(report.total, kHostBytes);
    EXPECT_GE(report.total, kHostBytes - kHostBytes / 100);
    EXPECT_LE(report.available, kHostBytes - m_env.allocated_bytes());
  }

  static inline const std::string kTree = kPath + "/cubes/0/tree";
};

}  // namespace

TEST_F(StatfsTest, TheSizeIsTheHosts) {
  expect_the_hosts_size();
  write_objects();
  expect_the_hosts_size();
}

TEST_F(StatfsTest, SpaceThatTheTreeGaveBackIsTheHosts) {
  write_objects();
  ASSERT_EQ(0, m_store->compact());
  ASSERT_GT(size_of(kTree), 16 * kMiB);
  remove_objects();
  expect_the_hosts_size();
  EXPECT_LT(statfs().internal_metadata, 4 * int64_t{kMiB});  // log, and a few zones
  remount([] {});
  ASSERT_GT(size_of(kTree), 16 * kMiB);
  expect_the_hosts_size();
}

TEST_F(StatfsTest, AMountKnowsTheHolesOfTheTree) {
  const int64_t before = statfs().internal_metadata;
  remount([this] {
    std::unique_ptr<vtkv::File> tree;
    ASSERT_TRUE(m_env.open_file(kTree, {}, &tree).ok());
    ASSERT_TRUE(tree->truncate(64 * kMiB).ok() && tree->sync().ok());
  });
  expect_the_hosts_size();
  EXPECT_LT(statfs().internal_metadata, before + int64_t{kMiB});
}

}  // namespace swimstore
