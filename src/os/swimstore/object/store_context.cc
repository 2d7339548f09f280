// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/store_context.h"

#include <algorithm>

namespace swimstore {

namespace {

// The even part lets a cube that holds nothing begin to; what a cube that stays empty has of it, nobody uses.
constexpr uint64_t kEvenShare = 8;

constexpr const char* kRandomOption = "swimstore_debug_random_read_err";

}  // namespace

StoreCubes::StoreCubes(CubeSet& cubes, size_t onode_cache_bytes, size_t data_cache_bytes) : m_set(cubes) {
  m_by_number.resize(cubes.size());
  for (unsigned number = 0; number < cubes.size(); ++number) {
    if (cubes.has(number)) {
      m_cubes.push_back(std::make_unique<StoreCube>(number, cubes[number], onode_cache_bytes / cubes.size(),
                                                    data_cache_bytes / cubes.size()));
      m_by_number[number] = m_cubes.back().get();
    }
  }
}

template <typename Held, typename Set>
void StoreCubes::divide(uint64_t bytes, const Held& held, const Set& set) {
  const uint64_t all = sum(held);
  const uint64_t even = bytes / m_cubes.size() / (all > 0 ? kEvenShare : 1);
  const double by_use = static_cast<double>(bytes - even * m_cubes.size());
  for (const auto& cube : m_cubes) {
    const double part = all > 0 ? static_cast<double>(held(*cube)) / static_cast<double>(all) : 0;
    set(*cube, even + static_cast<uint64_t>(by_use * part));
  }
}

void StoreCubes::set_onode_capacity(uint64_t bytes) {
  divide(
      bytes, [](const StoreCube& cube) { return cube.onodes.memory_bytes(); },
      [](StoreCube& cube, uint64_t share) { cube.onodes.set_capacity(share); });
}

void StoreCubes::set_data_capacity(uint64_t bytes) {
  divide(
      bytes, [](const StoreCube& cube) { return cube.data.memory_bytes(); },
      [](StoreCube& cube, uint64_t share) { cube.data.set_capacity(share); });
}

void StoreCubes::set_tree_capacity(uint64_t bytes) {
  divide(
      bytes, [](const StoreCube& cube) { return cube.cube.database().statistics().block_cache_bytes; },
      [](StoreCube& cube, uint64_t share) { cube.database().set_block_cache_bytes(share); });
}

InjectedErrors::InjectedErrors(CephContext* cct, vtkv::Env* env)
    : m_cct(cct),
      m_env(env),
      m_random(cct->_conf.get_val<double>(kRandomOption)),
      m_random_option(cct, kRandomOption,
                      [this](const ConfigProxy& conf) { m_random = conf.get_val<double>(kRandomOption); }) {}

// As Ceph's tests know it of BlueStore: one read in 100 times the value, of objects of pools.
bool InjectedErrors::fails_at_random(const ghobject_t& oid) const {
  const double value = std::max(m_random.load(), m_cct->_conf->bluestore_debug_random_read_err);
  return value > 0 && oid.hobj.pool > 0 &&
         m_env->random_u64() % std::max<uint64_t>(1, static_cast<uint64_t>(value * 100)) == 0;
}

void InjectedErrors::add_data_error(const ghobject_t& oid) {
  vtkv::MutexLock lock(m_mutex);
  m_data.insert(oid);
  m_any = true;
}

void InjectedErrors::add_metadata_error(const ghobject_t& oid) {
  vtkv::MutexLock lock(m_mutex);
  m_metadata.insert(oid);
  m_any = true;
}

bool InjectedErrors::has_data_error(const ghobject_t& oid) const {
  if (!m_any) {
    return false;
  }
  vtkv::MutexLock lock(m_mutex);
  return m_data.contains(oid);
}

bool InjectedErrors::has_metadata_error(const ghobject_t& oid) const {
  if (!m_any) {
    return false;
  }
  vtkv::MutexLock lock(m_mutex);
  return m_metadata.contains(oid);
}

void InjectedErrors::forget(const ghobject_t& oid) {
  if (!m_any) {
    return;
  }
  vtkv::MutexLock lock(m_mutex);
  m_data.erase(oid);
  m_metadata.erase(oid);
  m_any = !m_data.empty() || !m_metadata.empty();
}

}  // namespace swimstore
