#include "vtkv/span/block_cache.h"

#include "vtkv/util/hash.h"

namespace vtkv {

namespace {
constexpr size_t kItemOverheadBytes = 160;  // list node, map node, shared_ptr's control block
}  // namespace

size_t BlockCache::Hash::operator()(const Key& key) const {
  return mix64(key.span_id + mix64(key.unit));
}

std::shared_ptr<const Block> BlockCache::find(const Key& key) {
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.lock);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) {
    m_misses.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  m_hits.fetch_add(1, std::memory_order_relaxed);
  shard.items.splice(shard.items.begin(), shard.items, found->second);
  return found->second->block;
}

void BlockCache::insert(const Key& key, std::shared_ptr<const Block> block) {
  const size_t bytes = block->memory_bytes() + kItemOverheadBytes;
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.lock);
  if (shard.by_key.contains(key)) {
    return;  // another reader was faster
  }
  shard.items.push_front({key, std::move(block), bytes});
  shard.by_key.emplace(key, shard.items.begin());
  shard.bytes += bytes;
  m_bytes.fetch_add(bytes, std::memory_order_relaxed);
  evict(shard);
}

void BlockCache::resize(size_t capacity_bytes) {
  m_shard_capacity_bytes.store(capacity_bytes / kShards, std::memory_order_relaxed);
  for (Shard& shard : m_shards) {
    std::lock_guard lock(shard.lock);
    evict(shard);
  }
}

void BlockCache::evict(Shard& shard) {
  const size_t capacity = m_shard_capacity_bytes.load(std::memory_order_relaxed);
  while (shard.bytes > capacity) {
    const Item& last = shard.items.back();
    shard.bytes -= last.bytes;
    m_bytes.fetch_sub(last.bytes, std::memory_order_relaxed);
    shard.by_key.erase(last.key);
    shard.items.pop_back();
  }
}

}  // namespace vtkv
