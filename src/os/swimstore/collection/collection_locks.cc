// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/collection_locks.h"

#include <algorithm>
#include <tuple>

namespace swimstore {

CollectionLocks::CollectionLocks(std::span<const CollectionRef> named) : m_collections(named.begin(), named.end()) {
  std::sort(m_collections.begin(), m_collections.end(), [](const CollectionRef& a, const CollectionRef& b) {
    return std::tuple(!a->cid.is_pg(), a.get()) < std::tuple(!b->cid.is_pg(), b.get());
  });
  const auto others = std::find_if(m_collections.begin(), m_collections.end(),
                                   [](const CollectionRef& collection) { return !collection->cid.is_pg(); });
  lock_up_to(named.front()->cid.is_pg() ? static_cast<size_t>(others - m_collections.begin()) : m_collections.size());
}

CollectionLocks::~CollectionLocks() {
  for (const CollectionRef& collection : held()) {
    collection->lock.unlock();
  }
}

bool CollectionLocks::is_left(const coll_t& cid) const {
  return std::any_of(m_collections.begin() + static_cast<ptrdiff_t>(m_held), m_collections.end(),
                     [&cid](const CollectionRef& collection) { return collection->cid == cid; });
}

void CollectionLocks::take_rest() { lock_up_to(m_collections.size()); }

void CollectionLocks::lock_up_to(size_t count) {
  for (const CollectionRef& collection : std::span(m_collections).subspan(m_held, count - m_held)) {
    collection->lock.lock();
  }
  m_held = count;
}

}  // namespace swimstore
