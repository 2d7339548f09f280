// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks of data in memory: those on their way to their slots, and those read or written lately.
//
// Both are keyed by where the block lies, not by object, so clones share them.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include "include/buffer.h"

#include "swimstore/format/size_class.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// Data of slots whose write was submitted but may not be in the file yet. Thread-safe.
class InFlightData {
 public:
  void add(SlotAddress slot, ceph::bufferlist data);  // from the slot's start
  void remove(SlotAddress slot);
  ceph::bufferlist find(SlotAddress slot) const;  // shares the memory; empty when not in flight
  size_t size() const;

 private:
  static constexpr size_t kShards = 16;
  struct Shard {
    mutable vtkv::Mutex mutex;
    std::unordered_map<uint64_t, ceph::bufferlist> slots GUARDED_BY(mutex);
  };
  Shard& shard_of(SlotAddress slot) { return m_shards[(slot.index ^ slot.size_class) % kShards]; }
  const Shard& shard_of(SlotAddress slot) const { return m_shards[(slot.index ^ slot.size_class) % kShards]; }
  std::array<Shard, kShards> m_shards;
};

// Blocks with their checksums, bounded in bytes. Who asks names the checksums that he expects: in a damaged store two
// objects may name one slot. The oldest go first, but what was read since it was last looked
// at for that has another round, of a few at a time, as in OnodeCache: a hit moves nothing. Thread-safe. Memory is
// shared with whoever read or wrote the blocks, and never changed; a small part of much memory is copied, also what is
// left of a slice. Whoever writes a slot forgets its blocks first: its address may have had another life.
class DataCache {
 public:
  explicit DataCache(size_t capacity_bytes) : m_capacity_bytes(capacity_bytes) {}

  // `blocks`: whole ones, from `first` on, which match these checksums, one for each. Blocks that are there already are
  // replaced.
  void add(SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks, const uint32_t* crc32c);
  // Of a long read, which may be a scan: copied into what room there is, and the first to go.
  void add_if_room(SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks, const uint32_t* crc32c);
  // Each buffer of it: whole blocks.
  void add(SlotAddress slot, const ceph::bufferlist& blocks, const uint32_t* crc32c);
  // Blocks from `first` on that are there with the checksums in crc32c[], at most `count`, in one slice of shared
  // memory. Empty when the first one is not there: then *missing is how many are not, at most `count`. `scan`: a long
  // read, which makes nothing recent.
  ceph::bufferptr get(SlotAddress slot, uint32_t first, uint32_t count, const uint32_t* crc32c, uint32_t* missing,
                      bool scan = false);
  void forget(SlotAddress slot, uint32_t first, uint32_t count);
  void set_capacity(size_t bytes);
  size_t capacity() const { return m_capacity_bytes; }
  size_t memory_bytes() const { return m_bytes; }
  void clear();

 private:
  static constexpr size_t kShards = 16;
  static constexpr uint32_t kPageBlocks = 16;
  static constexpr unsigned kPassedOverMax = 8;  // pages with another round, for each that goes
  struct Key {
    uint64_t slot;
    uint32_t page;  // number of the first block / kPageBlocks
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    using is_avalanching = void;  // told to the table: each bit of it depends on each of the key
    size_t operator()(const Key& key) const;
  };
  // Blocks [first, first + count) of the page.
  struct Slice {
    Slice(uint32_t first, ceph::bufferptr blocks, const uint32_t* crc32c);
    Slice part(uint32_t from, uint32_t end) const;  // blocks of the page

    uint32_t first;
    uint32_t count;
    ceph::bufferptr blocks;
    boost::container::small_vector<uint32_t, 2> crc32c;
  };
  struct Page {
    Key key;
    bool was_read = false;  // since trim() last came by
    boost::container::small_vector<Slice, 1> slices;  // in no order, none overlaps another
    uint32_t blocks() const;
    // The slice that has the block with this checksum.
    const Slice* find(uint32_t block, uint32_t crc32c) const;
  };
  struct Shard {
    vtkv::Mutex mutex;
    std::list<Page> pages GUARDED_BY(mutex);  // the newest first
    boost::unordered_flat_map<Key, std::list<Page>::iterator, KeyHash> by_address GUARDED_BY(mutex);
    size_t blocks GUARDED_BY(mutex) = 0;
  };
  using Removed = std::vector<Slice>;  // freed after the lock

  Shard& shard_of(const Key& key) { return m_shards[KeyHash()(key) >> 8 & (kShards - 1)]; }
  void add_to_page(const Key& key, Slice slice);
  void add_page_if_room(const Key& key, uint32_t first, const ceph::bufferptr& blocks, const uint32_t* crc32c);
  bool has_room(const Shard& shard, const Key& key, uint32_t count) const REQUIRES(shard.mutex);
  void cut(Shard& shard, Page& page, uint32_t first, uint32_t count, Removed* removed) REQUIRES(shard.mutex);
  void trim(Shard& shard, Removed* removed) REQUIRES(shard.mutex);
  void account(Shard& shard, int64_t blocks) REQUIRES(shard.mutex);

  std::atomic<size_t> m_capacity_bytes;
  std::atomic<size_t> m_bytes{0};
  std::array<Shard, kShards> m_shards;
};

}  // namespace swimstore
