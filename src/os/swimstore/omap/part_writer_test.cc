// SPDX-License-Identifier: LGPL-2.1-or-later
// Omaps in parts, in stores of several cubes in the simulated host. What crashes make of them:
// testing/part_crash_test.cc.

#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/omap/omap_iterator.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/part_workload.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

constexpr unsigned kCubes = 1 + PartWorkload::kGroups;

class PartWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(m_env.create_directory(m_path).ok());
    make("4");
  }
  void TearDown() override {
    unmount();
    EXPECT_EQ(0, m_store->fsck(true));
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "1"}, {"objectstore_debug_throw_on_failed_txc", "false"}});
  }

  void make(const char* cubes) {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", cubes}, {"objectstore_debug_throw_on_failed_txc", "true"}});
    m_store = std::make_unique<SwimStore>(g_ceph_context, m_path, &m_env);
    ASSERT_EQ(0, m_store->mkfs());
    mount();
    for (unsigned by = 0; by < kCubes; ++by) {
      queue(by, PartWorkload::setup(by));
    }
  }
  void mount() {
    ASSERT_EQ(0, m_store->mount());
    m_handles = PartWorkload::open(*m_store);
  }
  void unmount() {
    m_env.run_until_idle();
    m_handles.clear();
    ASSERT_EQ(0, m_store->umount());
  }
  void remount() {
    unmount();
    ASSERT_EQ(0, m_store->fsck(true));
    mount();
  }

  void queue(unsigned by, ObjectStore::Transaction&& txn) {
    ASSERT_EQ(0, m_store->queue_transaction(m_handles[by], std::move(txn)));
  }
  // What it throws.
  int refused(unsigned by, ObjectStore::Transaction&& txn) {
    try {
      m_store->queue_transaction(m_handles[by], std::move(txn));
    } catch (int r) {
      return r;
    }
    return 0;
  }
  // A transaction of that collection's: one that its own object tells the cube of.
  ObjectStore::Transaction by_collection(unsigned by) {
    ObjectStore::Transaction txn;
    if (by > 0) {
      txn.touch(PartWorkload::collection(by), PartWorkload::counter(by));
    }
    return txn;
  }
  void set(unsigned by, const std::string& key, const std::string& value) {
    ObjectStore::Transaction txn = by_collection(by);
    txn.omap_setkeys(kOwn, kObject, values(key, value));
    queue(by, std::move(txn));
  }
  void remove(unsigned by, const std::string& key) {
    ObjectStore::Transaction txn = by_collection(by);
    txn.omap_rmkeys(kOwn, kObject, std::set<std::string>{key});
    queue(by, std::move(txn));
  }
  static std::map<std::string, ceph::bufferlist> values(const std::string& key, const std::string& value) {
    std::map<std::string, ceph::bufferlist> entries;
    entries[key].append(value);
    return entries;
  }
  std::string omap() {
    std::string wrong;
    const std::string found = to_string(PartWorkload::read(*m_store, m_handles[0], &wrong));
    EXPECT_EQ(wrong, "");
    return found;
  }
  std::set<std::string> keys_of(const ghobject_t& oid) {
    std::set<std::string> keys;
    EXPECT_EQ(0, m_store->omap_get_keys(m_handles[0], oid, &keys));
    return keys;
  }

  using ByCube = std::vector<unsigned>;
  // Entries with this prefix of each cube's tree, as they are left; then the store is mounted again, which sweeps.
  ByCube entries(char prefix) {
    ByCube counts;
    unmount();
    for (unsigned cube = 0; cube < kCubes; ++cube) {
      std::unique_ptr<vtkv::DB> database;
      const std::string path = m_path + "/cubes/" + std::to_string(cube);
      const vtkv::Status opened = vtkv::DB::open_read_only(&m_env, path, vtkv::Options(), &database);
      EXPECT_TRUE(opened.ok()) << opened.to_string();
      unsigned& count = counts.emplace_back();
      const auto it = database->new_iterator(std::string(1, prefix), std::string(1, static_cast<char>(prefix + 1)));
      for (it->seek_to_first(); it->valid(); it->next()) {
        ++count;
      }
    }
    EXPECT_EQ(0, m_store->fsck(true));
    mount();
    return counts;
  }
  ByCube rows() { return entries(key_prefix::omap_row); }
  ByCube tombstones() { return entries(key_prefix::omap_tombstone); }
  ByCube floors() { return entries(key_prefix::omap_floor); }
  static ByCube none() { return ByCube(kCubes, 0); }

  static inline const coll_t kOwn = PartWorkload::collection(0);
  static inline const ghobject_t kObject = PartWorkload::object();

  vtkv::SimEnv m_env{{.record = false}};
  std::string m_path = "/store";
  std::unique_ptr<SwimStore> m_store;
  std::vector<ObjectStore::CollectionHandle> m_handles;
};

TEST_F(PartWriterTest, TransactionsOfEveryCubeSetAndRemoveKeys) {
  for (unsigned by = 0; by < kCubes; ++by) {
    set(by, "key_" + std::to_string(by), "of " + std::to_string(by));
  }
  EXPECT_EQ(omap(), "key_0=of 0 key_1=of 1 key_2=of 2 key_3=of 3 key_4=of 4 ");
  set(3, "key_1", "of 3 now");
  remove(1, "key_2");
  remove(4, "key_4");
  remove(2, "key_9");
  EXPECT_EQ(omap(), "key_0=of 0 key_1=of 3 now key_3=of 3 ");
  remount();
  EXPECT_EQ(omap(), "key_0=of 0 key_1=of 3 now key_3=of 3 ");
  remove(0, "key_3");
  remove(1, "key_1");
  set(2, "key_2", "again");
  EXPECT_EQ(omap(), "key_0=of 0 key_2=again ");
  remount();
  EXPECT_EQ(omap(), "key_0=of 0 key_2=again ");
}

TEST_F(PartWriterTest, AKeyOfOneCubeGoesWithoutATrace) {
  set(1, "key_1", "1");
  set(2, "key_2", "2");
  EXPECT_EQ(rows(), (ByCube{0, 1, 1, 0, 0}));
  remove(1, "key_1");
  EXPECT_EQ(rows(), (ByCube{0, 0, 1, 0, 0}));
  EXPECT_EQ(tombstones(), none());
}

TEST_F(PartWriterTest, AKeyOfAnotherCubeLeavesATombstoneThatAMountSweeps) {
  set(1, "key_1", "1");
  remove(2, "key_1");
  EXPECT_EQ(omap(), "");
  EXPECT_EQ(rows(), (ByCube{0, 1, 1, 0, 0}));
  EXPECT_EQ(rows(), none());
  EXPECT_EQ(tombstones(), none());
  EXPECT_EQ(omap(), "");
}

TEST_F(PartWriterTest, ATombstoneStaysWhileAnotherCubeHasOne) {
  set(1, "key_1", "1");
  remove(2, "key_1");
  remove(1, "key_1");
  remove(2, "key_1");
  EXPECT_EQ(tombstones(), (ByCube{0, 1, 1, 0, 0}));
  EXPECT_EQ(rows(), none());
}

TEST_F(PartWriterTest, AKeyThatIsSetAgainOutlivesTheSweeper) {
  set(1, "key_1", "1");
  remove(2, "key_1");
  set(2, "key_1", "2");
  set(3, "key_3", "3");
  remove(4, "key_3");
  set(3, "key_3", "3 again");
  EXPECT_EQ(tombstones(), (ByCube{0, 0, 1, 0, 1}));
  EXPECT_EQ(tombstones(), none());
  EXPECT_EQ(rows(), (ByCube{0, 1, 1, 1, 0}));
  EXPECT_EQ(omap(), "key_1=2 key_3=3 again ");
}

// Both are under way: a crash may take back either.
TEST_F(PartWriterTest, ARemovalThatIsNotDurableMakesTheNextOneLeaveATombstone) {
  set(1, "key_1", "1");
  m_env.run_until_idle();
  remove(1, "key_1");
  remove(2, "key_1");
  EXPECT_EQ(rows(), (ByCube{0, 0, 1, 0, 0}));
  set(1, "key_1", "1");
  remove(1, "key_1");
  m_env.run_until_idle();
  remove(2, "key_1");
  EXPECT_EQ(rows(), none());
}

TEST_F(PartWriterTest, CubeZeroClearsWhatAllHaveAndAMountSweepsIt) {
  for (unsigned by = 0; by < kCubes; ++by) {
    set(by, "key_" + std::to_string(by), "old");
  }
  ObjectStore::Transaction txn;
  txn.omap_setkeys(kOwn, kObject, values("key_7", "before"));
  txn.omap_clear(kOwn, kObject);
  txn.omap_setkeys(kOwn, kObject, values("key_8", "behind"));
  queue(0, std::move(txn));
  set(2, "key_2", "new");
  EXPECT_EQ(omap(), "key_2=new key_8=behind ");
  EXPECT_EQ(rows(), (ByCube{3, 1, 1, 1, 1}));
  EXPECT_EQ(rows(), (ByCube{1, 0, 1, 0, 0}));
  EXPECT_EQ(floors(), none());
  EXPECT_EQ(omap(), "key_2=new key_8=behind ");
}

TEST_F(PartWriterTest, CubeZeroRemovesARangeOfWhatAllHave) {
  for (unsigned by = 0; by < kCubes; ++by) {
    set(by, "key_" + std::to_string(by), "1");
  }
  ObjectStore::Transaction txn;
  txn.omap_setkeys(kOwn, kObject, values("key_11", "before"));
  txn.omap_rmkeyrange(kOwn, kObject, "key_0", "key_3");
  queue(0, std::move(txn));
  EXPECT_EQ(omap(), "key_3=1 key_4=1 ");
  remount();
  EXPECT_EQ(omap(), "key_3=1 key_4=1 ");
}

TEST_F(PartWriterTest, AnObjectThatIsMadeAnewHasNoneOfTheOldKeys) {
  set(1, "key_1", "1");
  set(0, "key_0", "0");
  ObjectStore::Transaction txn;
  txn.remove(kOwn, kObject);
  txn.touch(kOwn, kObject);
  queue(0, std::move(txn));
  EXPECT_EQ(omap(), "");
  set(2, "key_2", "2");
  EXPECT_EQ(omap(), "key_2=2 ");
  EXPECT_EQ(floors(), (ByCube{1, 0, 0, 0, 0}));
  EXPECT_EQ(rows(), (ByCube{0, 0, 1, 0, 0}));
  EXPECT_EQ(floors(), none());
}

TEST_F(PartWriterTest, AnObjectThatIsRemovedForGoodLeavesNothing) {
  set(1, "key_1", "1");
  ObjectStore::Transaction txn;
  txn.omap_setheader(kOwn, kObject, values("", "header")[""]);
  txn.remove(kOwn, kObject);
  queue(0, std::move(txn));
  EXPECT_EQ(rows(), (ByCube{0, 1, 0, 0, 0}));
  EXPECT_EQ(rows(), none());
  EXPECT_EQ(floors(), none());
  EXPECT_EQ(entries(key_prefix::omap_header), none());
}

TEST_F(PartWriterTest, ACloneHasTheKeysOfAllCubes) {
  const ghobject_t clone(hobject_t(object_t("clone"), "", 0, 0, -1, ""));
  set(1, "key_1", "1");
  set(2, "key_2", "2");
  set(3, "key_3", "3");
  remove(4, "key_3");
  ObjectStore::Transaction txn;
  txn.omap_setkeys(kOwn, kObject, values("key_4", "4"));
  txn.omap_rmkeys(kOwn, kObject, std::set<std::string>{"key_2"});
  txn.clone(kOwn, kObject, clone);
  queue(0, std::move(txn));
  EXPECT_EQ(keys_of(clone), (std::set<std::string>{"key_1", "key_4"}));
  set(2, "key_5", "not of the clone");
  EXPECT_EQ(keys_of(clone), (std::set<std::string>{"key_1", "key_4"}));
}

TEST_F(PartWriterTest, AnObjectKeepsItsKeysWithAnotherName) {
  const ghobject_t renamed(hobject_t(object_t("renamed"), "", 0, 0, -1, ""));
  set(1, "key_1", "1");
  set(2, "key_2", "2");
  ObjectStore::Transaction txn;
  txn.collection_move_rename(kOwn, kObject, kOwn, renamed);
  queue(0, std::move(txn));
  EXPECT_EQ(keys_of(renamed), (std::set<std::string>{"key_1", "key_2"}));
}

TEST_F(PartWriterTest, AnIteratorSeesWhatThereWasWhenItWasMade) {
  set(1, "key_1", "then");
  const auto iterator = m_store->omap_iterator(m_handles[0], kObject);
  set(2, "key_1", "now");
  set(3, "key_3", "now");
  ASSERT_EQ(0, iterator->seek_to_first());
  ASSERT_TRUE(iterator->valid());
  EXPECT_EQ(iterator->value(), "then");
  EXPECT_EQ(0, iterator->next());
  EXPECT_FALSE(iterator->valid());
  EXPECT_EQ(0, iterator->status());
}

#if SWIM_CEPH_HAS_OMAP_ITERATE
TEST_F(PartWriterTest, OneIterationSeesEveryPart) {
  set(1, "key_1", "one");
  set(2, "key_2", "two");
  set(3, "key_3", "three");
  using Seek = ObjectStore::omap_iter_seek_t;
  using Ret = ObjectStore::omap_iter_ret_t;
  std::string seen;
  const auto visit = [&seen](std::string_view key, std::string_view value) {
    seen += fmt::format("{}={} ", key, value);
    return key == "key_2" && value == "stop" ? Ret::STOP : Ret::NEXT;
  };
  const auto iterated = [&](const Seek& from) {
    seen.clear();
    return m_store->omap_iterate(m_handles[0], kObject, from, visit);
  };
  EXPECT_EQ(0, iterated(Seek::min_lower_bound()));
  EXPECT_EQ("key_1=one key_2=two key_3=three ", seen);
  EXPECT_EQ(0, iterated({"key_2", Seek::LOWER_BOUND}));
  EXPECT_EQ("key_2=two key_3=three ", seen);
  EXPECT_EQ(0, iterated({"key_2", Seek::UPPER_BOUND}));
  EXPECT_EQ("key_3=three ", seen);
  EXPECT_EQ(0, iterated({"key_3", Seek::UPPER_BOUND}));
  EXPECT_EQ("", seen);
  set(2, "key_2", "stop");
  EXPECT_EQ(1, iterated(Seek::min_lower_bound()));
  EXPECT_EQ("key_1=one key_2=stop ", seen);
  ghobject_t absent = kObject;
  absent.generation = 5;
  EXPECT_EQ(-ENOENT, m_store->omap_iterate(m_handles[0], absent, Seek::min_lower_bound(), visit));
}
#endif

TEST_F(PartWriterTest, OfWhatLiesInCubeZeroAnotherCubeChangesNothingButKeys) {
  const std::function<void(ObjectStore::Transaction&)> kRefused[] = {
      [](auto& txn) { txn.omap_clear(kOwn, kObject); },
      [](auto& txn) { txn.omap_rmkeyrange(kOwn, kObject, "a", "b"); },
      [](auto& txn) { txn.omap_setheader(kOwn, kObject, ceph::bufferlist()); },
      [](auto& txn) { txn.remove(kOwn, kObject); },
      [](auto& txn) { txn.truncate(kOwn, kObject, 0); },
      [](auto& txn) { txn.touch(kOwn, ghobject_t(hobject_t(object_t("new"), "", 0, 0, -1, ""))); },
  };
  set(1, "key_1", "1");
  for (const auto& add : kRefused) {
    ObjectStore::Transaction txn = by_collection(2);
    add(txn);
    EXPECT_EQ(refused(2, std::move(txn)), -EOPNOTSUPP);
  }
  ObjectStore::Transaction touched = by_collection(2);
  touched.touch(kOwn, kObject);
  EXPECT_EQ(refused(2, std::move(touched)), 0);
  EXPECT_EQ(omap(), "key_1=1 ");
}

TEST_F(PartWriterTest, RowsOfNoObjectAreFoundInTheirCube) {
  unmount();
  {
    std::unique_ptr<Cube> cube;
    CubeOptions options;
    options.containers.maintenance = false;
    ASSERT_TRUE(Cube::open(&m_env, m_path + "/cubes/2", options, &cube).ok());
    std::string row;
    encode_omap_row({OmapRow::Kind::value, 7, "value"}, &row);
    vtkv::WriteBatch batch;
    batch.put(omap_row_key(999'999, "key"), row);
    ASSERT_TRUE(cube->database().write(std::move(batch)).ok());
  }
  CheckResult result;
  ASSERT_TRUE(m_store->check({}, &result).ok());
  ASSERT_EQ(result.errors, 1u);
  EXPECT_EQ(result.findings[0].kind, FindingClass::omap_orphaned);
  EXPECT_EQ(result.findings[0].cube, 2u);
  EXPECT_EQ(m_store->repair(false), 0);
  mount();
}

// The same histories in stores with one cube and with five: every read gives what the model gives.
TEST_F(PartWriterTest, TheNumberOfCubesMakesNoDifference) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const char* const cubes : {"4", "1"}) {
      SCOPED_TRACE(fmt::format("{} data cubes, seed {}", cubes, seed));
      unmount();
      m_path = fmt::format("/{}_{}", cubes, seed);
      ASSERT_TRUE(m_env.create_directory(m_path).ok());
      make(cubes);
      PartWorkload workload(seed, 12);
      PartWorkload::Omap model;
      for (uint64_t number = 1; number <= 400; ++number) {
        const PartStep step = workload.next();
        PartWorkload::apply(step, &model);
        queue(step.by, PartWorkload::transaction(step, number));
        if (number % 7 == 0) {
          m_env.run_until_idle();
        }
        if (number % 5 == 0) {
          ASSERT_EQ(omap(), to_string(model)) << "after " << number;
        }
        if (number % 100 == 0) {
          ASSERT_NO_FATAL_FAILURE(remount());
          ASSERT_EQ(omap(), to_string(model)) << "mounted again after " << number;
        }
      }
    }
  }
}

}  // namespace
}  // namespace swimstore
