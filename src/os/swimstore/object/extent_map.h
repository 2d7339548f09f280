// SPDX-License-Identifier: LGPL-2.1-or-later
// The extents of one object, in shards that are loaded when needed.
//
// A shard in memory is always what was submitted last; so an unused onode can be dropped at any time.
//
// Threads: readers (who hold the collection's lock shared) may call load and resolve at once. The methods that change
// extents are for the transaction planner, who holds the collection's lock alone. What shard() returns stays where it
// is, and changes under that lock alone: the planner's, and for reading whoever holds the lock shared. No lock of the
// map is held while the database is read.
//
// Why a load never puts an old shard into the map: who changes a shard has it in the map first, and there it stays
// until the onode goes; what is there when a load ends is kept, and what the load has read of it is not. Only clear(),
// take() and set_all_loaded() say otherwise what the map lacks: none of them may come while a load is under way, which
// the collection's lock sees to, and a load that meets one ends the process rather than mix two states of an object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "swimstore/format/extent_record.h"
#include "vtkv/db.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

constexpr uint64_t block_of(uint64_t offset) { return offset / kBlockBytes; }

// Neighbouring blocks of an object that are neighbours in one slot too, or live in one compressed blob.
struct MappedRun {
  uint64_t block = 0;  // in the object
  uint32_t count = 0;
  SlotAddress slot;
  uint32_t slot_block = 0;
  uint32_t slot_written_blocks = 0;
  boost::container::small_vector<uint32_t, kShardBlocks> crc32c;  // per block
  std::shared_ptr<const CompressedBlob> blob;  // then no slot is given; of one call of resolve(), the same for one blob
};
using MappedRuns = boost::container::small_vector<MappedRun, 1>;  // short reads are of one

// What an object gave up when blocks of it were unmapped.
struct Unmapped {
  std::vector<Extent> extents;  // slices of slots
  std::vector<CompressedBlob> blobs;  // in which no block of it lives any more
  uint64_t blob_blocks = 0;  // of the object, that lived in blobs, in these and in others
  std::vector<uint32_t> worn_shards;  // of those looked at: in which a blob is worn, now or since a clone needed it
};

class ExtentMap {
 public:
  // A new object: nothing is on disk.
  void set_all_loaded();
  // Shard 0 from the onode record, which then is the whole object.
  void set_inline(ExtentShard shard);

  // Makes shards [first, last] present, or more: with [0, UINT32_MAX] all that the object has. *was_read: not all of
  // them were, so the map may take more memory now. Code::corruption names the key.
  vtkv::Status load(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last, bool* was_read);

  // Appends the runs that cover blocks [first, first + count), ascending; holes are left out.
  // REQUIRES: their shards are loaded.
  void resolve(uint64_t first, uint64_t count, MappedRuns* runs) const;
  // An empty one where all is a hole, which takes no memory. REQUIRES: loaded, and nobody changes the object meanwhile.
  const ExtentShard& find_shard(uint32_t number) const;

  // ---- the planner's ----
  // REQUIRES: loaded. Creates an empty shard where there was none.
  ExtentShard& shard(uint32_t number);
  // Removes blocks [first, first + count); appends what was there, one extent per slice.
  void punch(uint64_t first, uint64_t count, Unmapped* unmapped);
  // Maps blocks [first, first + count) to the slot from slot_block on. REQUIRES: they are holes.
  void insert(uint64_t first, uint64_t count, SlotAddress slot, uint32_t slot_block, uint32_t slot_written_blocks,
              bool shared, const uint32_t* crc32c);
  // A copy of the shard's, or of those that are worn; none where it is not in memory.
  std::vector<CompressedBlob> blobs(uint32_t shard, bool only_worn = false) const;
  // The blob's live blocks get to be this shard's. REQUIRES: they are holes.
  void insert_blob(uint32_t shard, CompressedBlob blob);
  // Sets the shared flag of what covers the blocks.
  void share(uint64_t first, uint64_t count);

  // Shards changed since the last call; ascending, unique.
  std::vector<uint32_t> take_dirty();
  void mark_dirty(uint32_t shard) { m_dirty.push_back(shard); }
  void clear();  // all holes, all loaded, nothing dirty
  void take(ExtentMap* other);  // what `other` has, which is then clear; for a rename

  size_t memory_bytes() const;

 private:
  using Loaded = std::vector<std::pair<uint32_t, ExtentShard>>;  // by number, ascending

  vtkv::Status load_all(vtkv::DB& database, uint64_t nid, bool* was_read);
  static vtkv::Status read(vtkv::DB& database, uint64_t nid, const std::vector<uint32_t>& numbers, Loaded* loaded);
  static vtkv::Status read_range(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last, Loaded* loaded);
  // What was read since m_generation was `generation`.
  void add_loaded(uint64_t generation, Loaded loaded) REQUIRES(m_mutex);
  void add(uint32_t number, ExtentShard shard) REQUIRES(m_mutex);
  ExtentShard& shard_locked(uint32_t number) REQUIRES(m_mutex);
  // False: none of them lived in a blob.
  bool punch_blobs(uint32_t number, ExtentShard* shard, uint16_t blocks, Unmapped* unmapped) REQUIRES(m_mutex);
  // As split_at(), with what it allocates counted.
  size_t split_counted(ExtentShard* shard, uint32_t first, uint32_t last) REQUIRES(m_mutex);

  mutable vtkv::Mutex m_mutex;
  std::map<uint32_t, ExtentShard> m_shards GUARDED_BY(m_mutex);
  size_t m_extents_allocated GUARDED_BY(m_mutex) = 0;  // by all of them
  size_t m_blob_bytes GUARDED_BY(m_mutex) = 0;  // of memory, about
  bool m_all_loaded GUARDED_BY(m_mutex) = false;  // what is not in m_shards is empty
  uint64_t m_generation GUARDED_BY(m_mutex) = 0;  // how often it was said anew what m_shards lacks
  std::vector<uint32_t> m_dirty;  // the planner's
};

}  // namespace swimstore
