// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks of an object from wherever they are: in flight, in the data cache, or in their slots.
//
// Callers hold the lock of the object's collection. Thread-safe.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "include/buffer.h"

#include "swimstore/object/store_context.h"

namespace swimstore {

// ObjectStore's answer is the length as an int. What is longer is -E2BIG.
inline constexpr uint64_t kReadBytesMax = std::numeric_limits<int32_t>::max();

// Of an object.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

class BlockReader {
 public:
  BlockReader(StoreContext& store, StoreCube& cube) : m_store(store), m_cube(cube) {}

  // Appends `length` bytes from `offset`; holes read as zeros. 0, -EIO or -E2BIG.
  int read(Onode& onode, uint64_t offset, uint64_t length, uint32_t op_flags, ceph::bufferlist* out);
  // Appends one range after the other, or nothing where one cannot be read; waits for the device once for all of them.
  // REQUIRES: ascending, none overlaps another.
  int read(Onode& onode, std::span<const ByteRange> ranges, uint32_t op_flags, ceph::bufferlist* out);
  // One whole block.
  int read_block(Onode& onode, uint64_t block, char* destination);
  // The stored blocks of a compressed blob that is one of the shard's that begins at `shard_block`. *lost: which of
  // them cannot be read; they are zeros.
  void read_stored(const Onode& onode, uint64_t shard_block, const CompressedBlob& blob, ceph::bufferlist* stored,
                   std::vector<uint32_t>* lost);

 private:
  // The blocks that a read touches, each once: one behind the other, in runs of neighbours.
  class Touched {
   public:
    explicit Touched(std::span<const ByteRange> ranges);

    uint64_t count() const { return m_count; }
    // How many come before this one, which is among them.
    uint64_t position(uint64_t block) const;

    struct Run {
      uint64_t first = 0;
      uint64_t end = 0;
      uint64_t position = 0;  // of the first
    };
    const auto& runs() const { return m_runs; }

   private:
    boost::container::small_vector<Run, 1> m_runs;
    uint64_t m_count = 0;
  };
  // Blocks that must come from a slot: neighbours in the slot and in the destination.
  struct SlotSlice {
    SlotAddress slot;
    uint32_t slot_block = 0;
    uint32_t count = 0;
    uint64_t block = 0;  // in the object
    const uint32_t* crc32c = nullptr;
    char* destination = nullptr;

    uint64_t file_offset() const { return slot.byte_offset() + uint64_t{slot_block} * kBlockBytes; }
    uint64_t bytes() const { return uint64_t{count} * kBlockBytes; }
  };

  // Blocks that are in memory: never changed, and shared.
  struct Found {
    uint64_t block = 0;  // in the object
    ceph::bufferptr bytes;
  };
  // A compressed blob that some of the blocks live in.
  struct BlobRead {
    std::shared_ptr<const CompressedBlob> blob;
    uint64_t block = 0;  // in the object: where what was compressed begins
    ceph::bufferptr stored;  // its stored blocks: what was in memory is there, what is missing is not yet
    std::vector<SlotSlice> missing;
    std::vector<std::pair<uint64_t, uint32_t>> wanted;  // of the object: first block and how many
  };
  using AllFound = boost::container::small_vector<Found, 1>;  // short reads are of one
  // Where the blocks of a read are; holes are nowhere.
  struct Whereabouts {
    MappedRuns runs;
    AllFound found;
    std::vector<SlotSlice> missing;
    std::vector<BlobRead> blobs;
  };
  // What a read does with the data cache. A scrub wants what the disk holds.
  struct Caching {
    bool look = true;
    bool keep = true;
    bool scan = false;  // keeps only what takes nothing else's room
  };
  static Caching caching(uint32_t op_flags, uint64_t length);
  int find(Onode& onode, const Touched& touched, Caching caching, Whereabouts* blocks);
  void find_run(const MappedRun& run, Caching caching, AllFound* found, std::vector<SlotSlice>* missing);
  // Those that runs live in, each once.
  static std::vector<BlobRead> blobs_of(const MappedRuns& runs);
  // Looks for stored blocks in memory. REQUIRES: read->stored has room for all.
  void find_stored(BlobRead* read, Caching caching);
  // Are all `count` of them in memory, in slices that can be handed out?
  static bool may_share(const AllFound& found, uint64_t count);
  // Puts all of them into `memory`.
  int gather(const Onode& onode, const Touched& touched, Caching caching, Whereabouts* blocks, ceph::bufferptr& memory);
  // Decompresses it, and puts those of the blocks that live in it where they belong in `destination`.
  int decompress(const Onode& onode, const Touched& touched, const BlobRead& read, char* destination);
  void keep(Caching caching, const SlotSlice& slice, const ceph::bufferptr& memory);
  int read_slices(const Onode& onode, const std::vector<SlotSlice>& slices);
  int verify(const Onode& onode, const SlotSlice& slice, const vtkv::Status& first_read);
  // Index of the first block that is damaged or does not match; slice.count when all are good.
  uint32_t first_bad_block(const SlotSlice& slice) const;

  StoreContext& m_store;
  StoreCube& m_cube;  // that the objects lie in
};

}  // namespace swimstore
