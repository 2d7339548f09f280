// SPDX-License-Identifier: LGPL-2.1-or-later
// Collections that move between the cubes of a store while clients change them.

#include "swimstore/move/online_move.h"

#include <array>
#include <functional>

#include <gtest/gtest.h>

#include "swimstore/fsck/fsck.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/testing/store_workload.h"
#include "vtkv/testing/mutations.h"

namespace swimstore {

namespace {

using vtkv::Mutation;
using vtkv::Status;

constexpr int64_t kPool = 2;

// A pause before each block and key; and hardly any.
constexpr MoveLimits kShort{.batch_bytes = 1};
constexpr MoveLimits kMiddle{.batch_bytes = 100'000};

// A store of three cubes. Two groups of a pool, of one bit each, lie in cubes 1 and 2. The second moves, between
// transactions of every kind.
class OnlineMoveTest : public SimStoreFixture {
 protected:
  OnlineMoveTest() : SimStoreFixture({{"swimstore_cubes", "2"}, {"swimstore_log_segment_size", "262144"}}) {}
  ~OnlineMoveTest() override { use_small_stores(g_ceph_context); }

  void SetUp() override {
    SimStoreFixture::SetUp();
    for (unsigned i = 0; i < 2; ++i) {
      create(kGroup[i], 1, &m_groups[i]);
    }
    load(1);
  }
  void TearDown() override {
    m_groups = {};
    SimStoreFixture::TearDown();
  }

  void create(const coll_t& cid, unsigned bits, ObjectStore::CollectionHandle* handle) {
    *handle = m_store->create_new_collection(cid);
    ObjectStore::Transaction create;
    create.create_collection(cid, bits);
    ASSERT_EQ(0, m_store->queue_transaction(*handle, std::move(create)));
  }
  void load(uint64_t seed) {
    ModelCollection model = m_workload ? m_workload->model() : ModelCollection();
    m_workload.emplace(kGroup[1],
                       WorkloadOptions{.seed = seed, .objects = 20, .hashes = 10, .object_bytes_max = 100'000},
                       std::move(model));
  }
  void change(unsigned transactions) {
    for (unsigned i = 0; i < transactions; ++i) {
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], m_workload->next()));
    }
  }
  // The second one, with all that it has, as an OSD does that has it no more.
  void remove_group() {
    ObjectStore::Transaction remove;
    for (const auto& [oid, object] : m_workload->model()) {
      remove.remove(kGroup[1], oid);
    }
    remove.remove_collection(kGroup[1]);
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(remove)));
  }
  Status move(unsigned cube, const MoveLimits& limits, const std::function<void()>& between) {
    return m_store->move_in_use(kGroup[1], cube, limits, between);
  }
  void compare() {
    std::string error;
    const ModelCollection found = read_collection(*m_store, m_groups[1], &error);
    ASSERT_EQ("", error);
    ASSERT_EQ("", difference(m_workload->model(), found));
  }
  bool differs() {
    std::string error;
    return m_workload->model() != read_collection(*m_store, m_groups[1], &error);
  }
  int64_t allocated() {
    store_statfs_t report;
    bool per_pool_omap = false;
    EXPECT_EQ(0, m_store->pool_statfs(kPool, &report, &per_pool_omap));
    return report.allocated;
  }
  std::string command(const std::string& arguments) {
    std::string printed;
    admin_command(arguments, &printed);
    return printed;
  }
  unsigned home() { return home_of(*m_store, kGroup[1]); }
  void check() {
    m_pg.reset();
    m_groups = {};
    ASSERT_EQ(0, m_store->umount());
    CheckResult result;
    ASSERT_TRUE(m_store->check({.deep = true}, &result).ok());
    EXPECT_EQ(0u, result.errors) << result.findings.front().text;
    EXPECT_EQ(m_workload->model().size(), result.objects - m_others);
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
    for (unsigned i = 0; i < 2; ++i) {
      m_groups[i] = m_store->open_collection(kGroup[i]);
    }
    ASSERT_NO_FATAL_FAILURE(compare());
  }

  static inline const std::array<coll_t, 2> kGroup{coll_t(spg_t(pg_t(0, kPool))), coll_t(spg_t(pg_t(1, kPool)))};
  std::array<ObjectStore::CollectionHandle, 2> m_groups;
  std::optional<StoreWorkload> m_workload;
  uint64_t m_others = 0;  // objects of other collections
};

TEST_F(OnlineMoveTest, WhatClientsChangeMeanwhileIsMovedToo) {
  unsigned cube = home();
  ASSERT_NE(0u, cube);
  unsigned pauses = 0;
  for (unsigned round = 0; round < 24; ++round) {
    load(round);
    change(6);
    unsigned calls = 0;
    const Status status = move(3 - cube, round % 2 == 0 ? kShort : kMiddle, [&] {
      ++calls;
      if (calls % 4 == 0 && calls < 200) {
        change(1);
      } else if (calls % 40 == 1) {
        compare();
      }
    });
    pauses += calls;
    ASSERT_TRUE(status.ok()) << status.to_string() << " in round " << round;
    cube = 3 - cube;
    ASSERT_EQ(cube, home());
    ASSERT_NO_FATAL_FAILURE(compare()) << "round " << round;
    const int64_t now = allocated();
    ASSERT_TRUE(move(3 - cube, {}, [] {}).ok());
    ASSERT_EQ(now, allocated()) << "round " << round << ": blocks that objects share they go on sharing";
    cube = 3 - cube;
    ASSERT_NO_FATAL_FAILURE(compare()) << "round " << round;
    change(4);
    ASSERT_NO_FATAL_FAILURE(compare()) << "round " << round;
    if (round % 6 == 5) {
      ASSERT_NO_FATAL_FAILURE(check()) << "round " << round;
    }
  }
  EXPECT_GT(pauses, 200u);
}

TEST_F(OnlineMoveTest, WithoutNotesOfChangesTheTestAboveWouldNotice) {
  VTKV_NEEDS_MUTATIONS();
  const vtkv::ScopedMutation broken(Mutation::changes_not_copied);
  change(10);
  unsigned calls = 0;
  ASSERT_TRUE(move(3 - home(), kShort, [&] {
                if (++calls % 4 == 0) {
                  change(1);
                }
              }).ok());
  EXPECT_TRUE(differs());
}

// At each step: where it lay before, whole, and nothing is left of the copy.
TEST_F(OnlineMoveTest, ItCanBeStoppedAtAnyTime) {
  change(12);
  const unsigned cube = home();
  bool ended = false;
  for (unsigned stop_at = 1; !ended; stop_at += 1 + stop_at / 8) {
    unsigned calls = 0;
    const Status status = move(3 - cube, kShort, [&] {
      if (++calls == stop_at) {
        command(R"("prefix": "swimstore move stop")");
      }
      if (calls % 7 == 0 && calls < 40) {
        change(1);
      }
    });
    ended = status.ok();
    ASSERT_EQ(ended, calls < stop_at);
    ASSERT_EQ(ended ? 3 - cube : cube, home());
    ASSERT_NO_FATAL_FAILURE(compare()) << stop_at;
    if (stop_at % 3 == 0) {
      ASSERT_NO_FATAL_FAILURE(check()) << stop_at;
    }
  }
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(OnlineMoveTest, WhatChangesFasterThanItIsCopiedStaysWhereItIs) {
  change(20);
  const unsigned cube = home();
  MoveLimits limits{.batch_bytes = 1, .last_bytes = 1, .passes = 4};
  const Status status = move(3 - cube, limits, [&] { change(1); });
  EXPECT_EQ(Status::Code::busy, status.code());
  EXPECT_NE(std::string::npos, status.to_string().find("faster than it is copied")) << status.to_string();
  EXPECT_EQ(cube, home());
  ASSERT_NO_FATAL_FAILURE(check());
}

// Whoever changes what the collection is does not wait, and the move ends.
TEST_F(OnlineMoveTest, ASplitEndsIt) {
  const unsigned cube = home();
  unsigned splits = 0;
  for (unsigned split_at = 1; split_at < 40; split_at += 5) {
    change(5);
    ObjectStore::CollectionHandle child_handle;
    const coll_t child(spg_t(pg_t(3, kPool)));
    unsigned calls = 0;
    const Status status = move(3 - cube, kShort, [&] {
      if (++calls == split_at) {
        child_handle = m_store->create_new_collection(child);
        ObjectStore::Transaction split;
        split.create_collection(child, 2);
        split.split_collection(kGroup[1], 2, 1 | 2, child);
        ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(split)));
        ObjectStore::Transaction merge;
        merge.merge_collection(child, kGroup[1], 1);
        ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(merge)));
      }
    });
    // But before it has begun.
    ASSERT_EQ(split_at == 1 || calls < split_at, status.ok()) << status.to_string();
    splits += split_at > 1 && calls >= split_at;
    if (status.ok()) {
      ASSERT_TRUE(move(cube, {}, [] {}).ok());
    }
    ASSERT_EQ(cube, home());
    ASSERT_NO_FATAL_FAILURE(compare());
  }
  EXPECT_GT(splits, 4u);
  ASSERT_NO_FATAL_FAILURE(check());
}

// Nobody has to move it: so nothing is given up that a replica may still repair, or that can be read later.
TEST_F(OnlineMoveTest, ABlockThatCannotBeReadEndsIt) {
  change(30);
  m_env.run_until_idle();
  const unsigned cube = home();
  m_store->flush_cache();
  for (const std::string& file : m_env.files()) {
    if (file.starts_with(kPath + "/cubes/" + std::to_string(cube) + "/containers/")) {
      m_env.set_bad(vtkv::SimBad::reads, file, 0, UINT64_MAX);
    }
  }
  const Status status = move(3 - cube, {}, [] {});
  m_env.clear_faults();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("cannot be read"), std::string::npos) << status.to_string();
  EXPECT_EQ(cube, home());
  ASSERT_NO_FATAL_FAILURE(compare());
  ASSERT_TRUE(move(3 - cube, {}, [] {}).ok());
  ASSERT_NO_FATAL_FAILURE(check());
}

// What it measures under its lock is guarded by it no more, where a split has given it to another.
TEST_F(OnlineMoveTest, ASplitEndsTheMeasuring) {
  const coll_t child(spg_t(pg_t(3, kPool)));
  MoveLimits limits = kShort;
  limits.batch_us = 0;
  change(20);
  unsigned calls = 0;
  ObjectStore::CollectionHandle child_handle;
  const Status status = move(3 - home(), limits, [&] {
    if (++calls == 3) {
      child_handle = m_store->create_new_collection(child);
      ObjectStore::Transaction split;
      split.create_collection(child, 2);
      split.split_collection(kGroup[1], 2, 1 | 2, child);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(split)));
    }
  });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("split"), std::string::npos) << status.to_string();
  EXPECT_EQ(calls, 3u);
  ObjectStore::Transaction merge;
  merge.merge_collection(child, kGroup[1], 1);
  ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(merge)));
  ASSERT_NO_FATAL_FAILURE(compare());
}

// Of each hash that was noted it is asked whether it is time for a pause, also where no object of it is left.
TEST_F(OnlineMoveTest, ObjectsThatCameAndWentHoldUpNobody) {
  constexpr unsigned kShortLived = 300;
  MoveLimits limits;
  limits.batch_us = 0;  // each time
  limits.last_hashes = kShortLived / 10;
  change(20);
  unsigned calls = 0;
  const Status status = move(3 - home(), limits, [&] {
    if (++calls != 25) {  // behind the measuring
      return;
    }
    for (unsigned i = 0; i < kShortLived; ++i) {
      const ghobject_t oid(hobject_t(object_t("short-lived"), "", CEPH_NOSNAP, 2 * i + 1, kPool, ""));
      ObjectStore::Transaction make, remove;
      make.touch(kGroup[1], oid);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(make)));
      remove.remove(kGroup[1], oid);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[1], std::move(remove)));
    }
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_GT(calls, kShortLived);
  ASSERT_NO_FATAL_FAILURE(check());
}

// Another transaction moves it to the very cube that it is being copied to: the copy goes first.
TEST_F(OnlineMoveTest, AMoveByATransactionEndsIt) {
  const ghobject_t anchor(hobject_t(object_t("anchor"), "", CEPH_NOSNAP, 0, kPool, ""));
  for (unsigned at = 2; at < 60; at += 3) {
    change(5);
    ASSERT_TRUE(move(home() == 1 ? 2 : 1, {}, [] {}).ok());
    const unsigned cube = home();
    unsigned calls = 0;
    const Status status = move(3 - cube, kShort, [&] {
      if (++calls == at) {
        ObjectStore::Transaction txn = m_workload->next(), both;
        both.touch(kGroup[0], anchor);
        both.append(txn);
        ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(both)));
      }
    });
    m_others = 1;
    ASSERT_NO_FATAL_FAILURE(compare()) << at << " " << status.to_string();
    if (at % 4 == 0) {
      ASSERT_NO_FATAL_FAILURE(check());
    }
  }
}

// Removed, and made anew at once: where the copy is being removed nothing may lie that would be removed with it.
TEST_F(OnlineMoveTest, OneThatIsMadeAnewLiesWhereNothingIsLeft) {
  const unsigned cube = home();  // where it would be made
  for (const unsigned at : {4u, 9u, 20u}) {
    change(20);
    ASSERT_TRUE(move(3 - cube, {}, [] {}).ok());
    unsigned calls = 0;
    const Status status = move(cube, kShort, [&] {
      if (++calls != at) {
        return;
      }
      ASSERT_NO_FATAL_FAILURE(remove_group());
      m_workload.reset();
      load(at);
      create(kGroup[1], 1, &m_groups[1]);
      EXPECT_EQ(3 - cube, home());
      change(10);
    });
    ASSERT_FALSE(status.ok());
    ASSERT_NO_FATAL_FAILURE(compare());
    ASSERT_NO_FATAL_FAILURE(check());
  }
}

// A group gets as large as two, and the other one is gone, as where a group that is to be merged was removed from the
// OSD: copies of it that lie in the first one's cube are not the first one's. And what this gets then stays.
TEST_F(OnlineMoveTest, AGroupThatGetsLargerTakesNoCopies) {
  const unsigned target = home_of(*m_store, kGroup[0]);
  const ghobject_t later(hobject_t(object_t("later"), "", CEPH_NOSNAP, 1, kPool, ""));
  for (const unsigned at : {4u, 9u, 20u}) {
    change(20);
    if (home() == target) {
      ASSERT_TRUE(move(3 - target, {}, [] {}).ok());
    }
    unsigned calls = 0;
    const Status status = move(target, kShort, [&] {
      if (++calls != at) {
        return;
      }
      ASSERT_NO_FATAL_FAILURE(remove_group());
      ObjectStore::Transaction larger;
      larger.collection_set_bits(kGroup[0], 0);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(larger)));
      std::string error;
      EXPECT_EQ(0u, read_collection(*m_store, m_groups[0], &error).size()) << at;
      ObjectStore::Transaction more;
      more.touch(kGroup[0], later);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(more)));
    });
    ASSERT_FALSE(status.ok());
    std::string error;
    EXPECT_EQ(1u, read_collection(*m_store, m_groups[0], &error).size()) << at;
    // As it was.
    ObjectStore::Transaction again;
    again.remove(kGroup[0], later);
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(again)));
    m_groups[1] = m_store->create_new_collection(kGroup[1]);
    ObjectStore::Transaction split;
    split.create_collection(kGroup[1], 1);
    split.split_collection(kGroup[0], 1, 1, kGroup[1]);
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(split)));
    m_workload.reset();
    load(at);
    ASSERT_NO_FATAL_FAILURE(check());
  }
}

// Nor does one that is made there because the transaction names another group of that cube.
TEST_F(OnlineMoveTest, OneThatIsMadeBesideAnotherTakesNoCopies) {
  const unsigned target = home_of(*m_store, kGroup[0]);
  const ghobject_t anchor(hobject_t(object_t("anchor"), "", CEPH_NOSNAP, 0, kPool, ""));
  change(20);
  unsigned calls = 0;
  const Status status = move(target, kShort, [&] {
    if (++calls != 9) {
      return;
    }
    ASSERT_NO_FATAL_FAILURE(remove_group());
    ObjectStore::Transaction make;
    m_groups[1] = m_store->create_new_collection(kGroup[1]);
    make.touch(kGroup[0], anchor);
    make.create_collection(kGroup[1], 1);
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(make)));
    EXPECT_EQ(target, home());
    m_workload.reset();
    load(2);
    change(10);
  });
  ASSERT_FALSE(status.ok());
  ASSERT_NO_FATAL_FAILURE(compare());
  m_others = 1;
  ASSERT_NO_FATAL_FAILURE(check());
}

// A group of that cube whose range has nothing to do with the copies.
TEST_F(OnlineMoveTest, AnotherGroupsSplitDoesNotEndIt) {
  const unsigned target = home_of(*m_store, kGroup[0]);
  const coll_t child(spg_t(pg_t(2, kPool)));
  change(20);
  unsigned calls = 0;
  const Status status = move(target, kShort, [&] {
    if (++calls == 9) {
      const ObjectStore::CollectionHandle handle = m_store->create_new_collection(child);
      ObjectStore::Transaction split, merge;
      split.create_collection(child, 2);
      split.split_collection(kGroup[0], 2, 2, child);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(split)));
      merge.merge_collection(child, kGroup[0], 1);
      ASSERT_EQ(0, m_store->queue_transaction(m_groups[0], std::move(merge)));
    }
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_GT(calls, 9u);
  EXPECT_EQ(target, home());
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(OnlineMoveTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(Status::Code::invalid_argument, move(0, {}, [] {}).code());
  EXPECT_EQ(Status::Code::invalid_argument, move(3, {}, [] {}).code());
  EXPECT_EQ(Status::Code::not_found, m_store->move_in_use(coll_t(spg_t(pg_t(7, kPool))), 1, {}, [] {}).code());
  EXPECT_EQ(Status::Code::invalid_argument, m_store->move_in_use(coll_t::meta(), 1, {}, [] {}).code());
  EXPECT_TRUE(move(home(), {}, [] {}).ok()) << "it lies there already";
}

}  // namespace

}  // namespace swimstore
