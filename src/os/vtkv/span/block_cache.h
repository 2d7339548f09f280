// Blocks that were read, kept up to a number of bytes; the least recently used go first.
//
// A block is named by its span's id and its unit, not by its address: ids are never reused, so that a
// recycled zone cannot bring back an old block. Thread-safe; sharded, so that readers rarely meet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "vtkv/span/block.h"

namespace vtkv {

class BlockCache {
 public:
  struct Key {
    uint64_t span_id = 0;
    uint32_t unit = 0;
    bool operator==(const Key&) const = default;
  };

  explicit BlockCache(size_t capacity_bytes) { resize(capacity_bytes); }

  std::shared_ptr<const Block> find(const Key& key);  // null when it is not there
  void insert(const Key& key, std::shared_ptr<const Block> block);
  void resize(size_t capacity_bytes);  // may be called at any time; shrinks at once

  size_t bytes() const { return m_bytes.load(std::memory_order_relaxed); }
  uint64_t hits() const { return m_hits.load(std::memory_order_relaxed); }
  uint64_t misses() const { return m_misses.load(std::memory_order_relaxed); }

 private:
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Item {
    Key key;
    std::shared_ptr<const Block> block;
    size_t bytes;
  };
  struct Shard {
    std::mutex lock;
    std::list<Item> items;  // most recently used first
    std::unordered_map<Key, std::list<Item>::iterator, Hash> by_key;
    size_t bytes = 0;
  };
  static constexpr size_t kShards = 16;

  Shard& shard_of(const Key& key) { return m_shards[Hash()(key) >> 8 & (kShards - 1)]; }
  void evict(Shard& shard);  // the caller holds the shard's lock

  std::array<Shard, kShards> m_shards;
  std::atomic<size_t> m_shard_capacity_bytes{0};
  std::atomic<size_t> m_bytes{0};
  std::atomic<uint64_t> m_hits{0}, m_misses{0};
};

}  // namespace vtkv
