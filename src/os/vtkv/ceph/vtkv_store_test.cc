// SPDX-License-Identifier: LGPL-2.1-or-later
// What Ceph's own test_kv leaves out: opening and refusing, transactions as a whole, merges, reads of one state.

#include "vtkv/ceph/vtkv_store.h"

#include <set>
#include <thread>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/perf_counters_collection.h"
#include "vtkv/ceph/store_fixture.h"

namespace vtkv {
namespace {

using VtkvStoreTest = VtkvStoreFixture;

// --- opening ----------------------------------------------------------------------------------------------

TEST_F(VtkvStoreTest, OpenOfNothingSaysSo) {
  std::ostringstream out;
  EXPECT_EQ(make(m_directory)->open(out, ""), -ENOENT);
  EXPECT_NE(out.str().find("there is no such directory"), std::string::npos) << out.str();
}

TEST_F(VtkvStoreTest, OpenOfAForeignDirectorySaysSo) {
  std::filesystem::create_directory(m_directory);
  std::ofstream(m_directory + "/CURRENT") << "MANIFEST-000001\n";
  std::ostringstream out;
  EXPECT_EQ(make(m_directory)->open(out, ""), -ENOENT);
  EXPECT_NE(out.str().find("holds no database"), std::string::npos) << out.str();
  EXPECT_EQ(make(m_directory)->create_and_open(out, ""), -EINVAL);
  EXPECT_NE(out.str().find("is not empty (CURRENT)"), std::string::npos) << out.str();
}

TEST_F(VtkvStoreTest, CreateAndOpenOpensWhatExists) {
  create();
  set("p", "k", "v");
  create();
  EXPECT_EQ(get("p", "k"), "v");
}

TEST_F(VtkvStoreTest, AStoreInUseIsBusy) {
  create();
  std::ostringstream out;
  EXPECT_EQ(make(m_directory)->open(out, ""), -EBUSY);
  EXPECT_NE(out.str().find("another process has it open"), std::string::npos) << out.str();
}

TEST_F(VtkvStoreTest, ADatabaseInsideAnotherStoreIsReadOnly) {
  create();
  set("p", "k", "v");
  m_store->close();
  std::filesystem::create_directory(m_directory + "/containers");
  std::ofstream(m_directory + "/containers/header") << "x";
  std::ostringstream out;
  EXPECT_EQ(make(m_directory)->open(out, ""), -EINVAL);
  EXPECT_NE(out.str().find("holds containers beside a database"), std::string::npos) << out.str();
  ASSERT_EQ(m_store->open_read_only(out, ""), 0) << out.str();
  EXPECT_EQ(get("p", "k"), "v");
}

TEST_F(VtkvStoreTest, OptionsAreNamedWhenTheyAreWrong) {
  VtkvStore store(g_ceph_context, m_directory, {});
  EXPECT_EQ(store.init("memtable_bytes=64K;block_cache_bytes=1M growth_factor=3"), 0);
  EXPECT_EQ(store.init("compress_blocks=0"), 0);
  EXPECT_EQ(store.init("compress_blocks=2"), -EINVAL);
  EXPECT_EQ(store.init("write_buffer_size=1"), -EINVAL);
  EXPECT_EQ(store.init("memtable_bytes=much"), -EINVAL);
  EXPECT_EQ(store.init("growth_factor=1"), -EINVAL);
  VtkvStore given(g_ceph_context, m_directory, {{"memtable_byte", "64K"}});
  std::ostringstream out;
  EXPECT_EQ(given.create_and_open(out, ""), -EINVAL);
  EXPECT_NE(out.str().find("no option 'memtable_byte'"), std::string::npos) << out.str();
  VtkvStore old(g_ceph_context, m_directory, {{"scattered_values_min", "8"}});  // tidy: allow the old name
  EXPECT_EQ(old.create_and_open(out, ""), -EINVAL);
  EXPECT_NE(out.str().find("is called fragmented_values_min now"), std::string::npos) << out.str();
  EXPECT_FALSE(std::filesystem::exists(m_directory));
}

TEST_F(VtkvStoreTest, ReadOnlyReadsAndRefusesTheRest) {
  create();
  set("p", "k", "v");
  m_store = make(m_directory);
  std::ostringstream out;
  ASSERT_EQ(m_store->open_read_only(out, ""), 0) << out.str();
  EXPECT_EQ(get("p", "k"), "v");
  auto transaction = m_store->get_transaction();
  transaction->rmkey("p", "k");
  EXPECT_EQ(m_store->submit_transaction_sync(transaction), -EROFS);
  EXPECT_EQ(get("p", "k"), "v");
}

TEST_F(VtkvStoreTest, RepairTellsAWholeStoreFromADamagedOne) {
  create();
  for (int i = 0; i < 200; ++i) {
    set("p", std::to_string(i), std::string(500, 'v'));
  }
  m_store->compact();
  m_store->close();
  std::ostringstream whole;
  EXPECT_EQ(m_store->repair(whole), 0);
  EXPECT_NE(whole.str().find("nothing to repair"), std::string::npos) << whole.str();
  damage_tree();
  std::ostringstream damaged;
  EXPECT_EQ(m_store->repair(damaged), -EIO);
  EXPECT_NE(damaged.str().find("tree"), std::string::npos) << damaged.str();
}

// An error would be taken for a key that is not there, and an iterator that ends for the end of the keys.
TEST_F(VtkvStoreTest, WhatCannotBeReadEndsTheProcess) {
  create();
  for (int i = 0; i < 200; ++i) {
    set("p", std::to_string(i), std::string(500, 'v'));
  }
  m_store->compact();
  reopen();  // nothing of it is in memory
  damage_tree();
  const std::string message = "cannot read .* at [0-9]+ of .*/tree.*Remedy: ";
  EXPECT_DEATH((void)get("p", "42"), message);
  const auto end_of = [this] {
    auto iterator = m_store->get_iterator("p");
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    }
  };
  EXPECT_DEATH(end_of(), message);
  const auto begin_of_everything = [this] { m_store->get_wholespace_iterator()->seek_to_last(); };
  EXPECT_DEATH(begin_of_everything(), message);
  EXPECT_DEATH(m_store->estimate_prefix_size("p", ""), message);
}

// --- transactions -----------------------------------------------------------------------------------------

TEST_F(VtkvStoreTest, EveryOperationInOneTransaction) {
  create();
  for (const char* key : {"1", "2", "3", "4", "5"}) {
    set("p", key, "old");
    set("q", key, "old");
  }
  auto transaction = m_store->get_transaction();
  transaction->rm_range_keys("p", "2", "4");
  transaction->rm_single_key("p", "5");
  transaction->rmkeys_by_prefix("q");
  transaction->set("q", "3", list("new"));
  transaction->set("p", std::string("6\0x", 3).c_str(), 3, list("new"));
  transaction->set("p", "empty", list(""));
  EXPECT_EQ(get("p", "2"), "old");
  ASSERT_EQ(m_store->submit_transaction(transaction), 0);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(get("p", "1") + get("p", "2") + get("p", "3") + get("p", "4") + get("p", "5"), "oldnonenoneoldnone");
    EXPECT_EQ(get("q", "1") + get("q", "3") + get("q", "5"), "nonenewnone");
    EXPECT_EQ(get("p", std::string("6\0x", 3)), "new");
    EXPECT_EQ(get("p", "empty"), "");
    reopen();
  }
}

TEST_F(VtkvStoreTest, ATransactionCanBeSubmittedTwice) {
  create();
  auto transaction = m_store->get_transaction();
  transaction->merge("M", "k", list("x"));
  ASSERT_EQ(m_store->submit_transaction(transaction), 0);
  ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  EXPECT_EQ(get("M", "k"), "new:x,x");
}

TEST_F(VtkvStoreTest, SyncCoversEarlierTransactions) {
  create();
  for (int i = 0; i < 50; ++i) {
    auto transaction = m_store->get_transaction();
    transaction->set("p", std::to_string(i), list("a"));
    transaction->set("q", std::to_string(i), list("b"));
    ASSERT_EQ(m_store->submit_transaction(transaction), 0);
  }
  ASSERT_EQ(m_store->submit_transaction_sync(m_store->get_transaction()), 0);
  // What a crash now would leave: the files as they are, the store still open.
  std::filesystem::copy(m_directory, m_base + "/crashed", std::filesystem::copy_options::recursive);
  auto crashed = make(m_base + "/crashed");
  std::ostringstream out;
  ASSERT_EQ(crashed->open(out, ""), 0) << out.str();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(get(*crashed, "p", std::to_string(i)) + get(*crashed, "q", std::to_string(i)), "ab") << i;
  }
}

// --- merges -----------------------------------------------------------------------------------------------

TEST_F(VtkvStoreTest, AMergeSeesWhatItsTransactionDidBefore) {
  create();
  for (const char* key : {"plain", "set", "removed", "ranged", "ranged and set"}) {
    set("M", key, "0");
  }
  auto transaction = m_store->get_transaction();
  transaction->merge("M", "plain", list("1"));
  transaction->merge("M", "plain", list("2"));
  transaction->set("M", "set", list("s"));
  transaction->merge("M", "set", list("1"));
  transaction->rmkey("M", "removed");
  transaction->merge("M", "removed", list("1"));
  transaction->rm_range_keys("M", "ranged", "ranged z");
  transaction->merge("M", "ranged", list("1"));
  transaction->set("M", "ranged and set", list("r"));
  transaction->merge("M", "ranged and set", list("1"));
  transaction->merge("M", "gone", list("1"));
  transaction->rmkey("M", "gone");
  ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(get("M", "plain"), "0,1,2");
    EXPECT_EQ(get("M", "set"), "s,1");
    EXPECT_EQ(get("M", "removed"), "new:1");
    EXPECT_EQ(get("M", "ranged"), "new:1");
    EXPECT_EQ(get("M", "ranged and set"), "r,1");
    EXPECT_EQ(get("M", "gone"), "none");
    reopen();
  }
  transaction = m_store->get_transaction();
  transaction->rmkeys_by_prefix("M");
  transaction->merge("M", "plain", list("9"));
  ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  EXPECT_EQ(get("M", "plain") + get("M", "set"), "new:9none");
}

TEST_F(VtkvStoreTest, AMergeWithoutOperatorFailsAsAWhole) {
  create();
  auto transaction = m_store->get_transaction();
  transaction->set("p", "k", list("v"));
  transaction->merge("p", "k", list("x"));
  EXPECT_EQ(m_store->submit_transaction_sync(transaction), -EINVAL);
  EXPECT_EQ(get("p", "k"), "none");
  EXPECT_EQ(m_store->set_merge_operator("p", std::make_shared<JoiningOperator>()), -EINVAL);
}

TEST_F(VtkvStoreTest, MergedValuesNeedNoOperatorToBeRead) {
  create();
  auto transaction = m_store->get_transaction();
  transaction->merge("M", "k", list("1"));
  ASSERT_EQ(m_store->submit_transaction_sync(transaction), 0);
  m_store = std::make_unique<VtkvStore>(g_ceph_context, m_directory, std::map<std::string, std::string>());
  std::ostringstream out;
  ASSERT_EQ(m_store->open(out, ""), 0) << out.str();
  EXPECT_EQ(get("M", "k"), "new:1");
}

class AddingOperator final : public KeyValueDB::MergeOperator {
 public:
  void merge_nonexistent(const char* right, size_t bytes, std::string* merged) override {
    merged->assign(right, bytes);
  }
  void merge(const char* left, size_t left_bytes, const char* right, size_t right_bytes, std::string* merged) override {
    *merged = std::to_string(std::stol(std::string(left, left_bytes)) + std::stol(std::string(right, right_bytes)));
  }
  const char* name() const override { return "add"; }
};

TEST_F(VtkvStoreTest, NoMergeIsLostBetweenThreads) {
  constexpr int kThreads = 4, kRounds = 500;
  m_store = make(m_directory);
  ASSERT_EQ(m_store->set_merge_operator("N", std::make_shared<AddingOperator>()), 0);
  std::ostringstream out;
  ASSERT_EQ(m_store->create_and_open(out, ""), 0) << out.str();
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([this, number] {
      for (int i = 0; i < kRounds; ++i) {
        auto transaction = m_store->get_transaction();
        transaction->merge("N", "sum", list("1"));
        transaction->merge("N", "sum", list("2"));
        // Starts "own" anew: a merge of another thread must not bring back what was there before.
        transaction->rm_range_keys("N", "own" + std::to_string(number), "own" + std::to_string(number) + "~");
        transaction->merge("N", "own" + std::to_string(number), list(std::to_string(i)));
        transaction->set("bulk", std::to_string(number * kRounds + i), list(std::string(100, 'b')));
        EXPECT_EQ(
            i % 10 == 0 ? m_store->submit_transaction_sync(transaction) : m_store->submit_transaction(transaction), 0);
      }
    });
  }
  m_store->compact_async();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(get("N", "sum"), std::to_string(3 * kThreads * kRounds));
  for (int number = 0; number < kThreads; ++number) {
    EXPECT_EQ(get("N", "own" + std::to_string(number)), std::to_string(kRounds - 1));
  }
}

// --- reads, space, statistics -----------------------------------------------------------------------------

TEST_F(VtkvStoreTest, GetOfSeveralLeavesOutWhatIsAbsent) {
  create();
  set("p", "a", "1");
  set("p", "c", "3");
  std::map<std::string, ceph::buffer::list> found;
  EXPECT_EQ(m_store->get("p", std::set<std::string>{"a", "b", "c"}, &found), 0);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found["a"].to_str() + found["c"].to_str(), "13");
  ceph::buffer::list value;
  EXPECT_EQ(m_store->get("p", "cx", 1, &value), 0);
  EXPECT_EQ(value.to_str(), "3");
}

TEST_F(VtkvStoreTest, ThePartOfAPrefixIsMeasured) {
  create();
  for (int i = 0; i < 100; ++i) {
    set("A", std::to_string(i), std::string(1000, 'v'));
  }
  m_store->compact();
  set("B", "1", "other");
  const int64_t all = m_store->estimate_prefix_size("A", "");
  EXPECT_GT(all, 100 * 1000);
  EXPECT_LT(all, 100 * 1010);
  const int64_t part = m_store->estimate_prefix_size("A", "1");  // 1 and 10 to 19
  EXPECT_GT(part, 11 * 1000);
  EXPECT_LT(part, 11 * 1010);
  EXPECT_EQ(m_store->estimate_prefix_size("C", ""), 0);
}

TEST_F(VtkvStoreTest, StatisticsAndSizesMove) {
  create();
  uint64_t before = 0, after = 0;
  ASSERT_TRUE(m_store->get_property("vtkv.log_bytes", &before));
  EXPECT_FALSE(m_store->get_property("rocksdb.estimate-num-keys", &after));
  for (int i = 0; i < 100; ++i) {
    set("p", std::to_string(i), std::string(1000, 'v'));
  }
  m_store->compact();
  ASSERT_TRUE(m_store->get_property("vtkv.log_bytes", &after));
  EXPECT_GT(after, before + 100 * 1000);
  std::map<std::string, uint64_t> sizes;
  const uint64_t size = m_store->get_estimated_size(sizes);
  EXPECT_GT(size, 100u * 1000);
  EXPECT_EQ(size, sizes["tree"] + sizes["log"]);
  EXPECT_EQ(get("p", "1").size(), 1000u);
  EXPECT_GT(m_store->get_cache_usage(), 0);
  EXPECT_EQ(m_store->set_cache_size(0), 0);
  EXPECT_EQ(get("p", "2").size(), 1000u);
  EXPECT_EQ(m_store->get_cache_usage(), 0);
  ceph::JSONFormatter formatter;
  formatter.open_object_section("all");
  m_store->get_statistics(&formatter);
  formatter.close_section();
  std::ostringstream text;
  formatter.flush(text);
  EXPECT_NE(text.str().find("\"log_bytes\":" + std::to_string(after)), std::string::npos) << text.str();
}

// --- counters -------------------------------------------------------------------------------------------

TEST_F(VtkvStoreTest, EveryCounterMoves) {
  create();
  set("p", "k", "v");
  auto transaction = m_store->get_transaction();
  transaction->merge("M", "k", list("1"));
  ASSERT_EQ(m_store->submit_transaction(transaction), 0);
  EXPECT_EQ(get("p", "k"), "v");
  m_store->compact();
  std::set<std::string> still;
  unsigned counters = 0;
  g_ceph_context->get_perfcounters_collection()->with_counters([&](const auto& by_path) {
    for (const auto& [path, ref] : by_path) {
      if (ref.perf_counters == m_store->get_perf_counters()) {
        ++counters;
        const bool moved = ref.data->type & PERFCOUNTER_LONGRUNAVG ? ref.data->avgcount > 0 : ref.data->u64 > 0;
        if (!moved) {
          still.insert(path);
        }
      }
    }
  });
  EXPECT_EQ(counters, 5u);
  EXPECT_EQ(still, std::set<std::string>());
}

}  // namespace
}  // namespace vtkv
