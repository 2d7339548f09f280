// SPDX-License-Identifier: LGPL-2.1-or-later
// Data of a store in use is put together by way of the admin socket's commands.

#include "swimstore/admin/online_defragment.h"

#include <chrono>
#include <functional>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "common/Formatter.h"
#include "swimstore/defragment/fragmented_range.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {

namespace {

using namespace std::chrono_literals;

class OnlineDefragmentTest : public SimStoreFixture {
 protected:
  OnlineDefragmentTest()
      : SimStoreFixture({{"swimstore_defragment_rate", "4194304"},
                         {"swimstore_zone_size", "1048576"},
                         {"swimstore_compress_metadata", "false"}}) {}
  ~OnlineDefragmentTest() override { use_small_stores(g_ceph_context); }

  int begin(const std::string& arguments, std::string* printed) {
    return admin_command(R"("prefix": "swimstore defragment")" + arguments, printed);
  }
  void start(bool dry_run = false, const std::string& arguments = "") {
    std::string printed;
    ASSERT_EQ(0, begin(std::string(R"(, "dry_run": )") + (dry_run ? "true" : "false") + arguments, &printed))
        << printed;
    EXPECT_NE(std::string::npos, printed.find(R"("state": "running")")) << printed;
  }
  std::string status() {
    std::string printed;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore defragment status")", &printed));
    return printed;
  }
  bool is(const std::string& state) { return status().find("\"state\": \"" + state + "\"") != std::string::npos; }
  static uint64_t number_in(const std::string& text, const std::string& field) {
    const std::string name = "\"" + field + "\":";
    const size_t at = text.find(name);
    return at == std::string::npos ? UINT64_MAX : std::stoull(text.substr(at + name.size()));
  }
  uint64_t number(const std::string& field) { return number_in(status(), field); }
  void wait_for(const char* state) {
    for (unsigned i = 0; i < 1000 && is("running"); ++i) {
      m_env.advance(100ms);
    }
    ASSERT_TRUE(is(state)) << status();
  }
  void finish() { wait_for("done"); }
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
  void set_keys(char value, const std::function<bool(unsigned)>& has) {
    std::map<std::string, ceph::bufferlist> keys;
    for (unsigned i = 0; i < 8000; ++i) {
      if (has(i)) {
        keys["key" + std::to_string(10000 + i)].append(std::string(500, value));
      }
    }
    ObjectStore::Transaction txn;
    txn.touch(kPg, named("omap"));
    txn.omap_setkeys(kPg, named("omap"), keys);
    m_store->queue_transaction(m_pg, std::move(txn));
    ASSERT_EQ(0, m_store->compact());
  }
  // What lies between the ranges that are overwritten is taken over by the compaction, and leaves zones half empty.
  void age_tree() {
    set_keys('a', [](unsigned) { return true; });
    set_keys('b', [](unsigned i) { return i / 150 % 2 == 0; });
  }
  std::map<std::string, ceph::bufferlist> omap() {
    ceph::bufferlist header;
    std::map<std::string, ceph::bufferlist> keys;
    EXPECT_EQ(0, m_store->omap_get(m_pg, named("omap"), &header, &keys));
    return keys;
  }
  std::string database() {
    std::ostringstream text;
    ceph::JSONFormatter formatter;
    m_store->get_db_statistics(&formatter);
    formatter.flush(text);
    return text.str();
  }
  uint64_t free_bytes() {
    vtkv::FileSystemInfo host;
    EXPECT_TRUE(m_env.file_system_info(kPath, &host).ok());
    return host.available_bytes;
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

TEST_F(OnlineDefragmentTest, TellsHowLongItTakes) {
  age(16);
  start(true);
  ASSERT_NO_FATAL_FAILURE(finish());
  const uint64_t cost = 16u * (2 * (128 << 10) + 32 * kPieceBytes);
  EXPECT_GE(number("seconds_to_move"), cost / (4 << 20));
  EXPECT_LE(number("seconds_to_move"), (cost + (1 << 20)) / (4 << 20)) << "with looking at them";
  EXPECT_EQ(number("placement_groups"), number("placement_groups_done"));
  start();
  m_env.advance(1s);
  EXPECT_EQ(1u, number("seconds"));
  EXPECT_EQ(UINT64_MAX, number("seconds_to_move"));
  ASSERT_NO_FATAL_FAILURE(finish());
  const uint64_t seconds = number("seconds");
  m_env.advance(10s);
  EXPECT_EQ(seconds, number("seconds")) << "of a pass that is over";
}

TEST_F(OnlineDefragmentTest, OfOnePoolAlone) {
  age(4);
  const coll_t other{spg_t(pg_t(0, 2))};
  auto other_pg = m_store->create_new_collection(other);
  ObjectStore::Transaction txn;
  txn.create_collection(other, 0);
  txn.touch(other, ghobject_t(hobject_t(object_t("x"), "", CEPH_NOSNAP, 7, 2, "")));
  m_store->queue_transaction(other_pg, std::move(txn));
  m_env.run_until_idle();
  std::string printed;
  EXPECT_EQ(-ENOENT, begin(R"(, "pool": 3)", &printed));
  EXPECT_NE(std::string::npos, printed.find("no placement group of pool 3")) << printed;
  EXPECT_TRUE(is("never run"));
  start(true, R"(, "pool": 1)");
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(1u, number("pool"));
  EXPECT_EQ(1u, number("placement_groups"));
  EXPECT_EQ(4u, number("objects"));
  start(true);
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(2u, number("placement_groups"));
  EXPECT_EQ(5u, number("objects"));
  EXPECT_EQ(UINT64_MAX, number("pool"));
}

// A group's objects are listed 256 at a time.
TEST_F(OnlineDefragmentTest, TellsWhatIsLeftOfOneGroup) {
  for (unsigned i = 0; i < 1024; ++i) {
    ObjectStore::Transaction txn;
    txn.touch(kPg, ghobject_t(hobject_t(object_t(std::to_string(i)), "", CEPH_NOSNAP, i * 0x9e3779b1, 1, "")));
    m_store->queue_transaction(m_pg, std::move(txn));
  }
  m_env.run_until_idle();
  g_ceph_context->_conf.set_val_or_die("swimstore_defragment_rate", "1048576");
  start();
  EXPECT_EQ(UINT64_MAX, number("seconds_left"));
  for (unsigned i = 0; i < 1000 && number("objects") < 600; ++i) {
    m_env.advance(100ms);
  }
  const uint64_t left = number("seconds_left");
  EXPECT_GE(left, number("seconds") / 2) << status();
  EXPECT_LE(left, 2 * number("seconds")) << status();
  ASSERT_NO_FATAL_FAILURE(finish());
}

TEST_F(OnlineDefragmentTest, TheTreesAreDefragmented) {
  age_tree();
  const auto before = omap();
  start(true, R"(, "metadata": true)");
  ASSERT_NO_FATAL_FAILURE(finish());
  const uint64_t zones = number("zones"), fragments = number("fragments");
  ASSERT_GE(zones, 3u) << status();
  EXPECT_EQ(0u, number("moved_bytes"));
  EXPECT_EQ(number("cubes"), number("cubes_done"));
  g_ceph_context->_conf.set_val_or_die("swimstore_defragment_rate", "65536");
  EXPECT_EQ(number("zones_used_bytes") / 65536, number("seconds_to_move"));
  EXPECT_GT(number("seconds_to_move"), 10u);
  g_ceph_context->_conf.set_val_or_die("swimstore_defragment_rate", "4194304");
  m_env.run_until_idle();
  const uint64_t bytes_before = free_bytes();
  start(false, R"(, "metadata": true)");
  ASSERT_NO_FATAL_FAILURE(finish());
  m_env.run_until_idle();
  EXPECT_GE(free_bytes(), bytes_before + number("zones_unused_bytes") / 2)
      << "nobody else writes, and the space comes back all the same";
  EXPECT_EQ(zones, number("zones"));
  EXPECT_GE(number("moved_bytes"), number("zones_used_bytes") / 2);
  EXPECT_GE(number("written_bytes"), number("moved_bytes"));
  start(true, R"(, "metadata": true)");
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_LT(number("zones"), zones / 2);
  // Each part of a run keeps a descriptor and a filter of its own, and parts are small here.
  EXPECT_LT(number("fragments"), fragments * 2 / 3);
  EXPECT_EQ(before, omap());
}

TEST_F(OnlineDefragmentTest, ThatOfTheTreesIsStopped) {
  age_tree();
  g_ceph_context->_conf.set_val_or_die("swimstore_defragment_rate", "65536");
  start(false, R"(, "metadata": true)");
  for (unsigned i = 0; i < 100 && number("moved_bytes") == 0; ++i) {
    m_env.advance(100ms);
  }
  std::string printed;
  EXPECT_EQ(-EBUSY, begin(R"(, "metadata": true)", &printed));
  EXPECT_EQ(0, admin_command(R"("prefix": "swimstore defragment stop")", &printed));
  EXPECT_TRUE(is("stopped"));
  EXPECT_GT(number("moved_bytes"), 0u);
  EXPECT_LT(number("moved_bytes"), number("zones_used_bytes") / 2);
  m_env.run_until_idle();
  const std::string before = database();
  m_env.advance(10min);
  EXPECT_EQ(before, database());
}

// TearDown unmounts.
TEST_F(OnlineDefragmentTest, AnUnmountEndsThatOfTheTrees) {
  age_tree();
  g_ceph_context->_conf.set_val_or_die("swimstore_defragment_rate", "65536");
  start(false, R"(, "metadata": true)");
  m_env.advance(1s);
  EXPECT_TRUE(is("running"));
}

TEST_F(OnlineDefragmentTest, ATreeIsNotDefragmentedIntoTheReserve) {
  age_tree();
  m_env.run_until_idle();
  vtkv::FileSystemInfo host;
  ASSERT_TRUE(m_env.file_system_info(kPath, &host).ok());
  m_env.set_capacity(host.total_bytes - host.available_bytes + (1 << 20));
  start(false, R"(, "metadata": true)");
  ASSERT_NO_FATAL_FAILURE(wait_for("failed"));
  EXPECT_NE(std::string::npos, status().find("Make room on the file system")) << status();
  EXPECT_EQ(0u, number("moved_bytes"));
}

TEST_F(OnlineDefragmentTest, ATreeHasNoPools) {
  std::string printed;
  EXPECT_EQ(-EINVAL, begin(R"(, "metadata": true, "pool": 1)", &printed));
  EXPECT_NE(std::string::npos, printed.find("leave out pool")) << printed;
}

class OnlineDefragmentOfCubesTest : public OnlineDefragmentTest {
 protected:
  OnlineDefragmentOfCubesTest() { g_ceph_context->_conf.set_val_or_die("swimstore_cubes", "4"); }
};

TEST_F(OnlineDefragmentOfCubesTest, TheTreesAreDefragmentedOneAfterTheOther) {
  age_tree();
  const auto before = omap();
  start(false, R"(, "metadata": true)");
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(5u, number("cubes"));
  EXPECT_EQ(5u, number("cubes_done"));
  EXPECT_GT(number("moved_bytes"), 0u);
  EXPECT_EQ(before, omap());
}

// The group lies in a cube of its own.
TEST_F(OnlineDefragmentOfCubesTest, OneThatFailsKeepsNoOtherFromIt) {
  age_tree();
  const std::string cube = std::to_string(home_of(*m_store, kPg));
  m_env.set_bad(vtkv::SimBad::reads, kPath + "/cubes/" + cube + "/tree", 0, uint64_t{1} << 40);
  start(false, R"(, "metadata": true)");
  ASSERT_NO_FATAL_FAILURE(wait_for("failed"));
  EXPECT_NE(std::string::npos, status().find("the tree of cube " + cube)) << status();
  EXPECT_NE(std::string::npos, status().find("swimstore verify")) << status();
  EXPECT_EQ(4u, number("cubes_done"));
  m_env.clear_faults();
}

// TearDown unmounts.
TEST_F(OnlineDefragmentTest, AnUnmountEndsIt) {
  age(16);
  start();
  m_env.advance(1s);
  EXPECT_TRUE(is("running"));
}

}  // namespace swimstore
