#include "swimstore/store/extent_map.h"

#include <algorithm>
#include <utility>

#include "include/ceph_assert.h"

#include "swimstore/format/key_codec.h"

namespace swimstore {

namespace {

// From this many missing chunks on, one range read is cheaper than a lookup for each.
constexpr uint32_t kRangeLoadChunks = 3;
// From this many on, all that exist are loaded: a sparse object may have few.
constexpr uint32_t kLoadAllChunks = 256;

vtkv::Status damaged_chunk(uint64_t nid, uint32_t chunk) {
  return vtkv::Status::corruption("extent chunk " + std::to_string(chunk) + " of object id " +
                                  std::to_string(nid) + " cannot be decoded");
}

// Calls step(chunk number, first block in it, count) for each chunk that the blocks touch.
template <typename Step>
void for_each_chunk(uint64_t first, uint64_t count, Step step) {
  while (count > 0) {
    const uint32_t in_chunk = first % kChunkBlocks;
    const uint32_t part = std::min<uint64_t>(count, kChunkBlocks - in_chunk);
    step(static_cast<uint32_t>(first / kChunkBlocks), in_chunk, part);
    first += part;
    count -= part;
  }
}

// The piece [first, last) of an extent, in blocks of the chunk.
Extent piece_of(const Extent& extent, uint32_t first, uint32_t last) {
  Extent piece = extent;
  piece.block = static_cast<uint8_t>(first);
  piece.count = static_cast<uint8_t>(last - first);
  piece.slot_block = extent.slot_block + (first - extent.block);
  return piece;
}

// Makes [first, last) consist of whole extents. Returns the index of the first extent at or after `first`.
size_t split_at(ExtentChunk* chunk, uint32_t first, uint32_t last) {
  auto& extents = chunk->extents;
  for (const uint32_t edge : {first, last}) {
    for (size_t i = 0; i < extents.size(); ++i) {
      const uint32_t end = extents[i].block + extents[i].count;
      if (extents[i].block < edge && edge < end) {
        const Extent right = piece_of(extents[i], edge, end);
        extents[i] = piece_of(extents[i], extents[i].block, edge);
        extents.insert(extents.begin() + i + 1, right);
        break;
      }
    }
  }
  return std::find_if(extents.begin(), extents.end(), [&](const Extent& extent) { return extent.block >= first; }) -
         extents.begin();
}

}  // namespace

void ExtentMap::set_inline(ExtentChunk chunk) {
  clear();
  if (!chunk.empty()) {
    add(0, std::move(chunk));
  }
}

// Keeps one that is there already.
void ExtentMap::add(uint32_t number, ExtentChunk chunk) {
  const auto [found, added] = m_chunks.try_emplace(number, std::move(chunk));
  if (added) {
    m_extents_allocated += found->second.extents.capacity();
  }
}

vtkv::Status ExtentMap::load(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last) {
  std::lock_guard lock(m_mutex);
  if (m_all_loaded) {
    return {};
  }
  if (last - first >= kLoadAllChunks) {
    VTKV_RETURN_IF_ERROR(load_range(database, nid, 0, UINT32_MAX));
    m_all_loaded = true;
    return {};
  }
  uint32_t missing = 0;
  for (uint32_t number = first; number <= last && missing < kRangeLoadChunks; ++number) {
    missing += !m_chunks.contains(number);
  }
  if (missing >= kRangeLoadChunks) {
    return load_range(database, nid, first, last);
  }
  std::string value;
  for (uint32_t number = first; number <= last && missing > 0; ++number) {
    if (m_chunks.contains(number)) {
      continue;
    }
    ExtentChunk chunk;
    const vtkv::Status status = database.get(extent_key(nid, number), &value);
    if (status.ok()) {
      if (!decode_extent_chunk(value, &chunk)) {
        return damaged_chunk(nid, number);
      }
    } else if (!status.is_not_found()) {
      return status;
    }
    add(number, std::move(chunk));
    --missing;
  }
  return {};
}

vtkv::Status ExtentMap::load_all(vtkv::DB& database, uint64_t nid) {
  std::lock_guard lock(m_mutex);
  if (m_all_loaded) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(load_range(database, nid, 0, UINT32_MAX));
  m_all_loaded = true;
  return {};
}

vtkv::Status ExtentMap::load_range(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last) {
  const std::string begin = extent_key(nid, first);
  const std::string end = last == UINT32_MAX ? extent_range_end(nid) : extent_key(nid, last + 1);
  const auto iterator = database.new_iterator(begin, end);
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    uint64_t found_nid = 0;
    uint32_t number = 0;
    ExtentChunk chunk;
    if (!decode_extent_key(iterator->key(), &found_nid, &number) || found_nid != nid ||
        !decode_extent_chunk(iterator->value(), &chunk)) {
      return damaged_chunk(nid, number);
    }
    add(number, std::move(chunk));
  }
  VTKV_RETURN_IF_ERROR(iterator->status());
  if (last != UINT32_MAX) {
    for (uint32_t number = first; number <= last; ++number) {
      m_chunks.try_emplace(number);
    }
  }
  return {};
}

void ExtentMap::resolve(uint64_t first, uint64_t count, std::vector<MappedRun>* runs) const {
  std::lock_guard lock(m_mutex);
  for_each_chunk(first, count, [&](uint32_t number, uint32_t begin, uint32_t part) {
    const auto found = m_chunks.find(number);
    if (found == m_chunks.end()) {
      ceph_assert(m_all_loaded);
      return;
    }
    const ExtentChunk& chunk = found->second;
    for (const Extent& extent : chunk.extents) {
      const uint32_t from = std::max<uint32_t>(extent.block, begin);
      const uint32_t to = std::min<uint32_t>(extent.block + extent.count, begin + part);
      if (from >= to) {
        continue;
      }
      const Extent piece = piece_of(extent, from, to);
      const uint64_t block = uint64_t{number} * kChunkBlocks + from;
      const auto* crcs = &chunk.crc32c[from];
      if (!runs->empty()) {
        MappedRun& before = runs->back();
        if (before.slot == piece.slot && before.block + before.count == block &&
            before.slot_block + before.count == piece.slot_block) {
          before.count += piece.count;
          before.crc32c.insert(before.crc32c.end(), crcs, crcs + piece.count);
          continue;
        }
      }
      runs->push_back({block, piece.count, piece.slot, piece.slot_block, piece.slot_written_blocks,
                       {crcs, crcs + piece.count}});
    }
  });
}

ExtentChunk& ExtentMap::chunk(uint32_t number) {
  std::lock_guard lock(m_mutex);
  const auto [found, added] = m_chunks.try_emplace(number);
  ceph_assert(!added || m_all_loaded);
  return found->second;
}

void ExtentMap::punch(uint64_t first, uint64_t count, std::vector<Extent>* released) {
  if (count == 0) {
    return;
  }
  // Far fewer chunks may exist than the range spans.
  const uint32_t last_chunk = static_cast<uint32_t>((first + count - 1) / kChunkBlocks);
  for (auto at = m_chunks.lower_bound(static_cast<uint32_t>(first / kChunkBlocks));
       at != m_chunks.end() && at->first <= last_chunk; ++at) {
    const uint64_t base = uint64_t{at->first} * kChunkBlocks;
    const uint32_t from = static_cast<uint32_t>(std::max(first, base) - base);
    const uint32_t to = static_cast<uint32_t>(std::min<uint64_t>(first + count, base + kChunkBlocks) - base);
    auto& extents = at->second.extents;
    m_extents_allocated -= extents.capacity();
    const size_t begin = split_at(&at->second, from, to);
    m_extents_allocated += extents.capacity();
    size_t end = begin;
    while (end < extents.size() && extents[end].block < to) {
      ++end;
    }
    if (begin == end) {
      continue;
    }
    released->insert(released->end(), extents.begin() + begin, extents.begin() + end);
    extents.erase(extents.begin() + begin, extents.begin() + end);
    mark_dirty(at->first);
  }
}

void ExtentMap::insert(uint64_t first, uint64_t count, SlotAddress slot, uint32_t slot_block,
                       uint32_t slot_written_blocks, bool shared, const uint32_t* crc32c) {
  for_each_chunk(first, count, [&](uint32_t number, uint32_t begin, uint32_t part) {
    ExtentChunk& target = chunk(number);
    auto& extents = target.extents;
    const auto at = std::find_if(extents.begin(), extents.end(),
                                 [&](const Extent& extent) { return extent.block >= begin; });
    ceph_assert(at == extents.end() || begin + part <= at->block);
    ceph_assert(at == extents.begin() || std::prev(at)->block + std::prev(at)->count <= static_cast<int>(begin));
    m_extents_allocated -= extents.capacity();
    extents.insert(at, Extent{static_cast<uint8_t>(begin), static_cast<uint8_t>(part), shared, slot, slot_block,
                              slot_written_blocks});
    m_extents_allocated += extents.capacity();
    std::copy(crc32c, crc32c + part, target.crc32c.begin() + begin);
    mark_dirty(number);
    slot_block += part;
    crc32c += part;
  });
}

void ExtentMap::share(uint64_t first, uint64_t count) {
  for_each_chunk(first, count, [&](uint32_t number, uint32_t begin, uint32_t part) {
    ExtentChunk& target = chunk(number);
    bool changed = false;
    for (const Extent& extent : target.extents) {
      changed |= !extent.shared && extent.block < begin + part && begin < uint32_t{extent.block} + extent.count;
    }
    if (!changed) {
      return;
    }
    m_extents_allocated -= target.extents.capacity();
    const size_t at = split_at(&target, begin, begin + part);
    m_extents_allocated += target.extents.capacity();
    for (size_t i = at; i < target.extents.size() && target.extents[i].block < begin + part; ++i) {
      target.extents[i].shared = true;
    }
    mark_dirty(number);
  });
}

std::vector<uint32_t> ExtentMap::take_dirty() {
  std::vector<uint32_t> dirty;
  dirty.swap(m_dirty);
  std::sort(dirty.begin(), dirty.end());
  dirty.erase(std::unique(dirty.begin(), dirty.end()), dirty.end());
  return dirty;
}

void ExtentMap::clear() {
  std::lock_guard lock(m_mutex);
  m_chunks.clear();
  m_extents_allocated = 0;
  m_dirty.clear();
  m_all_loaded = true;
}

void ExtentMap::take(ExtentMap* other) {
  std::scoped_lock lock(m_mutex, other->m_mutex);
  m_chunks = std::move(other->m_chunks);
  m_extents_allocated = std::exchange(other->m_extents_allocated, 0);
  m_dirty = std::move(other->m_dirty);
  m_all_loaded = std::exchange(other->m_all_loaded, true);
  other->m_chunks.clear();
  other->m_dirty.clear();
}

// Called for each read, and for each changed object of each transaction, so it does not look into the chunks.
size_t ExtentMap::memory_bytes() const {
  constexpr size_t kMapNodeBytes = 40;  // its links and the chunk's number
  constexpr size_t kAllocatorBytes = 8;  // what it rounds up, in the mean
  std::lock_guard lock(m_mutex);
  return m_chunks.size() * (sizeof(ExtentChunk) + kMapNodeBytes + kAllocatorBytes) + m_extents_allocated * sizeof(Extent);
}

}  // namespace swimstore
