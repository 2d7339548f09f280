// SPDX-License-Identifier: LGPL-2.1-or-later
// Changes of an object's data, as part of a transaction.
//
// Nothing live is overwritten: new blocks go to free slots, and the old ones' references end. Bytes past the
// object's size in its last block are zero, always.
//
// Results: 0, -EIO (the tree or the extents cannot be read), -ENOSPC (no slot left in spite of the reserve).
// A block that cannot be read to be merged with an unaligned write does not fail the write: the block keeps a
// checksum that matches nothing, so its reads give -EIO and the OSD repairs it from a replica.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "include/buffer.h"

#include "swimstore/compression/stored_blocks.h"
#include "swimstore/object/block_reader.h"
#include "swimstore/transaction/txn_plan.h"

namespace swimstore {

class ObjectWriter {
 public:
  explicit ObjectWriter(TxnPlan& plan) : m_plan(plan), m_reader(plan.store, plan.home) {}

  int write(Onode& onode, uint64_t offset, ceph::bufferlist& data);
  int zero(Onode& onode, uint64_t offset, uint64_t length);
  int truncate(Onode& onode, uint64_t size);
  // REQUIRES: source_offset + length <= source's size.
  int clone_range(Onode& source, Onode& target, uint64_t source_offset, uint64_t length, uint64_t target_offset);
  // All of the data ends, and the extent keys too.
  int remove(Onode& onode);
  // Counts what the changes to an object's data mean for its pool. Once per changed object, at the end.
  int settle(TxnPlan::ChangedObject& changed);
  // Whole blocks that are stored as they are, from `first` on, in the place of what is there: of another copy of the
  // object, or its own. `lost`: those of them that could not be read.
  int copy_in(Onode& onode, uint64_t first, ceph::bufferlist blocks, const std::vector<uint64_t>& lost);
  // A compressed blob of another copy, as it is stored. `lost`: the stored blocks of it that could not be read.
  // REQUIRES: its live blocks are holes.
  int copy_in_blob(Onode& onode, uint32_t shard, const CompressedBlob& blob, ceph::bufferlist stored,
                   std::vector<uint32_t> lost);
  // The same blob as somebody else's. REQUIRES: its live blocks are holes; the flag of all that refer to it is set.
  int refer_to_copied(Onode& onode, uint32_t shard, CompressedBlob blob);
  // The same blocks as somebody else's. REQUIRES: the flag of all that refer to them is set.
  int refer(Onode& onode, uint64_t first, const SlotBlocks& blocks, const uint32_t* crc32c);
  // Bytes of the object's last block that lie past its end.
  int tail_padding(Onode& onode, uint32_t* bytes);

 private:
  // Called before the first change of the object's data.
  int begin(Onode& onode);
  int load(Onode& onode, uint64_t first, uint64_t count);
  int64_t pool(const Onode& onode) const { return m_plan.changed[onode.change - 1].pool; }

  // Maps blocks from `first` on to new slots that get `data` (whole blocks), compressed where that is asked for and
  // gains enough.
  int put_blocks(Onode& onode, uint64_t first, ceph::bufferlist data);
  // Unmaps `count` blocks from `first` on, and maps what is stored.
  int store(Onode& onode, uint64_t first, uint64_t count, StoredBlocks stored);
  void insert_blob(Onode& onode, uint32_t shard, CompressedBlob blob);
  void count_blob(int64_t pool, const CompressedBlob& blob, int64_t sign);
  int rewrite_worn_blobs(TxnPlan::ChangedObject& changed);
  int rewrite(Onode& onode, uint64_t shard_block, const CompressedBlob& blob);
  // May the data cache keep the memory of what is written, and is that likely to be read soon?
  bool worth_keeping(const Onode& onode, uint64_t bytes) const;
  void keep_block(Onode& onode, uint64_t block, const char* bytes);
  void punch(Onode& onode, uint64_t first, uint64_t count);
  // The block as it is, in *to (kBlockBytes); zeros where there is none.
  int read_block(Onode& onode, uint64_t block, char* to);
  // Of these blocks, which are loaded, some live in compressed blobs.
  bool has_blobs(Onode& onode, uint64_t first, uint64_t count);
  bool is_mapped(Onode& onode, uint64_t block);
  // Bytes [from, to) of a block become zero.
  int zero_in_block(Onode& onode, uint64_t block, uint32_t from, uint32_t to);
  int copy(Onode& source, Onode& target, uint64_t source_offset, uint64_t length, uint64_t target_offset);
  void read_by_blocks(Onode& source, uint64_t source_offset, uint64_t length, const Onode& target,
                      uint64_t target_offset, ceph::bufferlist* data);
  // REQUIRES: target's blocks are holes.
  int share(Onode& source, uint64_t source_block, uint64_t count, Onode& target, uint64_t target_block);

  void share_blobs(std::span<const MappedRun> runs, Onode& target, int64_t shift);
  void refer_to_blob(Onode& onode, uint32_t shard, CompressedBlob blob);

  TxnPlan& m_plan;
  BlockReader m_reader;
  // Blocks of the write under way whose old bytes are lost. A set, because the mark is an inverted checksum: inverted
  // twice, it would be none.
  std::set<uint64_t> m_unreadable;
};

}  // namespace swimstore
