// SPDX-License-Identifier: LGPL-2.1-or-later
// What blocks of an object are stored as: pieces, as they are or compressed, one behind the other.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "common/perf_counters.h"
#include "include/buffer.h"

#include "swimstore/compression/compression.h"
#include "swimstore/container/container_set.h"

namespace swimstore {

struct StoredBlocks {
  struct Piece {
    uint64_t block = 0;  // in the object
    uint32_t count = 0;  // blocks of the object
    std::optional<CompressedBlob> blob;  // what they became; none: stored as they are
    uint32_t stored_at = 0;              // their first stored block, among those of all pieces
    boost::container::small_vector<SlotBlocks, 1> slots;  // that hold the stored blocks; a blob's own extents say so

    uint32_t stored_blocks() const;
  };

  boost::container::small_vector<Piece, 1> pieces;
  ceph::bufferlist data;       // stored blocks of all pieces
  std::vector<uint32_t> lost;  // those of them whose bytes are not what they should be, and can never be read

  // `data`: whole blocks, from `first` on.
  static StoredBlocks as_it_is(uint64_t first, ceph::bufferlist data);
  // Cut where extent shards end, and into blobs no longer than chosen; those that gain too little stay as they are.
  static StoredBlocks compressed(const BlobCodec& codec, const WriteCompression& how, uint64_t first,
                                 const ceph::bufferlist& data, PerfCounters& counters);
  // Tells each piece where it lies. `slots`: that `data` is written to, in order; `crc32c`: of its blocks.
  void lie_in(const std::vector<AllocatedSlot>& slots, const std::vector<uint32_t>& crc32c);
  // A blob of another object, whose shard begins at `shard_block` of this one.
  static StoredBlocks copy_of(uint64_t shard_block, const CompressedBlob& blob, ceph::bufferlist stored,
                              std::vector<uint32_t> lost);
};

}  // namespace swimstore
