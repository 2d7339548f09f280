// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/placement.h"

#include <vector>

#include "swimstore/cube/cube_set.h"

namespace swimstore {

namespace {

// Spreads pools of few groups over the cubes.
uint64_t mix(uint64_t pool) { return (pool * 0x9e3779b97f4a7c15) >> 32; }

// What is known so far of the collections that a transaction names.
class HomeChoice {
 public:
  explicit HomeChoice(StoreContext& store) : m_store(store) {}

  // A placement group.
  void add(const Collection& collection) REQUIRES_SHARED(collection.lock) {
    if (!collection.exists) {
      m_new_home = m_new_home == 0 ? new_home(collection.cid, m_store) : m_new_home;
    } else if (!m_found) {
      m_home.cube = collection.record.home();
      m_found = true;
    } else {
      const unsigned cube = collection.record.home();
      m_home.is_elsewhere |= cube != m_home.cube;
      m_home.cube = m_home.cube == 0 ? cube : m_home.cube;  // nothing moves to cube 0
    }
  }
  Home home() const { return m_found ? m_home : Home{.cube = m_new_home}; }

 private:
  StoreContext& m_store;
  Home m_home;
  unsigned m_new_home = 0;
  bool m_found = false;
};

}  // namespace

unsigned new_home(const coll_t& cid, unsigned cubes) {
  spg_t pg;
  if (cubes == 1 || !cid.is_pg(&pg)) {
    return 0;
  }
  return 1 + static_cast<unsigned>((pg.ps() + mix(pg.pool())) & (CubeSet::data_cubes(cubes) - 1));
}

unsigned new_home(const coll_t& cid, StoreContext& store) {
  const StoreCubes& cubes = store.cubes;
  const auto can_have = [&](unsigned cube) { return cubes.has(cube) && !store.unowned.could_meet(cube, cid); };
  const unsigned home = new_home(cid, cubes.size());
  if (home == 0 || can_have(home)) {
    return home;
  }
  std::vector<unsigned> others;
  for (unsigned cube = 1; cube < cubes.size(); ++cube) {
    if (can_have(cube)) {
      others.push_back(cube);
    }
  }
  spg_t pg;
  cid.is_pg(&pg);
  // Groups of one cube differ in the bits above those that chose it.
  return others.empty() ? 0 : others[pg.ps() / CubeSet::data_cubes(cubes.size()) % others.size()];
}

Home home_of(std::span<const CollectionRef> named, StoreContext& store) {
  HomeChoice choice(store);
  for (const CollectionRef& collection : named) {
    if (collection->cid.is_pg()) {
      SharedLock lock(collection->lock);
      choice.add(*collection);
    }
  }
  return choice.home();
}

Home home_of_locked(std::span<const CollectionRef> named, StoreContext& store) {
  HomeChoice choice(store);
  for (const CollectionRef& collection : named) {
    if (collection->cid.is_pg()) {
      collection->lock.assert_held();
      choice.add(*collection);
    }
  }
  return choice.home();
}

}  // namespace swimstore
