// The extents of one object, in chunks that are loaded when needed.
//
// A chunk in memory is always what was submitted last; so an unused onode can be dropped at any time.
//
// Threads: readers (who hold the collection's lock shared) may call load and resolve at once: a mutex
// protects the table of chunks. The methods that change extents, and chunk(), are for the transaction
// planner, who holds the collection's lock alone.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "swimstore/format/extent_record.h"
#include "vtkv/db.h"

namespace swimstore {

constexpr uint64_t block_of(uint64_t offset) { return offset / kBlockBytes; }
constexpr uint64_t blocks_for(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

// Neighbouring blocks of an object that are neighbours in one slot too.
struct MappedRun {
  uint64_t block = 0;  // in the object
  uint32_t count = 0;
  SlotAddress slot;
  uint32_t slot_block = 0;
  uint32_t slot_written_blocks = 0;
  std::vector<uint32_t> crc32c;  // per block
};

class ExtentMap {
 public:
  // A new object: nothing is on disk.
  void set_all_loaded() { m_all_loaded = true; }
  // Chunk 0 from the onode record, which then is the whole object.
  void set_inline(ExtentChunk chunk);

  // Makes chunks [first, last] present. Code::corruption names the key.
  vtkv::Status load(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last);
  vtkv::Status load_all(vtkv::DB& database, uint64_t nid);

  // Appends the runs that cover blocks [first, first + count), ascending; holes are left out.
  // REQUIRES: their chunks are loaded.
  void resolve(uint64_t first, uint64_t count, std::vector<MappedRun>* runs) const;

  // ---- the planner's ----
  // REQUIRES: loaded. Creates an empty chunk where there was none.
  ExtentChunk& chunk(uint32_t number);
  // Removes blocks [first, first + count); appends what was there, one extent per piece.
  void punch(uint64_t first, uint64_t count, std::vector<Extent>* released);
  // Maps blocks [first, first + count) to the slot from slot_block on. REQUIRES: they are holes.
  void insert(uint64_t first, uint64_t count, SlotAddress slot, uint32_t slot_block,
              uint32_t slot_written_blocks, bool shared, const uint32_t* crc32c);
  // Sets the shared flag of what covers the blocks.
  void share(uint64_t first, uint64_t count);

  // Chunks changed since the last call; ascending, unique.
  std::vector<uint32_t> take_dirty();
  void mark_dirty(uint32_t chunk) { m_dirty.push_back(chunk); }
  void clear();  // all holes, all loaded, nothing dirty
  void take(ExtentMap* other);  // what `other` has, which is then clear; for a rename

  size_t memory_bytes() const;

 private:
  vtkv::Status load_range(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last);
  void add(uint32_t number, ExtentChunk chunk);

  mutable std::mutex m_mutex;  // m_chunks and m_extents_allocated, against other readers
  std::map<uint32_t, ExtentChunk> m_chunks;
  size_t m_extents_allocated = 0;  // by all of them
  bool m_all_loaded = false;   // what is not in m_chunks is empty
  std::vector<uint32_t> m_dirty;
};

}  // namespace swimstore
