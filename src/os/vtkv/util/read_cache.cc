// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/read_cache.h"

#include <algorithm>

#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

constexpr size_t kItemOverheadBytes = 160;  // list node, map node, shared_ptr's control block
constexpr uint8_t kUsesMost = 3;
constexpr size_t kFreshPart = 10;           // of a shard: one in so many bytes
constexpr size_t kLeftMin = 16;

}  // namespace

size_t ReadCache::Hash::operator()(const Key& key) const {
  return mix64(key.owner + mix64(key.address * kKinds + static_cast<size_t>(key.kind)));
}

std::shared_ptr<const Cached> ReadCache::find(const Key& key) {
  const size_t kind = static_cast<size_t>(key.kind);
  Shard& shard = shard_of(Hash()(key));
  MutexLock lock(shard.lock);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) {
    m_misses[kind].fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  m_hits[kind].fetch_add(1, std::memory_order_relaxed);
  Item& item = *found->second;
  item.uses = std::min<uint8_t>(kUsesMost, item.uses + 1);
  return item.cached;
}

void ReadCache::insert(const Key& key, std::shared_ptr<const Cached> cached) {
  const size_t bytes = cached->memory_bytes() + kItemOverheadBytes;
  if (bytes > m_shard_capacity_bytes.load(std::memory_order_relaxed)) {
    return;  // it would drive out all others, and itself
  }
  const size_t hash = Hash()(key);
  Shard& shard = shard_of(hash);
  MutexLock lock(shard.lock);
  const auto [found, is_new] = shard.by_key.try_emplace(key);
  if (!is_new) {
    return;  // another reader was faster
  }
  const bool returns = shard.recently_left.contains(hash);
  Queue& queue = returns ? shard.proven : shard.fresh;
  queue.push_front({key, std::move(cached), bytes, 0});
  (returns ? shard.proven_bytes : shard.fresh_bytes) += bytes;
  found->second = queue.begin();
  m_bytes.fetch_add(bytes, std::memory_order_relaxed);
  evict(shard);
}

void ReadCache::resize(size_t capacity_bytes) {
  m_shard_capacity_bytes.store(capacity_bytes / kShards, std::memory_order_relaxed);
  for (Shard& shard : m_shards) {
    MutexLock lock(shard.lock);
    evict(shard);
  }
}

void ReadCache::evict(Shard& shard) {
  const size_t capacity = m_shard_capacity_bytes.load(std::memory_order_relaxed);
  while (shard.fresh_bytes + shard.proven_bytes > capacity) {
    if (shard.proven.empty() || (!shard.fresh.empty() && shard.fresh_bytes > capacity / kFreshPart)) {
      evict_fresh(shard);
    } else {
      evict_proven(shard);
    }
  }
}

void ReadCache::evict_fresh(Shard& shard) {
  Item& last = shard.fresh.back();
  if (last.uses == 0) {
    remember_left(shard, Hash()(last.key));
    drop_last(shard, &shard.fresh, &shard.fresh_bytes);
    return;
  }
  last.uses = 0;
  shard.fresh_bytes -= last.bytes;
  shard.proven_bytes += last.bytes;
  shard.proven.splice(shard.proven.begin(), shard.fresh, std::prev(shard.fresh.end()));
}

// Ends: each round takes one of an item's uses.
void ReadCache::evict_proven(Shard& shard) {
  Item& last = shard.proven.back();
  if (last.uses == 0) {
    drop_last(shard, &shard.proven, &shard.proven_bytes);
    return;
  }
  --last.uses;
  shard.proven.splice(shard.proven.begin(), shard.proven, std::prev(shard.proven.end()));
}

void ReadCache::drop_last(Shard& shard, Queue* queue, size_t* queue_bytes) {
  const Item& last = queue->back();
  *queue_bytes -= last.bytes;
  m_bytes.fetch_sub(last.bytes, std::memory_order_relaxed);
  shard.by_key.erase(last.key);
  queue->pop_back();
}

// As many as the shard holds items.
void ReadCache::remember_left(Shard& shard, uint64_t hash) {
  if (shard.recently_left.insert(hash).second) {
    shard.left.push_back(hash);
  }
  while (shard.left.size() > std::max(kLeftMin, shard.by_key.size())) {
    shard.recently_left.erase(shard.left.front());
    shard.left.pop_front();
  }
}

}  // namespace vtkv
