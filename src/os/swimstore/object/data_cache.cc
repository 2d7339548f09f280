// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/data_cache.h"

#include <algorithm>
#include <iterator>

#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

void InFlightData::add(SlotAddress slot, ceph::bufferlist data) {
  Shard& shard = shard_of(slot);
  vtkv::MutexLock lock(shard.mutex);
  shard.slots[slot.packed()] = std::move(data);
}

void InFlightData::remove(SlotAddress slot) {
  Shard& shard = shard_of(slot);
  ceph::bufferlist gone;  // freed after the lock
  vtkv::MutexLock lock(shard.mutex);
  if (const auto found = shard.slots.find(slot.packed()); found != shard.slots.end()) {
    gone = std::move(found->second);
    shard.slots.erase(found);
  }
}

ceph::bufferlist InFlightData::find(SlotAddress slot) const {
  const Shard& shard = shard_of(slot);
  vtkv::MutexLock lock(shard.mutex);
  const auto found = shard.slots.find(slot.packed());
  return found != shard.slots.end() ? found->second : ceph::bufferlist();
}

size_t InFlightData::size() const {
  size_t count = 0;
  for (const Shard& shard : m_shards) {
    vtkv::MutexLock lock(shard.mutex);
    count += shard.slots.size();
  }
  return count;
}

size_t DataCache::KeyHash::operator()(const Key& key) const { return vtkv::mix64(key.slot + vtkv::mix64(key.page)); }

uint32_t DataCache::Page::blocks() const {
  uint32_t sum = 0;
  for (const Slice& slice : slices) {
    sum += slice.count;
  }
  return sum;
}

const DataCache::Slice* DataCache::Page::find(uint32_t block, uint32_t crc32c) const {
  for (const Slice& slice : slices) {
    if (block - slice.first < slice.count) {
      return slice.crc32c[block - slice.first] == crc32c ? &slice : nullptr;
    }
  }
  return nullptr;
}

namespace {

// A small part must not hold on to much memory.
ceph::bufferptr released(ceph::bufferptr part) {
  return part.raw_length() > 2 * part.length() ? ceph::bufferptr(ceph::buffer::copy(part.c_str(), part.length()))
                                               : part;
}

}  // namespace

DataCache::Slice::Slice(uint32_t first_block, ceph::bufferptr data, const uint32_t* crcs)
    : first(first_block), count(data.length() / kBlockBytes), blocks(std::move(data)), crc32c(crcs, crcs + count) {}

DataCache::Slice DataCache::Slice::part(uint32_t from, uint32_t end) const {
  const uint32_t skipped = from - first;
  return {from, released({blocks, skipped * kBlockBytes, (end - from) * kBlockBytes}), &crc32c[skipped]};
}

void DataCache::add(SlotAddress slot, uint32_t first, const ceph::bufferptr& unreleased, const uint32_t* crc32c) {
  if (m_capacity_bytes < kShards * kPageBlocks * kBlockBytes) {
    return;
  }
  const ceph::bufferptr blocks = released(unreleased);
  const uint32_t count = blocks.length() / kBlockBytes;
  for (uint32_t done = 0; done < count;) {
    const uint32_t in_page = (first + done) % kPageBlocks;
    const uint32_t slice_blocks = std::min(count - done, kPageBlocks - in_page);
    add_to_page({slot.packed(), (first + done) / kPageBlocks},
                {in_page, {blocks, done * kBlockBytes, slice_blocks * kBlockBytes}, crc32c + done});
    done += slice_blocks;
  }
}

void DataCache::add(SlotAddress slot, const ceph::bufferlist& blocks, const uint32_t* crc32c) {
  uint32_t first = 0;
  for (const ceph::bufferptr& buffer : blocks.buffers()) {
    add(slot, first, buffer, crc32c + first);
    first += buffer.length() / kBlockBytes;
  }
}

void DataCache::add_if_room(SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks, const uint32_t* crc32c) {
  const uint32_t count = blocks.length() / kBlockBytes;
  for (uint32_t done = 0; done < count;) {
    const uint32_t in_page = (first + done) % kPageBlocks;
    const uint32_t slice_blocks = std::min(count - done, kPageBlocks - in_page);
    add_page_if_room({slot.packed(), (first + done) / kPageBlocks}, in_page,
                     {blocks, done * kBlockBytes, slice_blocks * kBlockBytes}, crc32c + done);
    done += slice_blocks;
  }
}

// Copied page by page, because each goes by itself. Looks for room first: mostly there is none.
void DataCache::add_page_if_room(const Key& key, uint32_t first, const ceph::bufferptr& blocks,
                                 const uint32_t* crc32c) {
  Shard& shard = shard_of(key);
  const uint32_t count = blocks.length() / kBlockBytes;
  {
    vtkv::MutexLock lock(shard.mutex);
    if (!has_room(shard, key, count)) {
      return;
    }
  }
  ceph::bufferptr copy(ceph::buffer::copy(blocks.c_str(), blocks.length()));
  vtkv::MutexLock lock(shard.mutex);
  if (has_room(shard, key, count)) {
    const auto page = shard.pages.insert(shard.pages.end(), {.key = key});
    page->slices.emplace_back(first, std::move(copy), crc32c);
    shard.by_address.emplace(key, page);
    account(shard, count);
  }
}

bool DataCache::has_room(const Shard& shard, const Key& key, uint32_t count) const {
  return shard.blocks + count <= m_capacity_bytes / kShards / kBlockBytes && !shard.by_address.contains(key);
}

void DataCache::add_to_page(const Key& key, Slice slice) {
  Shard& shard = shard_of(key);
  Removed removed;
  vtkv::MutexLock lock(shard.mutex);
  auto [found, is_new] = shard.by_address.try_emplace(key);
  if (is_new) {
    found->second = shard.pages.insert(shard.pages.begin(), {.key = key});
  }
  Page& page = *found->second;
  cut(shard, page, slice.first, slice.count, &removed);
  account(shard, slice.count);
  page.slices.push_back(std::move(slice));
  trim(shard, &removed);
}

ceph::bufferptr DataCache::get(SlotAddress slot, uint32_t first, uint32_t count, const uint32_t* crc32c,
                               uint32_t* missing, bool scan) {
  const Key key{slot.packed(), first / kPageBlocks};
  const uint32_t in_page = first % kPageBlocks;
  count = std::min(count, kPageBlocks - in_page);
  Shard& shard = shard_of(key);
  vtkv::MutexLock lock(shard.mutex);
  const auto found = shard.by_address.find(key);
  if (found == shard.by_address.end()) {
    *missing = count;
    return {};
  }
  Page& page = *found->second;
  page.was_read |= !scan;
  const Slice* const slice = page.find(in_page, *crc32c);
  if (slice == nullptr) {
    *missing = 1;
    while (*missing < count && page.find(in_page + *missing, crc32c[*missing]) == nullptr) {
      ++*missing;
    }
    return {};
  }
  const uint32_t skipped = in_page - slice->first;
  const uint32_t* const there = &slice->crc32c[skipped];
  count = std::min(count, slice->count - skipped);
  return {slice->blocks, skipped * kBlockBytes,
          static_cast<uint32_t>(std::mismatch(there, there + count, crc32c).first - there) * kBlockBytes};
}

void DataCache::forget(SlotAddress slot, uint32_t first, uint32_t count) {
  for (uint32_t done = 0; done < count;) {
    const uint32_t in_page = (first + done) % kPageBlocks;
    const uint32_t slice_blocks = std::min(count - done, kPageBlocks - in_page);
    const Key key{slot.packed(), (first + done) / kPageBlocks};
    done += slice_blocks;
    Shard& shard = shard_of(key);
    Removed removed;
    vtkv::MutexLock lock(shard.mutex);
    if (const auto found = shard.by_address.find(key); found != shard.by_address.end()) {
      cut(shard, *found->second, in_page, slice_blocks, &removed);
      if (found->second->slices.empty()) {
        shard.pages.erase(found->second);
        shard.by_address.erase(found);
      }
    }
  }
}

// Takes blocks [first, first + count) out of the page.
void DataCache::cut(Shard& shard, Page& page, uint32_t first, uint32_t count, Removed* removed) {
  const uint32_t before = page.blocks();
  const uint32_t end = first + count;
  boost::container::small_vector<Slice, 1> left;
  for (Slice& slice : page.slices) {
    const uint32_t slice_end = slice.first + slice.count;
    if (const uint32_t to = std::min(first, slice_end); slice.first < to) {
      left.push_back(slice.part(slice.first, to));
    }
    if (const uint32_t from = std::max(end, slice.first); from < slice_end) {
      left.push_back(slice.part(from, slice_end));
    }
    removed->push_back(std::move(slice));
  }
  page.slices = std::move(left);
  account(shard, int64_t{page.blocks()} - int64_t{before});
}

void DataCache::trim(Shard& shard, Removed* removed) {
  const size_t blocks_max = m_capacity_bytes / kShards / kBlockBytes;
  unsigned passed_over = 0;
  while (shard.blocks > blocks_max) {
    Page& last = shard.pages.back();
    if (std::exchange(last.was_read, false) && passed_over < kPassedOverMax) {
      ++passed_over;
      shard.pages.splice(shard.pages.begin(), shard.pages, std::prev(shard.pages.end()));
      continue;
    }
    passed_over = 0;
    account(shard, -int64_t{last.blocks()});
    removed->insert(removed->end(), std::make_move_iterator(last.slices.begin()),
                    std::make_move_iterator(last.slices.end()));
    shard.by_address.erase(last.key);
    shard.pages.pop_back();
  }
}

void DataCache::account(Shard& shard, int64_t blocks) {
  VTKV_ASSERT(blocks >= 0 || shard.blocks >= static_cast<size_t>(-blocks));
  shard.blocks += blocks;
  m_bytes += blocks * kBlockBytes;
}

void DataCache::set_capacity(size_t bytes) {
  m_capacity_bytes = bytes;
  for (Shard& shard : m_shards) {
    Removed removed;
    vtkv::MutexLock lock(shard.mutex);
    trim(shard, &removed);
  }
}

void DataCache::clear() {
  for (Shard& shard : m_shards) {
    vtkv::MutexLock lock(shard.mutex);
    account(shard, -static_cast<int64_t>(shard.blocks));
    shard.by_address.clear();
    shard.pages.clear();
  }
}

}  // namespace swimstore
