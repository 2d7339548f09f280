// SPDX-License-Identifier: LGPL-2.1-or-later
// A small store with five objects for tests that damage it and look at it again: in a simulated host, or with real
// files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/slot_references.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

using Kinds = std::set<FindingClass>;
using Transaction = ObjectStore::Transaction;

inline const coll_t kPg(spg_t(pg_t(0, 1)));
inline constexpr uint64_t kNobody = 999'999;  // an object id

inline ghobject_t named(const std::string& name, int64_t pool = 1) {
  return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 7, pool, ""));
}

inline ceph::bufferlist bytes(size_t count, char first) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) {
    text[i] = static_cast<char>(first + i % 23);
  }
  ceph::bufferlist list;
  list.append(text);
  return list;
}

// A transaction that says whatever it likes.
class Damage final : public CubeTransaction {
 public:
  bool done = false;

 private:
  void data_written() override {}
  void committed(const vtkv::Status& status) override { done = status.ok(); }
};

// in_passes: a simulated one, where a check has so little memory that it goes over the store several times.
enum class Host { simulated, in_passes, real };

// Remembers which files were locked.
class LocksOfSimEnv final : public vtkv::SimEnv {
 public:
  using SimEnv::SimEnv;
  vtkv::Status lock_file(const std::string& path, std::unique_ptr<vtkv::FileLock>* lock) override {
    ++m_locks[path];
    return SimEnv::lock_file(path, lock);
  }
  unsigned locks(const std::string& path) { return m_locks[path]; }

 private:
  std::map<std::string, unsigned> m_locks;
};

class DamageFixture : public ::testing::TestWithParam<Host> {
 protected:
  void SetUp() override {
    use_small_stores(g_ceph_context, {{"swimstore_log_segment_size", "262144"}});
    set_memory(memory());
    if (GetParam() != Host::real) {
      m_env = &m_simulated;
      m_path = "/store";
      ASSERT_TRUE(m_env->create_directory(m_path).ok());
    } else {
      m_env = vtkv::posix_env();
      m_path = std::filesystem::current_path() / "damage_test.XXXXXX";
      ASSERT_NE(::mkdtemp(m_path.data()), nullptr);
    }
    SwimStore store(g_ceph_context, m_path, m_env);
    ASSERT_EQ(0, store.mkfs());
    fill();
    ASSERT_EQ(Kinds(), check_once(true));
    m_before = contents();
    ASSERT_EQ(5u, m_before.size());
  }

  void TearDown() override {
    if (GetParam() == Host::real) {
      std::filesystem::remove_all(m_path);
    }
  }

  static const char* memory() { return GetParam() == Host::in_passes ? "1500" : "0"; }

  // The tree's entry that says of so many blocks of a slot how often they are referred to.
  static std::string references(uint32_t count, size_t blocks) {
    return SlotReferences::encode(SlotReferences::Counts(blocks, count));
  }

  // Calls work(store, pg) on the mounted store; what it queued is durable afterwards.
  template <typename Work>
  void mounted(Work work) {
    SwimStore store(g_ceph_context, m_path, m_env);
    ASSERT_EQ(0, store.mount());
    ObjectStore::CollectionHandle pg = store.open_collection(kPg);
    if (!pg) {
      pg = store.create_new_collection(kPg);
      Transaction create;
      create.create_collection(kPg, 0);
      store.queue_transaction(pg, std::move(create));
    }
    work(store, pg);
    pg.reset();
    ASSERT_EQ(0, store.umount());
  }

  // "small": one slot. "omap": attributes and omap. "large", and "clone" of it, which shares its slots: shards in
  // entries of their own. "other": as small.
  void fill() {
    mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      Transaction txn;
      auto data = bytes(5000, 'a');
      txn.write(kPg, named("small"), 0, 5000, data);
      auto other = bytes(5000, 'b');
      txn.write(kPg, named("other"), 0, 5000, other);
      auto some = bytes(100, 'c');
      txn.write(kPg, named("omap"), 0, 100, some);
      auto attribute = bytes(10, 'd');
      txn.setattr(kPg, named("omap"), "attribute", attribute);
      txn.omap_setkeys(kPg, named("omap"), std::map<std::string, ceph::bufferlist>{{"key", bytes(10, 'e')}});
      txn.omap_setheader(kPg, named("omap"), bytes(10, 'f'));
      auto large = bytes(300'000, 'g');
      txn.write(kPg, named("large"), 0, 300'000, large);
      txn.clone(kPg, named("large"), named("clone"));
      store.queue_transaction(pg, std::move(txn));
    });
  }

  ModelCollection contents() {
    ModelCollection found;
    mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      std::string error;
      found = read_collection(store, pg, &error);
      EXPECT_EQ("", error);
    });
    return found;
  }

  // Calls work(cube, damage), and makes durable what it says.
  template <typename Work>
  void damage(Work work) {
    CubeOptions options;
    options.containers.maintenance = false;
    std::unique_ptr<Cube> cube;
    ASSERT_TRUE(Cube::open(m_env, m_path + "/cubes/0", options, &cube).ok());
    Damage damage;
    work(*cube, damage);
    if (!damage.batch.empty() || !damage.delta.empty()) {
      cube->submit(&damage);
      ASSERT_TRUE(cube->database().wait_durable(damage.last_sequence).ok());
      cube.reset();  // waits for callbacks
      ASSERT_TRUE(damage.done);
    }
  }
  // One entry of the tree.
  void put(const std::string& key, const std::string& value) {
    damage([&](Cube&, Damage& damage) { damage.batch.put(key, value); });
  }

  struct Stored {
    OnodeRecord record;
    ExtentShard shard;
  };
  static Stored stored(Cube& cube, const std::string& name) {
    std::string value;
    Stored object;
    EXPECT_TRUE(cube.database().get(object_key(named(name)), &value).ok());
    EXPECT_TRUE(decode_onode(value, &object.record, &object.shard));
    return object;
  }
  static void store(Damage& damage, const std::string& name, const Stored& object) {
    std::string value;
    encode_onode(object.record, object.shard, &value);
    damage.batch.put(object_key(named(name)), value);
  }

  Kinds check_once(bool deep) {
    SwimStore store(g_ceph_context, m_path, m_env);
    EXPECT_TRUE(store.check({.deep = deep}, &m_result).ok());
    Kinds kinds;
    for (const Finding& finding : m_result.findings) {
      EXPECT_NE("", finding.text);
      kinds.insert(finding.kind);
    }
    EXPECT_EQ(m_result.errors, m_result.findings.size());
    return kinds;
  }

  Kinds check(bool deep = false) {
    Kinds kinds = check_once(deep);
    expect_same_in_passes(deep, kinds);
    expect_same_in_online_passes(deep);
    return kinds;
  }

  static void set_memory(const char* bytes) { g_ceph_context->_conf.set_val_or_die("swimstore_fsck_memory", bytes); }

  void expect_same_in_passes(bool deep, const Kinds& expected) {
    SwimStore store(g_ceph_context, m_path, m_env);
    CheckResult result;
    EXPECT_TRUE(store.check({.deep = deep, .passes = 3}, &result).ok());
    std::multiset<FindingClass> in_passes, in_one;
    for (const Finding& finding : result.findings) {
      in_passes.insert(finding.kind);
    }
    for (const Finding& finding : m_result.findings) {
      in_one.insert(finding.kind);
    }
    EXPECT_EQ(in_one, in_passes);
    EXPECT_EQ(m_result.objects, result.objects);
    EXPECT_EQ(m_result.slots, result.slots);
    EXPECT_EQ(m_result.unclear, result.unclear);
    EXPECT_EQ(expected.contains(FindingClass::store_does_not_open), result.passes < 3);
  }

  // What a check while the store is in use finds, in one pass and in several. Shards that belong to no object count
  // where it is not known yet that they do not.
  void expect_same_in_online_passes(bool deep) {
    std::map<unsigned, Kinds> kinds;
    set_memory("0");  // one pass is one
    for (const unsigned passes : {1, 3}) {
      SwimStore store(g_ceph_context, m_path, m_env);
      CheckResult result;
      EXPECT_TRUE(store.check({.deep = deep, .online = true, .passes = passes}, &result).ok());
      for (const Finding& finding : result.findings) {
        kinds[passes].insert(finding.kind);
      }
      if (passes == 1) {
        EXPECT_LE(result.objects, m_result.objects);
      }
    }
    if (kinds[1].contains(FindingClass::extents_orphaned) || kinds[1].contains(FindingClass::object_undecodable)) {
      kinds[3].erase(FindingClass::slot_claimed_twice);
      kinds[3].erase(FindingClass::slot_count_wrong);
      kinds[1].erase(FindingClass::slot_claimed_twice);
      kinds[1].erase(FindingClass::slot_count_wrong);
    }
    EXPECT_EQ(kinds[1], kinds[3]);
    set_memory(memory());
  }

  // What repair leaves behind; it changes something.
  Kinds repair(bool deep = false) {
    SwimStore store(g_ceph_context, m_path, m_env);
    m_changes.clear();
    EXPECT_TRUE(store.repair({.deep = deep}, &m_changes, &m_result).ok());
    EXPECT_FALSE(m_changes.empty());
    return check(deep);
  }

  void put_back() {
    SwimStore store(g_ceph_context, m_path, m_env);
    m_changes.clear();
    EXPECT_TRUE(store.put_back(&m_put_back, &m_left, &m_changes, &m_result).ok());
  }

  uint64_t forget_quarantined() {
    SwimStore store(g_ceph_context, m_path, m_env);
    uint64_t entries = 0;
    EXPECT_TRUE(store.forget_quarantined(&entries).ok());
    return entries;
  }

  // Everything but these objects is as it was.
  void expect_unchanged_but(const std::vector<std::string>& names) {
    ModelCollection before = m_before;
    ModelCollection now = contents();
    for (const std::string& name : names) {
      before.erase(named(name));
      now.erase(named(name));
    }
    EXPECT_EQ("", difference(before, now));
  }
  bool exists(const std::string& name) { return contents().contains(named(name)); }

  LocksOfSimEnv m_simulated{{.record = false}};
  vtkv::Env* m_env = nullptr;
  std::string m_path;
  ModelCollection m_before;
  CheckResult m_result;
  std::vector<Repaired> m_changes;
  uint64_t m_put_back = 0, m_left = 0;  // of put_back()
};

}  // namespace swimstore
