// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/compression/stored_blocks.h"

#include <algorithm>

#include "common/ceph_time.h"

#include "swimstore/ops/perf_counters.h"

namespace swimstore {

uint32_t StoredBlocks::Piece::stored_blocks() const {
  return blob ? static_cast<uint32_t>(blocks_for(blob->bytes)) : count;
}

StoredBlocks StoredBlocks::as_it_is(uint64_t first, ceph::bufferlist data) {
  StoredBlocks stored;
  stored.pieces.push_back({first, static_cast<uint32_t>(data.length() / kBlockBytes), {}, 0, {}});
  stored.data = std::move(data);
  return stored;
}

StoredBlocks StoredBlocks::compressed(const BlobCodec& codec, const WriteCompression& how, uint64_t first,
                                      const ceph::bufferlist& data, PerfCounters& counters) {
  const uint64_t end = first + data.length() / kBlockBytes;
  StoredBlocks stored;
  uint32_t count = 0;
  for (uint64_t block = first; block < end; block += count) {
    const uint64_t shard_end = (block / kShardBlocks + 1) * kShardBlocks;
    count = static_cast<uint32_t>(std::min({end - block, shard_end - block, uint64_t{how.blob_blocks}}));
    ceph::bufferlist blocks;
    blocks.substr_of(data, (block - first) * kBlockBytes, uint64_t{count} * kBlockBytes);
    CompressedBlob blob;
    if (count > 1) {
      const auto began = ceph::mono_clock::now();
      const bool gains = codec.compress(how.algorithm, how.required_ratio, blocks, &stored.data, &blob);
      counters.tinc(l_swimstore_compress_latency, ceph::mono_clock::now() - began);
      counters.inc(l_swimstore_incompressible, !gains);
      if (gains) {
        blob.block = static_cast<uint8_t>(block % kShardBlocks);
        blob.live = block_bits(blob.block, blob.block + count);
        stored.pieces.push_back({block, count, std::move(blob), 0, {}});
        continue;
      }
    }
    stored.data.claim_append(blocks);
    if (!stored.pieces.empty() && !stored.pieces.back().blob) {
      stored.pieces.back().count += count;
    } else {
      stored.pieces.push_back({block, count, {}, 0, {}});
    }
  }
  return stored;
}

// Neither pieces nor slots end where the others do.
void StoredBlocks::lie_in(const std::vector<AllocatedSlot>& into, const std::vector<uint32_t>& crc32c) {
  auto slot = into.begin();
  uint32_t slot_block = 0, done = 0;
  for (Piece& piece : pieces) {
    piece.stored_at = done;
    const uint32_t stored_blocks = piece.stored_blocks();
    for (uint32_t at = 0; at < stored_blocks;) {
      const uint32_t written = slot->bytes / kBlockBytes;
      const uint32_t count = std::min(stored_blocks - at, written - slot_block);
      if (piece.blob) {
        piece.blob->extents.push_back(
            {static_cast<uint8_t>(at), static_cast<uint8_t>(count), false, slot->address, slot_block, written});
      } else {
        piece.slots.push_back({slot->address, slot_block, count, written});
      }
      at += count;
      slot_block += count;
      if (slot_block == written) {
        ++slot;
        slot_block = 0;
      }
    }
    if (piece.blob) {
      piece.blob->crc32c.assign(crc32c.begin() + done, crc32c.begin() + done + stored_blocks);
    }
    done += stored_blocks;
  }
}

StoredBlocks StoredBlocks::copy_of(uint64_t shard_block, const CompressedBlob& blob, ceph::bufferlist stored,
                                   std::vector<uint32_t> lost) {
  StoredBlocks copy;
  Piece& piece = copy.pieces.emplace_back();
  piece.block = shard_block + blob.block;
  piece.count = blob.count;
  piece.blob = blob;
  piece.blob->extents.clear();
  piece.blob->crc32c.clear();
  copy.data = std::move(stored);
  copy.lost = std::move(lost);
  return copy;
}

}  // namespace swimstore
