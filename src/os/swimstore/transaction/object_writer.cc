// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/object_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "common/debug.h"
#include "include/rados.h"

#include "vtkv/util/crc32c.h"

#define dout_context m_plan.store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.write "

namespace swimstore {

namespace {

constexpr uint64_t kBlocksMax = uint64_t{1} << 20;  // of an object: no object reaches 4 GiB
constexpr unsigned kBuffersMax = 256;               // of one write: what the kernel takes at once
constexpr unsigned kUnreadableMost = 8;             // blocks of a copy, before the rest is not tried
constexpr uint64_t kKeptWriteBytesMax = 64 << 10;   // a longer one would push out much that is read again

constexpr uint32_t in_block(uint64_t offset) { return offset % kBlockBytes; }
constexpr uint64_t round_down(uint64_t offset) { return offset - in_block(offset); }
constexpr uint64_t round_up(uint64_t offset) { return blocks_for(offset) * kBlockBytes; }

// REQUIRES: aligned in size and memory.
std::vector<uint32_t> block_checksums(const ceph::bufferlist& data) {
  std::vector<uint32_t> checksums;
  checksums.reserve(data.length() / kBlockBytes);
  for (const ceph::bufferptr& buffer : data.buffers()) {
    for (uint32_t at = 0; at < buffer.length(); at += kBlockBytes) {
      checksums.push_back(vtkv::crc32c(buffer.c_str() + at, kBlockBytes));
    }
  }
  return checksums;
}

}  // namespace

int ObjectWriter::begin(Onode& onode) {
  TxnPlan::ChangedObject& changed = m_plan.changed[onode.change - 1];
  if (changed.counts_data) {
    return 0;
  }
  changed.counts_data = true;
  return tail_padding(onode, &changed.tail_padding);
}

int ObjectWriter::settle(TxnPlan::ChangedObject& changed) {
  if (!changed.counts_data) {
    return 0;
  }
  int r = rewrite_worn_blobs(changed);
  if (r < 0) {
    return r;
  }
  uint32_t padding = 0;
  r = tail_padding(*changed.onode, &padding);
  m_plan.usage.of(changed.pool).stored -= static_cast<int64_t>(padding) - changed.tail_padding;
  return r;
}

int ObjectWriter::tail_padding(Onode& onode, uint32_t* bytes) {
  *bytes = 0;
  const uint64_t size = onode.record.size;
  if (in_block(size) == 0) {
    return 0;
  }
  const int r = load(onode, block_of(size), 1);
  if (r == 0 && is_mapped(onode, block_of(size))) {
    *bytes = kBlockBytes - in_block(size);
  }
  return r;
}

int ObjectWriter::load(Onode& onode, uint64_t first, uint64_t count) {
  if (count == 0) {
    return 0;
  }
  const vtkv::Status status = m_plan.home.onodes.load_extents(
      onode, static_cast<uint32_t>(first / kShardBlocks), static_cast<uint32_t>((first + count - 1) / kShardBlocks));
  if (!status.ok()) {
    return m_plan.store.metadata_failure.met(m_plan.home.number, status, "the extents of object ", onode.oid);
  }
  return 0;
}

bool ObjectWriter::has_blobs(Onode& onode, uint64_t first, uint64_t count) {
  MappedRuns runs;
  onode.extents.resolve(first, count, &runs);
  return std::any_of(runs.begin(), runs.end(), [](const MappedRun& run) { return run.blob != nullptr; });
}

bool ObjectWriter::is_mapped(Onode& onode, uint64_t block) {
  return onode.extents.find_shard(static_cast<uint32_t>(block / kShardBlocks)).is_mapped(block % kShardBlocks);
}

int ObjectWriter::read_block(Onode& onode, uint64_t block, char* to) {
  if (!is_mapped(onode, block)) {
    std::memset(to, 0, kBlockBytes);
    return 0;
  }
  m_plan.store.counters.inc(l_swimstore_write_merge_reads);
  if (m_reader.read_block(onode, block, to) < 0) {
    m_plan.store.counters.inc(l_swimstore_read_errors);
    derr << "object " << onode.oid << " block " << block << " cannot be read to be merged with a write; it stays "
         << "unreadable until it is repaired or written as a whole" << dendl;
    std::memset(to, 0, kBlockBytes);
    m_unreadable.insert(block);
  }
  return 0;
}

int ObjectWriter::write(Onode& onode, uint64_t offset, ceph::bufferlist& data) {
  const uint64_t length = data.length();
  const uint64_t end = offset + length;
  int r = begin(onode);
  if (r < 0 || length == 0) {
    return r;
  }
  const uint64_t first = block_of(offset);
  const uint64_t count = blocks_for(end) - first;
  r = load(onode, first, count);
  if (r < 0) {
    return r;
  }
  m_plan.store.counters.inc(l_swimstore_write_bytes, length);
  if (in_block(offset) == 0 && in_block(end) == 0) {
    r = put_blocks(onode, first, data);
  } else {
    ceph::bufferlist blocks;
    auto from = data.cbegin();
    uint64_t at = round_down(offset);
    while (at < end) {
      if (at >= offset && at + kBlockBytes <= end) {
        ceph::bufferlist whole;
        const uint64_t bytes = round_down(end) - at;
        whole.substr_of(data, at - offset, bytes);
        blocks.claim_append(whole);
        from += bytes;
        at += bytes;
        continue;
      }
      ceph::bufferptr block(ceph::buffer::create_page_aligned(kBlockBytes));
      const uint32_t begin_byte = at < offset ? in_block(offset) : 0;
      const uint32_t bytes = std::min<uint64_t>(end - at, kBlockBytes) - begin_byte;
      // What lies past the old end is zero and need not be read.
      if (begin_byte > 0 || at + begin_byte + bytes < onode.record.size) {
        r = read_block(onode, block_of(at), block.c_str());
        if (r < 0) {
          return r;
        }
      } else {
        std::memset(block.c_str(), 0, kBlockBytes);
      }
      from.copy(bytes, block.c_str() + begin_byte);
      blocks.append(std::move(block));
      at += kBlockBytes;
    }
    // The next append begins with this write's last block.
    ceph::bufferptr last;
    if (in_block(end) != 0) {
      last = blocks.back();
    }
    r = put_blocks(onode, first, std::move(blocks));
    if (r == 0 && last.length() >= kBlockBytes && !worth_keeping(onode, count * kBlockBytes)) {
      keep_block(onode, block_of(end), last.c_str() + last.length() - kBlockBytes);
    }
  }
  onode.record.size = std::max(onode.record.size, end);
  return r;
}

int ObjectWriter::put_blocks(Onode& onode, uint64_t first, ceph::bufferlist data) {
  const uint64_t count = data.length() / kBlockBytes;
  std::vector<uint32_t> lost;
  for (const uint64_t block : std::exchange(m_unreadable, {})) {
    if (block >= first && block < first + count) {
      lost.push_back(static_cast<uint32_t>(block - first));
    }
  }
  // A single block gains nothing, and a lost one would take a whole blob with it.
  const auto how = count > 1 && lost.empty()
                       ? m_plan.store.compression.of_write(pool(onode), onode.record.alloc_hint_flags)
                       : std::nullopt;
  StoredBlocks stored =
      how ? StoredBlocks::compressed(m_plan.store.compression.codec(), *how, first, data, m_plan.store.counters)
          : StoredBlocks::as_it_is(first, std::move(data));
  stored.lost = std::move(lost);
  return store(onode, first, count, std::move(stored));
}

int ObjectWriter::store(Onode& onode, uint64_t first, uint64_t count, StoredBlocks stored) {
  StoreContext& store = m_plan.store;
  ceph::bufferlist& data = stored.data;
  if (!data.is_aligned_size_and_memory(kBlockBytes, kBlockBytes) || data.get_num_buffers() > kBuffersMax) {
    data.rebuild_aligned_size_and_memory(kBlockBytes, kBlockBytes, kBuffersMax);
  }
  std::vector<uint32_t> crcs = block_checksums(data);
  std::vector<AllocatedSlot> slots;
  const vtkv::Status status = m_plan.home.containers().allocate(data.length(), &slots);
  if (!status.ok()) {
    derr << "no space for " << data.length() << " bytes of object " << onode.oid << ": " << status.to_string() << dendl;
    return status.is_no_space() ? -ENOSPC : -EIO;
  }
  punch(onode, first, count);
  if (slots.size() > 1) {
    store.counters.inc(l_swimstore_write_split);
  }
  const int64_t pool_number = pool(onode);
  const bool keep = worth_keeping(onode, data.length()) && stored.lost.empty();
  uint32_t done = 0;  // blocks
  for (const AllocatedSlot& slot : slots) {
    const uint32_t blocks = slot.bytes / kBlockBytes;
    uint32_t crc = crcs[done];
    for (uint32_t i = 1; i < blocks; ++i) {
      crc = vtkv::crc32c_combine(crc, crcs[done + i], kBlockBytes);
    }
    m_plan.home.data.forget(slot.address, 0, blocks);  // of the slot's life before
    ceph::bufferlist slice;
    slice.substr_of(data, uint64_t{done} * kBlockBytes, slot.bytes);
    m_plan.txn.write_slot(slot, std::move(slice), crc, keep ? &crcs[done] : nullptr);
    m_plan.slots.allocated(slot.address, blocks, pool_number);
    done += blocks;
  }
  for (const uint32_t block : stored.lost) {
    crcs[block] = ~crcs[block];
  }
  stored.lie_in(slots, crcs);
  for (StoredBlocks::Piece& piece : stored.pieces) {
    if (piece.blob) {
      insert_blob(onode, static_cast<uint32_t>(piece.block / kShardBlocks), std::move(*piece.blob));
      continue;
    }
    done = 0;
    for (const SlotBlocks& blocks : piece.slots) {
      onode.extents.insert(piece.block + done, blocks.count, blocks.slot, blocks.first, blocks.written, false,
                           &crcs[piece.stored_at + done]);
      done += blocks.count;
    }
    m_plan.usage.of(pool_number).stored += int64_t{piece.count} * kBlockBytes;
  }
  return 0;
}

// The OSD's bench writes memory to the OSD's own collection that it frees after the commit.
bool ObjectWriter::worth_keeping(const Onode& onode, uint64_t bytes) const {
  constexpr uint32_t kNotAgain = CEPH_OSD_OP_FLAG_FADVISE_DONTNEED | CEPH_OSD_OP_FLAG_FADVISE_NOCACHE;
  const bool is_of_a_group = pool(onode) >= 0;
  return is_of_a_group && bytes <= kKeptWriteBytesMax && (m_plan.fadvise_flags & kNotAgain) == 0;
}

void ObjectWriter::keep_block(Onode& onode, uint64_t block, const char* bytes) {
  MappedRuns runs;
  onode.extents.resolve(block, 1, &runs);
  if (runs.front().blob) {
    return;  // the cache holds stored blocks
  }
  const uint32_t crc = vtkv::crc32c(bytes, kBlockBytes);
  if (crc == runs.front().crc32c.front()) {  // not a lost one
    m_plan.home.data.add(runs.front().slot, runs.front().slot_block,
                         ceph::buffer::ptr(ceph::buffer::copy(bytes, kBlockBytes)), &crc);
  }
}

void ObjectWriter::punch(Onode& onode, uint64_t first, uint64_t count) {
  Unmapped unmapped;
  onode.extents.punch(first, count, &unmapped);
  const int64_t pool_number = pool(onode);
  for (const Extent& extent : unmapped.extents) {
    m_plan.slots.released(extent, pool_number);
    m_plan.usage.of(pool_number).stored -= int64_t{extent.count} * kBlockBytes;
  }
  auto& worn = m_plan.changed[onode.change - 1].worn_shards;
  worn.insert(worn.end(), unmapped.worn_shards.begin(), unmapped.worn_shards.end());
  if (unmapped.blob_blocks == 0) {
    return;
  }
  PoolUsage& usage = m_plan.usage.of(pool_number);
  usage.stored -= static_cast<int64_t>(unmapped.blob_blocks) * kBlockBytes;
  usage.compressed_original -= static_cast<int64_t>(unmapped.blob_blocks) * kBlockBytes;
  for (const CompressedBlob& blob : unmapped.blobs) {
    for (const Extent& extent : blob.extents) {
      m_plan.slots.released(extent, pool_number);
    }
    count_blob(pool_number, blob, -1);
  }
}

int ObjectWriter::zero_in_block(Onode& onode, uint64_t block, uint32_t from, uint32_t to) {
  const int r = load(onode, block, 1);
  if (r < 0 || from == to || !is_mapped(onode, block)) {
    return r;
  }
  ceph::bufferptr bytes(ceph::buffer::create_page_aligned(kBlockBytes));
  read_block(onode, block, bytes.c_str());
  std::memset(bytes.c_str() + from, 0, to - from);
  ceph::bufferlist data;
  data.append(std::move(bytes));
  return put_blocks(onode, block, std::move(data));
}

int ObjectWriter::zero(Onode& onode, uint64_t offset, uint64_t length) {
  int r = begin(onode);
  if (r < 0 || length == 0) {
    return r;
  }
  const uint64_t size = onode.record.size;
  const uint64_t end = std::min(offset + length, size);
  onode.record.size = std::max(size, offset + length);
  if (offset >= end) {
    return 0;
  }
  // Past the end there is nothing in the last block, so it goes as a whole.
  const uint64_t end_block = end == size ? blocks_for(end) : block_of(end);
  const uint64_t first = blocks_for(offset);
  if (in_block(offset) != 0) {
    const uint64_t to = end == size ? kBlockBytes : end - round_down(offset);
    r = zero_in_block(onode, block_of(offset), in_block(offset), std::min<uint64_t>(to, kBlockBytes));
  }
  if (r == 0 && in_block(end) != 0 && end_block == block_of(end) && end_block >= first) {
    r = zero_in_block(onode, end_block, 0, in_block(end));
  }
  if (r == 0 && first < end_block) {
    r = load(onode, first, end_block - first);
    if (r == 0) {
      punch(onode, first, end_block - first);
    }
  }
  return r;
}

int ObjectWriter::truncate(Onode& onode, uint64_t size) {
  int r = begin(onode);
  if (r < 0) {
    return r;
  }
  if (size < onode.record.size) {
    const uint64_t first = blocks_for(size);
    const uint64_t end = blocks_for(onode.record.size);
    r = load(onode, first, end - first);
    if (r == 0) {
      punch(onode, first, end - first);
      r = in_block(size) == 0 ? 0 : zero_in_block(onode, block_of(size), in_block(size), kBlockBytes);
    }
  }
  onode.record.size = size;
  return r;
}

int ObjectWriter::clone_range(Onode& source, Onode& target, uint64_t source_offset, uint64_t length,
                              uint64_t target_offset) {
  int r = begin(source);
  if (r == 0) {
    r = begin(target);
  }
  if (r < 0 || length == 0) {
    return r;
  }
  const uint64_t source_end = source_offset + length;
  const uint64_t first = round_up(source_offset);
  // A last block that both objects end in is shared as a whole: what follows in it is zero in both.
  const bool to_the_end = source_end == source.record.size && target_offset + length >= target.record.size;
  const uint64_t end = to_the_end ? round_up(source_end) : round_down(source_end);
  // Objects that a split could part share nothing: slots are safe under the lock of one collection.
  const bool may_part = source.oid.hobj.get_hash() != target.oid.hobj.get_hash();
  if (may_part || &source == &target || in_block(source_offset) != in_block(target_offset) || first >= end) {
    return copy(source, target, source_offset, length, target_offset);
  }
  // A blob stays where it is in a shard. One copy of all: what was promised is room for one write.
  if (!is_same_in_shard(source_offset, target_offset)) {
    r = load(source, block_of(first), block_of(end - first));
    if (r < 0 || has_blobs(source, block_of(first), block_of(end - first))) {
      return r < 0 ? r : copy(source, target, source_offset, length, target_offset);
    }
  }
  r = zero(target, target_offset, length);
  if (r == 0) {
    r = load(target, block_of(target_offset), blocks_for(target_offset + length) - block_of(target_offset));
  }
  if (r == 0) {
    r = copy(source, target, source_offset, first - source_offset, target_offset);
  }
  if (r == 0) {
    r = share(source, block_of(first), block_of(end - first), target,
              block_of(target_offset + (first - source_offset)));
  }
  if (r == 0 && end < source_end) {
    r = copy(source, target, end, source_end - end, target_offset + (end - source_offset));
  }
  return r;
}

int ObjectWriter::copy(Onode& source, Onode& target, uint64_t source_offset, uint64_t length, uint64_t target_offset) {
  if (length == 0) {
    return 0;
  }
  ceph::bufferlist data;
  if (const int r = m_reader.read(source, source_offset, length, 0, &data); r < 0) {
    m_plan.store.counters.inc(l_swimstore_read_errors, r == -E2BIG ? 0 : 1);
    data.clear();
    read_by_blocks(source, source_offset, length, target, target_offset, &data);
  }
  return write(target, target_offset, data);
}

// Only blocks of the target that get bytes of an unreadable one are lost. A disk may take seconds to say of each that
// it cannot be read, and the collection is locked: behind the first few the rest is taken for unreadable, too.
void ObjectWriter::read_by_blocks(Onode& source, uint64_t source_offset, uint64_t length, const Onode& target,
                                  uint64_t target_offset, ceph::bufferlist* data) {
  unsigned failed = 0;
  for (uint64_t done = 0, bytes = 0; done < length; done += bytes) {
    bytes = std::min<uint64_t>(length - done, kBlockBytes - in_block(target_offset + done));
    ceph::bufferlist piece;
    if (failed >= kUnreadableMost || m_reader.read(source, source_offset + done, bytes, 0, &piece) < 0) {
      ++failed;
      derr << "object " << source.oid << " cannot be read at " << source_offset + done << "~" << bytes
           << " to be copied to " << target.oid << ", which stays unreadable there until it is repaired" << dendl;
      piece.clear();
      piece.append_zero(bytes);
      m_unreadable.insert(block_of(target_offset + done));
    }
    data->claim_append(piece);
  }
}

int ObjectWriter::share(Onode& source, uint64_t source_block, uint64_t count, Onode& target, uint64_t target_block) {
  const int r = load(source, source_block, count);
  if (r < 0) {
    return r;
  }
  source.extents.share(source_block, count);
  MappedRuns runs;
  source.extents.resolve(source_block, count, &runs);
  const int64_t pool_number = pool(target);
  MappedRuns in_blobs;
  for (MappedRun& run : runs) {
    if (run.blob) {
      in_blobs.push_back(std::move(run));
      continue;
    }
    m_plan.slots.shared({run.slot, run.slot_block, run.count, run.slot_written_blocks}, pool_number);
    target.extents.insert(target_block + (run.block - source_block), run.count, run.slot, run.slot_block,
                          run.slot_written_blocks, true, run.crc32c.data());
    m_plan.usage.of(pool_number).stored += int64_t{run.count} * kBlockBytes;
  }
  share_blobs(in_blobs, target, static_cast<int64_t>(target_block - source_block));
  return 0;
}

int ObjectWriter::copy_in(Onode& onode, uint64_t first, ceph::bufferlist blocks, const std::vector<uint64_t>& lost) {
  const uint64_t count = blocks.length() / kBlockBytes;
  int r = begin(onode);
  if (r == 0) {
    r = load(onode, first, count);
  }
  if (r < 0) {
    return r;
  }
  StoredBlocks stored = StoredBlocks::as_it_is(first, std::move(blocks));
  for (const uint64_t block : lost) {
    stored.lost.push_back(static_cast<uint32_t>(block - first));
  }
  return store(onode, first, count, std::move(stored));
}

int ObjectWriter::refer(Onode& onode, uint64_t first, const SlotBlocks& blocks, const uint32_t* crc32c) {
  int r = begin(onode);
  if (r == 0) {
    r = load(onode, first, blocks.count);
  }
  if (r < 0) {
    return r;
  }
  const int64_t pool_number = pool(onode);
  m_plan.slots.shared(blocks, pool_number);
  onode.extents.insert(first, blocks.count, blocks.slot, blocks.first, blocks.written, true, crc32c);
  m_plan.usage.of(pool_number).stored += int64_t{blocks.count} * kBlockBytes;
  return 0;
}

int ObjectWriter::remove(Onode& onode) {
  int r = begin(onode);
  if (r < 0) {
    return r;
  }
  const vtkv::Status status = m_plan.home.onodes.load_all_extents(onode);
  if (!status.ok()) {
    return m_plan.store.metadata_failure.met(m_plan.home.number, status, "the extents of object ", onode.oid);
  }
  punch(onode, 0, kBlocksMax);
  if (!onode.record.test(OnodeRecord::shard_inline)) {
    m_plan.batch().remove_range(extent_key(onode.record.nid, 0), extent_range_end(onode.record.nid));
  }
  onode.extents.clear();
  onode.record.size = 0;
  return 0;
}

}  // namespace swimstore
