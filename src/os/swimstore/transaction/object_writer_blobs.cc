// SPDX-License-Identifier: LGPL-2.1-or-later
// What ObjectWriter does with compressed data that exists: counts it, shares it, copies it as it is stored, and writes
// anew what no longer gains.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "swimstore/container/best_fit.h"
#include "swimstore/transaction/object_writer.h"

namespace swimstore {

void ObjectWriter::insert_blob(Onode& onode, uint32_t shard, CompressedBlob blob) {
  const int64_t pool_number = pool(onode);
  const int64_t bytes = int64_t{blob.live_blocks()} * kBlockBytes;
  m_plan.usage.of(pool_number).stored += bytes;
  m_plan.usage.of(pool_number).compressed_original += bytes;
  count_blob(pool_number, blob, 1);
  onode.extents.insert_blob(shard, std::move(blob));
}

void ObjectWriter::count_blob(int64_t pool, const CompressedBlob& blob, int64_t sign) {
  PoolUsage& usage = m_plan.usage.of(pool);
  usage.compressed += sign * blob.bytes;
  usage.compressed_allocated += sign * int64_t{blob.stored_blocks()} * kBlockBytes;
}

// What lives in a worn blob is written as it is, unless a clone needs the blob: then each write to the shard asks the
// tree again. Skipped when little space is free, and when the blob cannot be read; a reader will report that.
int ObjectWriter::rewrite_worn_blobs(TxnPlan::ChangedObject& changed) {
  Onode& onode = *changed.onode;
  std::vector<uint32_t> shards = std::exchange(changed.worn_shards, {});
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  for (const uint32_t shard : shards) {
    for (const CompressedBlob& blob : onode.extents.blobs(shard, true)) {
      bool gains = true;
      for (size_t i = 0; i < blob.extents.size() && blob.is_shared() && gains; ++i) {
        const vtkv::Status status = m_plan.slots.has_one_reference(m_plan.database(), blob.extents[i].blocks(), &gains);
        if (!status.ok()) {
          return m_plan.store.metadata_failure.met(m_plan.home.number, status, "the slots of object ", onode.oid);
        }
      }
      if (const int r = gains ? rewrite(onode, uint64_t{shard} * kShardBlocks, blob) : 0; r < 0) {
        return r;
      }
    }
  }
  return 0;
}

int ObjectWriter::rewrite(Onode& onode, uint64_t shard_block, const CompressedBlob& blob) {
  const uint64_t first = std::countr_zero(blob.live), end = std::bit_width(blob.live);
  uint64_t promised_bytes = 0;
  CompressedBlob::for_each_run(
      blob.live, [&](uint32_t, uint32_t count) { promised_bytes += most_slot_bytes(uint64_t{count} * kBlockBytes); });
  if (!m_plan.home.containers().promise_spare(promised_bytes)) {
    return 0;
  }
  ceph::bufferlist data;
  int r = m_reader.read(onode, (shard_block + first) * kBlockBytes, (end - first) * kBlockBytes, 0, &data);
  if (r < 0) {
    m_plan.home.containers().give_back(promised_bytes);
    return 0;
  }
  CompressedBlob::for_each_run(blob.live, [&](uint32_t from, uint32_t count) {
    ceph::bufferlist blocks;
    blocks.substr_of(data, (from - first) * kBlockBytes, uint64_t{count} * kBlockBytes);
    if (r == 0) {
      r = store(onode, shard_block + from, count, StoredBlocks::as_it_is(shard_block + from, std::move(blocks)));
    }
  });
  m_plan.home.containers().give_back(promised_bytes);
  return r;
}

// `shift`: whole shards.
void ObjectWriter::share_blobs(std::span<const MappedRun> runs, Onode& target, int64_t shift) {
  struct Shared {
    std::shared_ptr<const CompressedBlob> of;
    uint32_t shard = 0;
    CompressedBlob blob;
  };
  std::vector<Shared> shared;
  for (const MappedRun& run : runs) {
    auto found = std::find_if(shared.rbegin(), shared.rend(), [&](const Shared& one) { return one.of == run.blob; });
    if (found == shared.rend()) {
      shared.push_back({run.blob, static_cast<uint32_t>((run.block + shift) / kShardBlocks), *run.blob});
      shared.back().blob.live = 0;
      found = shared.rbegin();
    }
    const auto in_shard = static_cast<uint32_t>(run.block % kShardBlocks);
    found->blob.live |= block_bits(in_shard, in_shard + run.count);
  }
  for (Shared& one : shared) {
    refer_to_blob(target, one.shard, std::move(one.blob));
  }
}

void ObjectWriter::refer_to_blob(Onode& onode, uint32_t shard, CompressedBlob blob) {
  for (const Extent& extent : blob.extents) {
    m_plan.slots.shared(extent.blocks(), pool(onode));
  }
  insert_blob(onode, shard, std::move(blob));
}

int ObjectWriter::copy_in_blob(Onode& onode, uint32_t shard, const CompressedBlob& blob, ceph::bufferlist stored,
                               std::vector<uint32_t> lost) {
  const uint64_t shard_block = uint64_t{shard} * kShardBlocks;
  int r = begin(onode);
  if (r == 0) {
    r = load(onode, shard_block, kShardBlocks);
  }
  return r < 0 ? r
               : store(onode, shard_block, 0,
                       StoredBlocks::copy_of(shard_block, blob, std::move(stored), std::move(lost)));
}

int ObjectWriter::refer_to_copied(Onode& onode, uint32_t shard, CompressedBlob blob) {
  int r = begin(onode);
  if (r == 0) {
    r = load(onode, uint64_t{shard} * kShardBlocks, kShardBlocks);
  }
  if (r == 0) {
    refer_to_blob(onode, shard, std::move(blob));
  }
  return r;
}

}  // namespace swimstore
