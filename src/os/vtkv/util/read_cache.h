// SPDX-License-Identifier: LGPL-2.1-or-later
// What was read and checked, kept up to a number of bytes: blocks of the tree and values of the log, in one budget.
//
// Nothing is named by its address on disk: span ids and epochs are never reused, so that a recycled zone or log
// segment cannot bring back what it held before.
//
// What goes is chosen as in S3-FIFO (Yang et al., SOSP '23): what is new waits in a small queue and leaves it soon
// unless it is used again; a large queue holds the rest, and gives what was used since another round. So a scan
// drives out little, and what is popular stays, more surely than in the order of last use. A hit moves nothing.
//
// Thread-safe; sharded, so that readers rarely meet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include "vtkv/util/mutex.h"

namespace vtkv {

// Immutable, and shared between threads.
class Cached {
 public:
  virtual ~Cached() = default;
  virtual size_t memory_bytes() const = 0;
};

class ReadCache {
 public:
  enum class Kind : uint8_t {
    block,  // a Block: `owner` is the id of its span, `address` its unit there
    value,  // a CachedValue: `owner` is its segment's epoch, `address` its offset there
  };
  static constexpr size_t kKinds = 2;
  struct Key {
    Kind kind = Kind::block;
    uint64_t owner = 0;
    uint64_t address = 0;
    bool operator==(const Key&) const = default;
  };

  explicit ReadCache(size_t capacity_bytes) { resize(capacity_bytes); }

  std::shared_ptr<const Cached> find(const Key& key);  // null when it is not there
  // What is there already stays.
  void insert(const Key& key, std::shared_ptr<const Cached> item);
  void resize(size_t capacity_bytes);  // may be called at any time; shrinks at once

  size_t bytes() const { return m_bytes.load(std::memory_order_relaxed); }
  uint64_t hits(Kind kind) const { return m_hits[static_cast<size_t>(kind)].load(std::memory_order_relaxed); }
  uint64_t misses(Kind kind) const { return m_misses[static_cast<size_t>(kind)].load(std::memory_order_relaxed); }

 private:
  struct Hash {
    using is_avalanching = void;  // told to the table: each bit of it depends on each of the key
    size_t operator()(const Key& key) const;
  };
  struct Item {
    Key key;
    std::shared_ptr<const Cached> cached;
    size_t bytes = 0;
    uint8_t uses = 0;  // since it was last looked at for eviction, at most kUsesMost
  };
  using Queue = std::list<Item>;  // the newest first
  struct Shard {
    Mutex lock;
    Queue fresh GUARDED_BY(lock), proven GUARDED_BY(lock);
    size_t fresh_bytes GUARDED_BY(lock) = 0, proven_bytes GUARDED_BY(lock) = 0;
    boost::unordered_flat_map<Key, Queue::iterator, Hash> by_key GUARDED_BY(lock);
    // Hashes of keys that left `fresh` unused, the oldest first: who comes again soon goes to `proven` at once.
    std::deque<uint64_t> left GUARDED_BY(lock);
    boost::unordered_flat_set<uint64_t> recently_left GUARDED_BY(lock);
  };
  static constexpr size_t kShards = 16;

  Shard& shard_of(size_t hash) { return m_shards[hash >> 8 & (kShards - 1)]; }
  void evict(Shard& shard) REQUIRES(shard.lock);
  void evict_fresh(Shard& shard) REQUIRES(shard.lock);
  void evict_proven(Shard& shard) REQUIRES(shard.lock);
  void drop_last(Shard& shard, Queue* queue, size_t* queue_bytes) REQUIRES(shard.lock);
  static void remember_left(Shard& shard, uint64_t hash) REQUIRES(shard.lock);

  std::array<Shard, kShards> m_shards;
  std::atomic<size_t> m_shard_capacity_bytes{0};
  std::atomic<size_t> m_bytes{0};
  std::array<std::atomic<uint64_t>, kKinds> m_hits{}, m_misses{};
};

}  // namespace vtkv
