// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/store_forgery.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "common/Formatter.h"

#include "swimstore/fsck/repair.h"
#include "swimstore/omap/omap_iterator.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/forged_image.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_script.h"

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;

constexpr size_t kReadBytesMax = 1 << 20;
constexpr int kListMax = 1000;

// A client that goes on whatever it is told.
class Client {
 public:
  Client(SwimStore& store, vtkv::SimEnv* env) : m_store(store), m_env(env), m_commits(env) {
    store.set_fatal_handler([this](const vtkv::Status&) { m_ended = true; });
  }
  uint64_t errors() const { return m_errors; }

  void read_write_and_remove_all() {
    std::vector<coll_t> collections;
    count(m_store.list_collections(collections));
    for (const coll_t& cid : collections) {
      auto handle = m_store.open_collection(cid);
      std::vector<ghobject_t> objects;
      ghobject_t next;
      if (!handle ||
          !count(m_store.collection_list(handle, ghobject_t(), ghobject_t::get_max(), kListMax, &objects, &next))) {
        continue;
      }
      m_store.set_collection_commit_queue(cid, m_commits.queue());
      for (const ghobject_t& oid : objects) {
        read(handle, oid);
      }
      for (const ghobject_t& oid : objects) {
        change(cid, handle, oid);
      }
      for (const ghobject_t& oid : objects) {
        queue(handle, [&](Transaction& txn) { txn.remove(cid, oid); });
      }
    }
    m_env->advance(std::chrono::seconds(2));
  }

 private:
  bool count(int r) {
    m_errors += r < 0;
    return r >= 0;
  }

  void read(ObjectStore::CollectionHandle& handle, const ghobject_t& oid) {
    struct stat st{};
    ceph::bufferlist data, header;
    std::map<std::string, ceph::bufferptr, std::less<>> attrs;
    std::map<std::string, ceph::bufferlist> omap;
    std::map<uint64_t, uint64_t> extents;
    count(m_store.stat(handle, oid, &st));
    count(m_store.read(handle, oid, 0, kReadBytesMax, data));
    count(m_store.read(handle, oid, static_cast<uint64_t>(st.st_size) / 2, kReadBytesMax, data));
    count(m_store.getattrs(handle, oid, attrs));
    count(m_store.fiemap(handle, oid, 0, kReadBytesMax, extents));
    if (count(m_store.omap_get(handle, oid, &header, &omap))) {
      auto it = m_store.omap_iterator(handle, oid);
      for (int n = 0; it && it->seek_to_first() == 0 && it->valid() && n < kListMax; ++n, it->next()) {
      }
    }
    JSONFormatter formatter;
    count(m_store.dump_onode(handle, oid, "onode", &formatter));
  }

  void change(const coll_t& cid, ObjectStore::CollectionHandle& handle, const ghobject_t& oid) {
    ghobject_t copy = oid;
    copy.generation = 17;
    ceph::bufferlist data;
    data.append(std::string(9000, 'f'));
    queue(handle, [&](Transaction& txn) { txn.clone(cid, oid, copy); });
    queue(handle, [&](Transaction& txn) { txn.write(cid, oid, 3000, data.length(), data); });
    queue(handle, [&](Transaction& txn) { txn.zero(cid, oid, 100, 5000); });
    queue(handle, [&](Transaction& txn) { txn.clone_range(cid, oid, copy, 0, 70000, 4096); });
    queue(handle, [&](Transaction& txn) { txn.truncate(cid, oid, 5000); });
    queue(handle, [&](Transaction& txn) {
      txn.omap_setkeys(cid, oid, std::map<std::string, ceph::bufferlist>{{"key", data}});
      txn.omap_rmkeyrange(cid, oid, "", "zzz");
      txn.omap_clear(cid, oid);
    });
    queue(handle, [&](Transaction& txn) { txn.remove(cid, copy); });
  }

  // An error ends an OSD; here the next one is tried.
  template <class Fill>
  void queue(ObjectStore::CollectionHandle& handle, Fill fill) {
    if (m_ended) {
      return;
    }
    Transaction txn;
    fill(txn);
    try {
      m_store.queue_transaction(handle, std::move(txn));
    } catch (int r) {
      count(r);
    }
    m_env->run_until_idle();
  }

  SwimStore& m_store;
  vtkv::SimEnv* const m_env;
  StepwiseCommits m_commits;
  bool m_ended = false;
  uint64_t m_errors = 0;
};

}  // namespace

StoreForgery::StoreForgery(CephContext* cct, uint64_t seed) : m_cct(cct), m_env({.seed = seed}) {
  ceph_assert(m_env.create_directory(StoreScript::kPath).ok());
  StoreScript script(cct, &m_env, seed);
  const std::string wrong = script.run(1);
  ceph_assert(wrong.empty());
  m_env.restart_trace();
}

StoreForgery::Outcome StoreForgery::run(uint64_t number) {
  vtkv::SimEnv env({.seed = number, .record = false}, m_env.trace().base, m_env.trace().next_inode);
  Outcome outcome;
  CubeOptions options;
  make_smaller(&options);
  const std::string root = StoreScript::kPath;
  ForgedImage image(&env, root + "/cubes/0", options, root + "/superblock", number);
  outcome.what = image.forge();
  {
    const auto store = StoreScript::open_store(m_cct, &env);
    outcome.mounted = store->mount() == 0;
    if (outcome.mounted) {
      {
        Client client(*store, &env);
        client.read_write_and_remove_all();
        outcome.errors = client.errors();
      }
      store->umount();
    }
  }
  const auto store = StoreScript::open_store(m_cct, &env);
  CheckResult result;
  std::vector<Repaired> changes;
  if (store->check({.deep = true}, &result).ok()) {
    outcome.findings = result.errors;
    (void)store->repair({.deep = number % 2 == 0}, &changes, &result);
  }
  return outcome;
}

}  // namespace swimstore
