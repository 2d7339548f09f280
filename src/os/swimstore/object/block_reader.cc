// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/block_reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "common/debug.h"
#include "include/buffer_raw.h"
#include "include/rados.h"

#include "vtkv/env/read_all.h"
#include "vtkv/util/crc32c.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.read "

namespace swimstore {

namespace {

// A longer read is taken for a scan, which would only push out what is read again.
constexpr uint64_t kShortReadBytesMax = 128 << 10;
constexpr uint64_t kSharedBytesMin = 16 << 10;  // of a buffer in the cache, in the mean

// Blocks that were lost before they were written keep a checksum that matches nothing, in flight too.
bool matches(const MappedRun& run, const char* blocks) {
  for (uint32_t i = 0; i < run.count; ++i) {
    if (vtkv::crc32c(blocks + uint64_t{i} * kBlockBytes, kBlockBytes) != run.crc32c[i]) {
      return false;
    }
  }
  return true;
}

// The messenger sends a checksum of what was read, and the OSD compares it with the object's digest: both find it at
// the buffer instead of computing it once more. So it is that of what was written, all the way to the client.
void tell_checksum(const MappedRuns& runs, uint64_t count, ceph::buffer::raw* raw) {
  uint32_t crc = 0;
  for (const MappedRun& run : runs) {
    if (run.blob) {
      return;  // nobody has the checksums of what was compressed
    }
    for (const uint32_t block_crc : run.crc32c) {
      crc = vtkv::crc32c_combine(crc, block_crc, kBlockBytes);
    }
    count -= run.count;
  }
  if (count == 0) {  // no holes
    // Ceph inverts neither what its checksums start with nor their result.
    raw->set_crc({0, raw->get_len()}, {~uint32_t{0}, ~crc});
  }
}

}  // namespace

BlockReader::Caching BlockReader::caching(uint32_t op_flags, uint64_t length) {
  constexpr uint32_t kNotAgain = CEPH_OSD_OP_FLAG_FADVISE_DONTNEED | CEPH_OSD_OP_FLAG_FADVISE_NOCACHE;
  const bool is_short = length <= kShortReadBytesMax || (op_flags & CEPH_OSD_OP_FLAG_FADVISE_WILLNEED);
  return {
      .look = !(op_flags & CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE), .keep = !(op_flags & kNotAgain), .scan = !is_short};
}

BlockReader::Touched::Touched(std::span<const ByteRange> ranges) {
  for (const ByteRange& range : ranges) {
    const uint64_t first = block_of(range.offset);
    if (m_runs.empty() || first > m_runs.back().end) {
      m_runs.push_back({first, first, m_count});
    }
    const uint64_t end = blocks_for(range.offset + range.length);
    m_count += end - std::exchange(m_runs.back().end, end);
  }
}

uint64_t BlockReader::Touched::position(uint64_t block) const {
  const auto after = std::upper_bound(m_runs.begin(), m_runs.end(), block,
                                      [](uint64_t wanted, const Run& run) { return wanted < run.first; });
  const Run& run = *std::prev(after);
  return run.position + (block - run.first);
}

int BlockReader::read(Onode& onode, uint64_t offset, uint64_t length, uint32_t op_flags, ceph::bufferlist* out) {
  const ByteRange range{offset, length};
  return read(onode, {&range, 1}, op_flags, out);
}

int BlockReader::read(Onode& onode, std::span<const ByteRange> ranges, uint32_t op_flags, ceph::bufferlist* out) {
  uint64_t length = 0;
  for (const ByteRange& range : ranges) {
    length += range.length;
  }
  if (length == 0) {
    return 0;
  }
  const Touched touched(ranges);
  const uint64_t count = touched.count();
  if (count > kReadBytesMax / kBlockBytes) {
    return -E2BIG;
  }
  const Caching how = caching(op_flags, length);
  Whereabouts blocks;
  int r = find(onode, touched, how, &blocks);
  if (r < 0) {
    return r;
  }
  ceph::bufferlist whole;
  if (may_share(blocks.found, count)) {
    for (const Found& found : blocks.found) {
      whole.append(found.bytes);
    }
  } else {
    auto memory = ceph::buffer::create_page_aligned(count * kBlockBytes);
    ceph::buffer::raw& raw = *memory;
    ceph::bufferptr bytes(std::move(memory));
    r = gather(onode, touched, how, &blocks, bytes);
    if (r < 0) {
      return r;
    }
    if (length == count * kBlockBytes) {
      tell_checksum(blocks.runs, count, &raw);
    }
    whole.append(std::move(bytes));
  }
  if (length == whole.length()) {
    out->claim_append(whole);
    return 0;
  }
  auto at = whole.cbegin();
  for (const ByteRange& range : ranges) {
    const uint64_t begin = touched.position(block_of(range.offset)) * kBlockBytes + range.offset % kBlockBytes;
    at += static_cast<unsigned>(begin) - at.get_off();
    at.copy(range.length, *out);  // shares the memory
  }
  return 0;
}

int BlockReader::read_block(Onode& onode, uint64_t block, char* destination) {
  ceph::bufferlist bytes;
  const int r = read(onode, block * kBlockBytes, kBlockBytes, 0, &bytes);
  if (r == 0) {
    bytes.begin().copy(kBlockBytes, destination);
  }
  return r;
}

int BlockReader::find(Onode& onode, const Touched& touched, Caching caching, Whereabouts* blocks) {
  for (const Touched::Run& run : touched.runs()) {
    const vtkv::Status status = m_cube.onodes.load_extents(onode, static_cast<uint32_t>(run.first / kShardBlocks),
                                                           static_cast<uint32_t>((run.end - 1) / kShardBlocks));
    if (!status.ok()) {
      return m_store.metadata_failure.met(m_cube.number, status, "the extents of object ", onode.oid);
    }
    onode.extents.resolve(run.first, run.end - run.first, &blocks->runs);
  }
  for (const MappedRun& run : blocks->runs) {
    if (!run.blob) {
      find_run(run, caching, &blocks->found, &blocks->missing);
    }
  }
  blocks->blobs = blobs_of(blocks->runs);
  for (BlobRead& read : blocks->blobs) {
    find_stored(&read, caching);
  }
  return 0;
}

std::vector<BlockReader::BlobRead> BlockReader::blobs_of(const MappedRuns& runs) {
  std::vector<BlobRead> blobs;
  uint64_t stored_blocks = 0;
  for (const MappedRun& run : runs) {
    if (!run.blob) {
      continue;
    }
    const uint64_t shard_block = run.block / kShardBlocks * kShardBlocks;
    auto found = blobs.rbegin();  // runs of one shard follow one another
    while (found != blobs.rend() && found->block >= shard_block && *found->blob != *run.blob) {
      ++found;
    }
    if (found == blobs.rend() || found->block < shard_block) {
      BlobRead& read = blobs.emplace_back();
      read.blob = run.blob;
      read.block = shard_block + run.blob->block;
      stored_blocks += run.blob->stored_blocks();
      found = blobs.rbegin();
    }
    found->wanted.emplace_back(run.block, run.count);
  }
  if (blobs.empty()) {
    return blobs;
  }
  // One memory for all: what lies side by side in a slot, as after one write, is one request.
  const ceph::bufferptr memory(ceph::buffer::create_page_aligned(stored_blocks * kBlockBytes));
  uint64_t done = 0;
  for (BlobRead& read : blobs) {
    const uint64_t bytes = uint64_t{read.blob->stored_blocks()} * kBlockBytes;
    read.stored = ceph::bufferptr(memory, done, bytes);
    done += bytes;
  }
  return blobs;
}

// The cache holds stored blocks: more of them fit into it.
void BlockReader::find_stored(BlobRead* read, Caching caching) {
  const CompressedBlob& blob = *read->blob;
  AllFound found;
  for (const Extent& extent : blob.extents) {
    const uint32_t* const crcs = &blob.crc32c[extent.block];
    find_run({extent.block,
              extent.count,
              extent.slot,
              extent.slot_block,
              extent.slot_written_blocks,
              {crcs, crcs + extent.count},
              nullptr},
             caching, &found, &read->missing);
  }
  for (const Found& blocks : found) {
    std::memcpy(read->stored.c_str() + blocks.block * kBlockBytes, blocks.bytes.c_str(), blocks.bytes.length());
  }
  for (SlotSlice& slice : read->missing) {
    slice.destination = read->stored.c_str() + slice.block * kBlockBytes;
    slice.crc32c = &blob.crc32c[slice.block];
    slice.block += read->block;  // for messages
  }
}

void BlockReader::read_stored(const Onode& onode, uint64_t shard_block, const CompressedBlob& blob,
                              ceph::bufferlist* stored, std::vector<uint32_t>* lost) {
  BlobRead read;
  read.blob = std::make_shared<const CompressedBlob>(blob);
  read.block = shard_block + blob.block;
  read.stored = ceph::buffer::create_page_aligned(uint64_t{blob.stored_blocks()} * kBlockBytes);
  find_stored(&read, {.look = true, .keep = false});
  if (!read.missing.empty() && read_slices(onode, read.missing) < 0) {
    for (SlotSlice slice : read.missing) {
      for (const uint64_t end = slice.block + std::exchange(slice.count, 1); slice.block < end; ++slice.block) {
        if (read_slices(onode, {slice}) < 0) {
          lost->push_back(static_cast<uint32_t>(slice.block - read.block));
          std::memset(slice.destination, 0, kBlockBytes);
        }
        ++slice.slot_block;
        ++slice.crc32c;
        slice.destination += kBlockBytes;
      }
    }
  }
  stored->append(std::move(read.stored));
}

// A reply of many small buffers costs more than a copy.
bool BlockReader::may_share(const AllFound& found, uint64_t count) {
  uint64_t bytes = 0;
  for (const Found& block : found) {
    bytes += block.bytes.length();
  }
  return bytes == count * kBlockBytes && (found.size() == 1 || bytes / found.size() >= kSharedBytesMin);
}

void BlockReader::find_run(const MappedRun& run, Caching caching, AllFound* found, std::vector<SlotSlice>* missing) {
  // An extent that is damaged may name more blocks than somebody else writes there.
  if (ceph::bufferlist data = m_cube.in_flight.find(run.slot);
      data.length() >= (uint64_t{run.slot_block} + run.count) * kBlockBytes) {
    ceph::bufferlist slice;
    slice.substr_of(data, run.slot_block * kBlockBytes, run.count * kBlockBytes);
    if (!slice.is_contiguous()) {
      slice.rebuild();
    }
    const ceph::bufferptr& bytes = slice.front();
    if (matches(run, bytes.c_str())) {
      found->push_back({run.block, bytes});
      return;
    }
  }
  if (!caching.look) {
    missing->push_back({run.slot, run.slot_block, run.count, run.block, run.crc32c.data()});
    return;
  }
  uint32_t hits = 0;
  bool after_hit = true;
  for (uint32_t i = 0; i < run.count;) {
    uint32_t absent = 0;
    ceph::bufferptr bytes =
        m_cube.data.get(run.slot, run.slot_block + i, run.count - i, &run.crc32c[i], &absent, caching.scan);
    if (const uint32_t present = bytes.length() / kBlockBytes; present > 0) {
      found->push_back({run.block + i, std::move(bytes)});
      hits += present;
      i += present;
      after_hit = true;
      continue;
    }
    if (after_hit) {
      missing->push_back({run.slot, run.slot_block + i, 0, run.block + i, &run.crc32c[i]});
      after_hit = false;
    }
    missing->back().count += absent;
    i += absent;
  }
  m_store.counters.inc(l_swimstore_read_cache_hit_bytes, uint64_t{hits} * kBlockBytes);
  m_store.counters.inc(l_swimstore_read_cache_miss_bytes, uint64_t{run.count - hits} * kBlockBytes);
}

int BlockReader::gather(const Onode& onode, const Touched& touched, Caching caching, Whereabouts* blocks,
                        ceph::bufferptr& memory) {
  char* const destination = memory.c_str();
  uint64_t next = 0;
  for (const MappedRun& run : blocks->runs) {
    const uint64_t position = touched.position(run.block);
    std::memset(destination + next * kBlockBytes, 0, (position - next) * kBlockBytes);
    next = position + run.count;
  }
  std::memset(destination + next * kBlockBytes, 0, (touched.count() - next) * kBlockBytes);
  for (const Found& found : blocks->found) {
    std::memcpy(destination + touched.position(found.block) * kBlockBytes, found.bytes.c_str(), found.bytes.length());
  }
  for (SlotSlice& slice : blocks->missing) {
    slice.destination = destination + touched.position(slice.block) * kBlockBytes;
  }
  const size_t plain = blocks->missing.size();
  for (const BlobRead& read : blocks->blobs) {
    blocks->missing.insert(blocks->missing.end(), read.missing.begin(), read.missing.end());
  }
  int r = blocks->missing.empty() ? 0 : read_slices(onode, blocks->missing);
  for (size_t i = 0; i < plain && r == 0; ++i) {
    keep(caching, blocks->missing[i], memory);
  }
  for (size_t i = 0; i < blocks->blobs.size() && r == 0; ++i) {
    const BlobRead& read = blocks->blobs[i];
    for (const SlotSlice& slice : read.missing) {
      keep(caching, slice, read.stored);
    }
    r = decompress(onode, touched, read, destination);
  }
  return r;
}

void BlockReader::keep(Caching caching, const SlotSlice& slice, const ceph::bufferptr& memory) {
  if (!caching.keep) {
    return;
  }
  const ceph::bufferptr read(memory, slice.destination - memory.c_str(), slice.bytes());
  caching.scan ? m_cube.data.add_if_room(slice.slot, slice.slot_block, read, slice.crc32c)
               : m_cube.data.add(slice.slot, slice.slot_block, read, slice.crc32c);
}

int BlockReader::decompress(const Onode& onode, const Touched& touched, const BlobRead& read, char* destination) {
  ceph::bufferlist blocks;
  const auto began = ceph::mono_clock::now();
  const vtkv::Status status = m_store.compression.codec().decompress(*read.blob, read.stored, &blocks);
  m_store.counters.tinc(l_swimstore_decompress_latency, ceph::mono_clock::now() - began);
  if (!status.ok()) {
    derr << "object " << onode.oid << " blocks " << read.block << " to " << read.block + read.blob->count - 1 << ": "
         << status.message() << dendl;
    return -EIO;
  }
  for (const auto& [block, count] : read.wanted) {
    ceph::bufferlist::const_iterator at(&blocks, (block - read.block) * kBlockBytes);
    at.copy(uint64_t{count} * kBlockBytes, destination + touched.position(block) * kBlockBytes);
  }
  return 0;
}

int BlockReader::read_slices(const Onode& onode, const std::vector<SlotSlice>& slices) {
  std::vector<vtkv::ReadRequest> requests;
  std::vector<size_t> first_slices;  // of each request, and an end
  for (size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
    // Slots filled one after another are often neighbours: one read serves them all.
    uint64_t bytes = slices[begin].bytes();
    for (end = begin + 1; end < slices.size() && slices[end].slot.container() == slices[begin].slot.container() &&
                          slices[end].file_offset() == slices[begin].file_offset() + bytes &&
                          slices[end].destination == slices[begin].destination + bytes;
         ++end) {
      bytes += slices[end].bytes();
    }
    requests.push_back({m_cube.containers().file(slices[begin].slot.container()),
                        slices[begin].file_offset(),
                        bytes,
                        slices[begin].destination,
                        {}});
    first_slices.push_back(begin);
    m_store.counters.inc(l_swimstore_read_slot_bytes, bytes);
  }
  first_slices.push_back(slices.size());
  int r = 0;
  // Checksums are computed while the next requests are still at the device.
  vtkv::read_all(requests, [&](const vtkv::ReadRequest& request) {
    const size_t number = &request - requests.data();
    for (size_t i = first_slices[number]; i < first_slices[number + 1] && r == 0; ++i) {
      r = verify(onode, slices[i], request.result);
    }
  });
  return r;
}

int BlockReader::verify(const Onode& onode, const SlotSlice& slice, const vtkv::Status& first_read) {
  vtkv::Status status = first_read;
  uint32_t bad = 0;
  bool mismatched = false;
  for (int tries = 1;; ++tries) {
    bad = status.ok() ? first_bad_block(slice) : 0;
    if (status.ok() && bad == slice.count) {
      break;
    }
    if (status.ok() && !std::exchange(mismatched, true)) {
      m_store.counters.inc(l_swimstore_read_checksum_errors);
    }
    if (tries == vtkv::kReadTries) {
      derr << "object " << onode.oid << " block " << slice.block + bad << " in slot "
           << slot_bytes(slice.slot.container()) / 1024 << "K/" << slice.slot.whole().index << " block "
           << slice.slot.first_block() + slice.slot_block + bad << ": "
           << (status.ok() ? "the data does not match its checksum" : status.to_string()) << "; tried "
           << vtkv::kReadTries << " times, the object needs repair from a replica" << dendl;
      return -EIO;
    }
    m_store.counters.inc(l_swimstore_read_retries);
    dout(1) << "object " << onode.oid << " block " << slice.block + bad << ": "
            << (status.ok() ? "the data does not match its checksum" : status.to_string()) << "; trying again" << dendl;
    status =
        m_cube.containers().file(slice.slot.container())->read(slice.file_offset(), slice.bytes(), slice.destination);
  }
  return 0;
}

uint32_t BlockReader::first_bad_block(const SlotSlice& slice) const {
  for (uint32_t i = 0; i < slice.count; ++i) {
    if (vtkv::crc32c(slice.destination + uint64_t{i} * kBlockBytes, kBlockBytes) != slice.crc32c[i] ||
        m_cube.cube.is_damaged(slice.slot, slice.slot_block + i)) {
      return i;
    }
  }
  return slice.count;
}

}  // namespace swimstore
