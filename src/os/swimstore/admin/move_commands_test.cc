// SPDX-License-Identifier: LGPL-2.1-or-later
// Placement groups that go to other cubes in the background, by way of the admin socket's commands, on the host and
// with threads that change them meanwhile.

#include "swimstore/admin/move_commands.h"

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "common/Cond.h"
#include "global/global_context.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"

namespace swimstore {

namespace {

using namespace std::chrono_literals;

constexpr unsigned kGroups = 4;
constexpr int64_t kPool = 3;

class MoveCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "2"},
                                      {"swimstore_log_segment_size", "1048576"},
                                      {"swimstore_slow_ops_warn_threshold", "0"}});
    m_path = std::filesystem::absolute("store_in_use");
    std::filesystem::remove_all(m_path);
    std::filesystem::create_directory(m_path);
    m_store = std::make_unique<SwimStore>(g_ceph_context, m_path);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    for (unsigned number = 0; number < kGroups; ++number) {
      m_groups[number] = m_store->create_new_collection(cid(number));
      ObjectStore::Transaction create;
      create.create_collection(cid(number), 2);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[number], std::move(create)));
      m_loads.emplace_back(cid(number), WorkloadOptions{.seed = number, .objects = 30, .hashes = 12});
      for (unsigned i = 0; i < 60; ++i) {
        change(number);
      }
    }
  }
  void TearDown() override {
    for (unsigned number = 0; number < kGroups; ++number) {
      if (m_groups[number]) {
        std::string error;
        const ModelCollection found = read_collection(*m_store, m_groups[number], &error);
        EXPECT_EQ("", error);
        EXPECT_EQ("", difference(m_loads[number].model(), found)) << number;
      }
    }
    m_groups = {};
    ASSERT_EQ(0, m_store->umount());
    EXPECT_EQ(0, m_store->fsck(true));
    m_store.reset();
    std::filesystem::remove_all(m_path);
    use_small_stores(g_ceph_context);
  }

  static coll_t cid(unsigned number) { return coll_t(spg_t(pg_t(number, kPool))); }
  // As a client that waits for each.
  void change(unsigned number) { queue(number, m_loads[number].next()); }
  void write(unsigned number, const ghobject_t& oid, ceph::bufferlist data) {
    ObjectStore::Transaction txn;
    txn.write(cid(number), oid, 0, data.length(), data);
    queue(number, std::move(txn));
  }
  void queue(unsigned number, ObjectStore::Transaction txn) {
    C_SaferCond committed;
    txn.register_on_commit(&committed);
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[number], std::move(txn)));
    committed.wait();
  }
  // Of the plan that the status tells, in its order.
  std::vector<unsigned> planned_groups() {
    const std::string told = status();
    const size_t begin = told.find("\"plan\"");
    const std::string plan = told.substr(begin, told.find(']', begin) - begin);
    std::vector<unsigned> groups;
    for (size_t at = plan.find("\"3."); at != std::string::npos; at = plan.find("\"3.", at + 1)) {
      groups.push_back(plan[at + 3] - '0');
    }
    return groups;
  }
  // Wherever a container holds these bytes.
  void flip_a_byte(const std::string& bytes) const {
    for (const auto& file : std::filesystem::recursive_directory_iterator(m_path)) {
      if (file.path().string().find("/containers/") == std::string::npos || !file.is_regular_file()) {
        continue;
      }
      std::fstream container(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      const std::string content(std::istreambuf_iterator<char>(container), {});
      if (const size_t at = content.find(bytes); at != std::string::npos) {
        container.seekp(static_cast<std::streamoff>(at));
        container.put('~');
        return;
      }
    }
    FAIL() << "no container holds them";
  }

  int command(const std::string& prefix, const std::string& arguments, std::string* printed) {
    return admin_command(R"("prefix": "swimstore )" + prefix + '"' + arguments, printed);
  }
  int move(const std::string& group, int64_t cube, std::string* printed) {
    return command("move", R"(, "collection": ")" + group + R"(", "cube": )" + std::to_string(cube), printed);
  }
  std::string status() {
    std::string printed;
    EXPECT_EQ(0, command("status", "", &printed));
    return printed;
  }
  static bool says(const std::string& printed, const std::string& state) {
    return printed.find(R"("state": ")" + state + '"') != std::string::npos;
  }
  bool says(const std::string& state) { return says(status(), state); }
  void finish() {
    for (unsigned i = 0; i < 3000; ++i) {
      const std::string printed = status();  // of one moment: measuring is followed by moving
      if (!says(printed, "moving") && !says(printed, "measuring")) {
        return;
      }
      std::this_thread::sleep_for(10ms);
    }
  }
  unsigned home(unsigned number) { return home_of(*m_store, cid(number)); }

  std::string m_path;
  std::unique_ptr<SwimStore> m_store;
  std::array<ObjectStore::CollectionHandle, kGroups> m_groups;
  std::vector<StoreWorkload> m_loads;
};

}  // namespace

// Two groups change all the time; they and the others go to and fro.
TEST_F(MoveCommandsTest, ClientsGoOnWhileGroupsMove) {
  std::atomic<bool> ended{false};
  std::vector<std::thread> clients;
  for (const unsigned number : {0u, 1u}) {
    clients.emplace_back([&, number] {
      while (!ended) {
        change(number);
      }
    });
    clients.emplace_back([&, number] {
      while (!ended) {
        std::vector<ghobject_t> oids;
        m_store->collection_list(m_groups[number], ghobject_t(), ghobject_t::get_max(), 100, &oids, nullptr);
        for (const ghobject_t& oid : oids) {
          ceph::bufferlist data;
          EXPECT_NE(-EIO, m_store->read(m_groups[number], oid, 0, 0, data));
        }
      }
    });
  }
  unsigned moved = 0;
  for (unsigned round = 0; round < 8; ++round) {
    const unsigned number = round % 3;
    const unsigned cube = 3 - home(number);
    std::string printed;
    ASSERT_EQ(0, move("3." + std::to_string(number) + "_head", cube, &printed)) << printed;
    finish();
    ASSERT_TRUE(says("done")) << status();
    moved += home(number) == cube;
  }
  EXPECT_EQ(8u, moved);
  std::string printed;
  EXPECT_EQ(0, command("balance", "", &printed)) << printed;
  finish();
  EXPECT_TRUE(says("done")) << status();
  ended = true;
  for (std::thread& client : clients) {
    client.join();
  }
}

TEST_F(MoveCommandsTest, BalanceMovesWhatItPlanned) {
  std::string printed;
  for (unsigned number = 0; number < kGroups; ++number) {
    ASSERT_EQ(0, move("3." + std::to_string(number), 1, &printed)) << printed;  // the shorter name, too
    finish();
    ASSERT_EQ(1u, home(number));
  }
  ASSERT_EQ(0, command("balance", R"(, "dry_run": true)", &printed));
  finish();
  EXPECT_TRUE(says("planned")) << status();
  EXPECT_NE(std::string::npos, status().find(R"("to": 2)")) << status();
  for (unsigned number = 0; number < kGroups; ++number) {
    EXPECT_EQ(1u, home(number));
  }
  ASSERT_EQ(0, command("balance", "", &printed));
  finish();
  EXPECT_TRUE(says("done")) << status();
  unsigned in_first = 0;
  for (unsigned number = 0; number < kGroups; ++number) {
    in_first += home(number) == 1;
    EXPECT_NE(std::string::npos, status().find("\"3." + std::to_string(number) + '"')) << "it is in a cube's list";
  }
  EXPECT_GT(in_first, 0u);
  EXPECT_LT(in_first, kGroups);
}

// The largest groups go first: the others shall not wait until a replica has repaired one.
TEST_F(MoveCommandsTest, BalancePassesOverAGroupWithABlockThatCannotBeRead) {
  std::string printed;
  std::array<std::string, kGroups> blocks;
  const auto oid = [](unsigned number) {
    return ghobject_t(hobject_t(object_t("rotten"), "", CEPH_NOSNAP, number, kPool, ""));
  };
  for (unsigned number = 0; number < kGroups; ++number) {
    ASSERT_EQ(0, move("3." + std::to_string(number), 1, &printed)) << printed;
    finish();
    blocks[number] = std::string(4096, static_cast<char>('A' + number));
    ceph::bufferlist data;
    data.append(blocks[number]);
    write(number, oid(number), std::move(data));
  }
  ASSERT_EQ(0, command("balance", R"(, "dry_run": true)", &printed));
  finish();
  std::vector<unsigned> planned = planned_groups();
  ASSERT_GT(planned.size(), 1u) << status();
  m_store->flush_cache();
  flip_a_byte(blocks[planned[0]]);
  ASSERT_EQ(0, command("balance", "", &printed));
  finish();
  EXPECT_NE(std::string::npos, status().find("3." + std::to_string(planned[0]) + "_head was not moved")) << status();
  EXPECT_EQ(1u, home(planned[0]));
  EXPECT_EQ(2u, home(planned[1])) << status();
  for (unsigned number = 0; number < kGroups; ++number) {
    ObjectStore::Transaction remove;
    remove.remove(cid(number), oid(number));
    queue(number, std::move(remove));
  }
}

TEST_F(MoveCommandsTest, OneAtATimeAndItCanBeStopped) {
  std::string printed;
  const unsigned cube = home(0);
  ASSERT_EQ(0, move("3.0_head", 3 - cube, &printed));
  EXPECT_NE(std::string::npos, printed.find(R"("state": "moving")")) << printed;
  if (move("3.1_head", 1, &printed) != 0) {  // or the first was very quick
    EXPECT_NE(std::string::npos, printed.find(R"("error": "a move is under way)")) << printed;
  }
  EXPECT_EQ(0, command("move stop", "", &printed));
  finish();
  EXPECT_TRUE(says("stopped") || says("done")) << status();
  ASSERT_EQ(0, move("3.0_head", 3 - cube, &printed)) << printed;
  finish();
  EXPECT_TRUE(says("done")) << status();
  EXPECT_EQ(3 - cube, home(0));
}

TEST_F(MoveCommandsTest, WhatCannotBeIsRefused) {
  std::string printed;
  EXPECT_EQ(-EINVAL, move("nonsense", 1, &printed));
  EXPECT_NE(std::string::npos, printed.find("no name of a collection")) << printed;
  EXPECT_EQ(-EINVAL, move("3.00_head", 1, &printed)) << "coll_t::parse() would end the process";
  EXPECT_EQ(-ENOENT, move("3.1b", 1, &printed)) << "here, too";
  EXPECT_EQ(-EINVAL, move("3.0_head", 7, &printed));
  EXPECT_NE(std::string::npos, printed.find("are moved to cubes 1 to 2, not to cube 7")) << printed;
  EXPECT_EQ(-EINVAL, move("3.0_head", (int64_t{1} << 32) + 1, &printed));
  EXPECT_NE(std::string::npos, printed.find("there is no cube 4294967297")) << printed;
  EXPECT_EQ(-EINVAL, move("3.0_head", -1, &printed));
  EXPECT_EQ(-ENOENT, move("3.9_head", 1, &printed));
  EXPECT_EQ(-EINVAL, move("meta", 1, &printed));
}

// The copy is left to the next mount.
TEST_F(MoveCommandsTest, AnUnmountEndsIt) {
  for (unsigned round = 0; round < 5; ++round) {
    std::string printed;
    ASSERT_EQ(0, move("3.2_head", 3 - home(2), &printed));
    std::this_thread::sleep_for(round * 5ms);
    m_groups = {};
    ASSERT_EQ(0, m_store->umount());
    ASSERT_EQ(0, m_store->fsck(true));
    ASSERT_EQ(0, m_store->mount());
    for (unsigned number = 0; number < kGroups; ++number) {
      m_groups[number] = m_store->open_collection(cid(number));
    }
    EXPECT_TRUE(says("idle"));
    change(2);
  }
}

// A merge moves a group to where its copy is just made, or its old objects are just removed.
TEST_F(MoveCommandsTest, AMergeDoesNotMeetTheCopy) {
  std::string printed;
  const unsigned cube = home(0);
  for (unsigned round = 0; round < 12; ++round) {
    if (home(2) == cube) {
      ASSERT_EQ(0, move("3.2_head", 3 - cube, &printed)) << printed;
      finish();
    }
    ASSERT_NE(cube, home(2));
    for (unsigned i = 0; i < 10; ++i) {
      change(2);
    }
    ASSERT_EQ(0, move("3.2_head", cube, &printed));
    std::this_thread::sleep_for(round * 3ms);
    // A transaction of both, as a merge is one.
    const ghobject_t oid(hobject_t(object_t("anchor"), "", CEPH_NOSNAP, 0, kPool, ""));
    ObjectStore::Transaction both, change_of_one = m_loads[2].next();
    both.touch(cid(0), oid);
    both.remove(cid(0), oid);
    both.append(change_of_one);
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(both)));
    ASSERT_EQ(cube, home(2));
    finish();
    std::string error;
    const ModelCollection found = read_collection(*m_store, m_groups[2], &error);
    ASSERT_EQ("", error);
    ASSERT_EQ("", difference(m_loads[2].model(), found)) << round;
  }
}

}  // namespace swimstore
