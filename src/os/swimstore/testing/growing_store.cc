// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/growing_store.h"

#include <fmt/format.h>

#include "global/global_context.h"

#include "swimstore/testing/group_info.h"
#include "swimstore/testing/part_workload.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"
#include "vtkv/testing/crash_images.h"

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;

constexpr unsigned kPools = 3;
constexpr unsigned kTransactions = 12;  // of each pool
constexpr unsigned kPartSteps = 60;
constexpr unsigned kValues = 24;
constexpr size_t kValueBytes = 60000;
constexpr size_t kMapBytes = 5000;

ghobject_t own_object(const std::string& name) { return ghobject_t(hobject_t(object_t(name), "", 0, 0, -1, "")); }

ceph::bufferlist filled(size_t bytes, char byte) {
  ceph::bufferlist data;
  data.append(std::string(bytes, byte));
  return data;
}

}  // namespace

ghobject_t growing_store_object() { return own_object("large"); }

void fill_growing_store(SwimStore& store, uint64_t seed) {
  std::vector<ObjectStore::CollectionHandle> handles = PartWorkload::open(store);
  for (unsigned by = 0; by < handles.size(); ++by) {
    Transaction setup = PartWorkload::setup(by);
    if (by > 0) {
      put_info(PartWorkload::collection(by), kGrowingStoreEpoch, &setup);
    }
    store.queue_transaction(handles[by], std::move(setup));
  }
  PartWorkload parts(seed);
  for (uint64_t number = 1; number <= kPartSteps; ++number) {
    const PartStep step = parts.next();
    store.queue_transaction(handles[step.by], PartWorkload::transaction(step, number));
  }
  const coll_t own = PartWorkload::collection(0);
  Transaction txn;
  ceph::bufferlist map = filled(kMapBytes, 'm');
  txn.write(own, own_object("osdmap"), 0, kMapBytes, map);
  txn.omap_setheader(own, own_object("osdmap"), filled(100, 'h'));
  std::map<std::string, ceph::bufferlist> values;
  for (unsigned i = 0; i < kValues; ++i) {
    values[fmt::format("key_{:02}", i)] = filled(kValueBytes, static_cast<char>('a' + i));
  }
  txn.touch(own, growing_store_object());
  txn.omap_setkeys(own, growing_store_object(), values);
  store.queue_transaction(handles[0], std::move(txn));
  for (unsigned pool = 0; pool < kPools; ++pool) {
    const coll_t cid(spg_t(pg_t(0, 10 + pool)));
    auto handle = store.create_new_collection(cid);
    Transaction create;
    create.create_collection(cid, 0);
    store.queue_transaction(handle, std::move(create));
    StoreWorkload workload(cid, {.seed = seed + pool, .objects = 4, .object_bytes_max = 60000});
    for (unsigned i = 0; i < kTransactions; ++i) {
      store.queue_transaction(handle, workload.next());
    }
  }
}

std::string check_mount(SwimStore& store, const ModelState& expected) {
  if (const int errors = store.fsck(true); errors != 0) {
    return fmt::format("before the mount fsck found {} errors", errors);
  }
  if (const int r = store.mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  std::string wrong;
  const ModelState found = read_store(store, &wrong);
  wrong = wrong.empty() ? difference(expected, found) : wrong;
  if (store.umount() < 0 && wrong.empty()) {
    wrong = "umount failed";
  }
  if (const int errors = wrong.empty() ? store.fsck(true) : 0; errors != 0) {
    wrong = fmt::format("fsck found {} errors", errors);
  }
  return wrong;
}

std::string check_after_failure(vtkv::SimEnv* env, uint64_t seed,
                                const std::function<std::string(SwimStore& store, vtkv::SimEnv* env)>& check) {
  vtkv::CrashImages images(env->trace(), {.seed = seed});
  const size_t end = images.cut_count() - 1;
  for (const uint64_t number : {uint64_t{0}, images.state_count(end) - 1}) {
    const auto crashed = images.materialize(images.state(end, number));
    const std::string wrong = check(*open_crash_store(g_ceph_context, crashed.get()), crashed.get());
    if (!wrong.empty()) {
      return "after a loss of power: " + wrong;
    }
  }
  return check(*open_crash_store(g_ceph_context, env), env);
}

}  // namespace swimstore
