// SPDX-License-Identifier: LGPL-2.1-or-later
// Data of a store in use is put together by way of the admin socket's commands.

#include "swimstore/admin/online_defragment.h"

#include <chrono>

#include <gtest/gtest.h>

#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {

namespace {

using namespace std::chrono_literals;

class OnlineDefragmentTest : public SimStoreFixture {
 protected:
  OnlineDefragmentTest() : SimStoreFixture({{"swimstore_defragment_rate", "4194304"}}) {}
  ~OnlineDefragmentTest() override { use_small_stores(g_ceph_context); }

  void start(bool dry_run = false) {
    std::string printed;
    ASSERT_EQ(
        0, admin_command(std::string(R"("prefix": "swimstore defragment", "dry_run": )") + (dry_run ? "true" : "false"),
                         &printed))
        << printed;
    EXPECT_NE(std::string::npos, printed.find(R"("state": "running")")) << printed;
  }
  std::string status() {
    std::string printed;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore defragment status")", &printed));
    return printed;
  }
  bool is(const std::string& state) { return status().find("\"state\": \"" + state + "\"") != std::string::npos; }
  uint64_t number(const std::string& field) {
    const std::string all = status(), name = "\"" + field + "\": ";
    const size_t at = all.find(name);
    return at == std::string::npos ? UINT64_MAX : std::stoull(all.substr(at + name.size()));
  }
  void finish() {
    for (unsigned i = 0; i < 1000 && is("running"); ++i) {
      m_env.advance(100ms);
    }
    ASSERT_TRUE(is("done")) << status();
  }
  // Objects of 128 KiB, in 32 pieces each.
  void age(unsigned objects) {
    for (uint64_t at = 0; at < 128 << 10; at += kBlockBytes) {
      ObjectStore::Transaction txn;
      for (unsigned i = 0; i < objects; ++i) {
        ceph::bufferlist data;
        data.append(std::string(kBlockBytes, static_cast<char>('a' + i)));
        txn.write(kPg, named(std::to_string(i)), at, kBlockBytes, data);
      }
      m_store->queue_transaction(m_pg, std::move(txn));
    }
    m_env.run_until_idle();
  }
};

}  // namespace

TEST_F(OnlineDefragmentTest, TellsWhatItHasDone) {
  EXPECT_TRUE(is("never run"));
  age(4);
  start(true);
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(4u, number("objects"));
  EXPECT_EQ(4u * (128 << 10), number("fragmented_bytes"));
  EXPECT_EQ(0u, number("moved_bytes"));
  start();
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(4u * (128 << 10), number("moved_bytes"));
  EXPECT_EQ(4u, number("moved_pieces_after"));
  start(true);
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(0u, number("fragmented_bytes"));
}

// 16 objects, each worth 128 KiB and 32 pieces of 64 KiB: 2.2 MB, so more than half a second.
TEST_F(OnlineDefragmentTest, KeepsToItsRate) {
  age(16);
  start();
  m_env.advance(1s);
  EXPECT_TRUE(is("running"));
  EXPECT_LE(number("moved_bytes"), 3u * (128 << 10));
  EXPECT_GE(number("moved_bytes"), 1u * (128 << 10));
  ASSERT_NO_FATAL_FAILURE(finish());
}

TEST_F(OnlineDefragmentTest, OneAtATimeAndItCanBeStopped) {
  age(16);
  start();
  m_env.advance(1s);
  std::string printed;
  EXPECT_EQ(-EBUSY, admin_command(R"("prefix": "swimstore defragment")", &printed));
  EXPECT_EQ(0, admin_command(R"("prefix": "swimstore defragment stop")", &printed));
  EXPECT_TRUE(is("stopped"));
  const uint64_t moved = number("moved_bytes");
  m_env.advance(5s);
  EXPECT_EQ(moved, number("moved_bytes"));
  start();
  ASSERT_NO_FATAL_FAILURE(finish());
}

// TearDown unmounts.
TEST_F(OnlineDefragmentTest, AnUnmountEndsIt) {
  age(16);
  start();
  m_env.advance(1s);
  EXPECT_TRUE(is("running"));
}

}  // namespace swimstore
