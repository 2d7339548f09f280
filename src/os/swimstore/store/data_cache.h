// Blocks of data in memory: those on their way to their slots, and those read or written lately.
//
// Both are keyed by where the block lies, not by object, so clones share them.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "include/buffer.h"

#include "swimstore/container/size_class.h"

namespace swimstore {

// Data of slots whose write was submitted but may not be in the file yet. Thread-safe.
class InFlightData {
 public:
  void add(SlotAddress slot, ceph::bufferlist data);  // from the slot's start
  void remove(SlotAddress slot);
  // Copies a range; false when the slot is not in flight. REQUIRES: the range was written.
  bool get(SlotAddress slot, uint32_t offset, uint32_t length, char* destination) const;
  size_t size() const;

 private:
  static constexpr size_t kShards = 16;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<uint64_t, ceph::bufferlist> slots;
  };
  Shard& shard_of(SlotAddress slot) { return m_shards[(slot.index ^ slot.size_class) % kShards]; }
  const Shard& shard_of(SlotAddress slot) const { return m_shards[(slot.index ^ slot.size_class) % kShards]; }
  std::array<Shard, kShards> m_shards;
};

// Blocks whose checksum was verified, bounded in bytes, least recently used go first. Thread-safe.
// Whoever writes a slot forgets its blocks first: its address may have had another life.
class DataCache {
 public:
  explicit DataCache(size_t capacity_bytes) : m_capacity_bytes(capacity_bytes) {}

  void add(SlotAddress slot, uint32_t block, const char* data);  // copies kBlockBytes
  bool get(SlotAddress slot, uint32_t block, char* destination);  // copies kBlockBytes
  void forget(SlotAddress slot, uint32_t block);
  void set_capacity(size_t bytes);
  size_t capacity() const { return m_capacity_bytes; }
  size_t memory_bytes() const { return m_bytes; }
  void clear();

 private:
  static constexpr size_t kShards = 16;
  struct Key {
    uint64_t slot;
    uint32_t block;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::unique_ptr<char[]> data;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Shard {
    std::mutex mutex;
    std::list<Entry> entries;  // most recently used first
    std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> by_place;
  };
  Shard& shard_of(const Key& key) { return m_shards[KeyHash()(key) % kShards]; }
  void trim(Shard& shard);

  std::atomic<size_t> m_capacity_bytes;
  std::atomic<size_t> m_bytes{0};
  std::array<Shard, kShards> m_shards;
};

}  // namespace swimstore
