// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/disk/real_store.h"

#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

// Counts what the store's threads acknowledge.
class Acknowledged {
 public:
  void add_one() {
    std::lock_guard lock(m_mutex);
    ++m_count;
    m_changed.notify_all();
  }
  void wait_for(uint64_t count) {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_count == count; });
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_changed;
  uint64_t m_count = 0;
};

}  // namespace

RealStore::RealStore(CephContext* cct, vtkv::DiskLab* lab, const RealStoreOptions& options)
    : m_cct(cct), m_lab(lab), m_options(options) {
  use_small_stores(cct);
}

std::unique_ptr<SwimStore> RealStore::open_store() const {
  auto store = std::make_unique<SwimStore>(m_cct, m_lab->directory() + "/store");
  // A failed disk is not tested here.
  store->set_fatal_handler([](const vtkv::Status& status) { ceph_abort_msg(status.to_string()); });
  store->set_cube_options_hook([this](CubeOptions& options) {
    make_smaller(&options);
    if (m_options.seed % 2 == 0) {
      options.database.primed_bytes_per_commit = 0;  // log segments that are not primed have their own syncs
    }
  });
  return store;
}

// Transactions are in flight together, and waited for together. *begun: when the collections were there.
void RealStore::work(SwimStore& store, uint64_t seed, unsigned transactions, uint64_t* begun) {
  Acknowledged acknowledged;
  StoreLoad load(store, m_oracle, seed, {.objects = 4, .object_bytes_max = 40000}, nullptr,
                 [this, &acknowledged](uint64_t mark) {
                   m_lab->disk().mark(mark);
                   acknowledged.add_one();
                 });
  acknowledged.wait_for(load.queued());
  *begun = m_lab->disk().time();
  std::mt19937_64 random(seed);
  for (unsigned done = 0; done < transactions;) {
    for (uint64_t batch = 1 + random() % m_options.in_flight_max; batch > 0; --batch, ++done) {
      load.queue_one(random);
    }
    acknowledged.wait_for(load.queued());
  }
}

vtkv::Status RealStore::make_and_work(vtkv::DiskTrace* trace, uint64_t* begun) {
  vtkv::Env* const env = vtkv::posix_env();
  VTKV_RETURN_IF_ERROR(env->create_directory(m_lab->directory() + "/store"));
  VTKV_RETURN_IF_ERROR(env->sync_directory(m_lab->directory()));
  const auto store = open_store();
  VTKV_RETURN_IF_ERROR(store->make());
  VTKV_RETURN_IF_ERROR(store->try_mount());
  work(*store, m_options.seed, m_options.transactions, begun);
  *trace = m_lab->disk().trace();
  store->umount();
  return {};
}

std::string RealStore::record(std::unique_ptr<vtkv::DiskCrashes>* crashes) {
  if (const vtkv::Status status = m_lab->mount(m_lab->empty()); !status.ok()) {
    return status.to_string();
  }
  vtkv::DiskTrace trace;
  uint64_t begun = 0;
  const vtkv::Status status = make_and_work(&trace, &begun);
  const vtkv::Status unmounted = m_lab->unmount();
  if (!status.ok() || !unmounted.ok()) {
    return (status.ok() ? unmounted : status).to_string();
  }
  *crashes = std::make_unique<vtkv::DiskCrashes>(std::move(trace), begun);
  return {};
}

// What is found once is acknowledged from then on: a mount makes it durable.
std::string RealStore::open_and_compare(const std::vector<size_t>& acknowledged, RealStore* second) {
  const auto store = open_store();
  if (const vtkv::Status status = store->try_mount(); !status.ok()) {
    return "the store does not mount: " + status.to_string();
  }
  std::vector<size_t> found;
  const std::string wrong = m_oracle.check(*store, acknowledged, &found);
  if (wrong.empty() && second != nullptr) {
    for (const uint64_t mark : marks_of(found)) {
      m_lab->disk().mark(mark);
    }
    second->m_oracle = m_oracle;
    second->m_oracle.promise(acknowledged);
    second->m_oracle.forget_after(found);
    uint64_t begun = 0;
    second->work(*store, m_options.seed + m_lab->disk().time(), m_options.more, &begun);
  }
  store->umount();
  if (!wrong.empty()) {
    return wrong;
  }
  const int errors = store->fsck(true);
  return errors == 0 ? "" : fmt::format("fsck found {} errors", errors);
}

std::string RealStore::check(const vtkv::DiskCrash& crash, std::unique_ptr<RealStore>* second,
                             std::unique_ptr<vtkv::DiskCrashes>* crashes) {
  if (const vtkv::Status status = m_lab->mount(crash.image); !status.ok()) {
    return "the file system does not mount: " + status.to_string();
  }
  if (second != nullptr) {
    *second = std::make_unique<RealStore>(m_cct, m_lab, m_options);
  }
  const std::string wrong =
      open_and_compare(m_oracle.acknowledged(crash.marks), second == nullptr ? nullptr : second->get());
  if (second != nullptr) {
    *crashes = std::make_unique<vtkv::DiskCrashes>(m_lab->disk().trace());
  }
  const vtkv::Status unmounted = m_lab->unmount();
  return wrong.empty() && !unmounted.ok() ? unmounted.to_string() : wrong;
}

}  // namespace swimstore
