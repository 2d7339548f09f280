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

const DataCache::Slice* DataCache::Page::find(uint32_t block) const {
  for (const Slice& slice : slices) {
    if (block - slice.first < slice.count) {
      return &slice;
    }
  }
  return nullptr;
}

void DataCache::add(SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks) {
  if (m_capacity_bytes < kShards * kPageBlocks * kBlockBytes) {
    return;
  }
  if (blocks.raw_length() > 2 * blocks.length()) {  // a small slice must not hold on to much memory
    add(slot, first, ceph::bufferptr(ceph::buffer::copy(blocks.c_str(), blocks.length())));
    return;
  }
  const uint32_t count = blocks.length() / kBlockBytes;
  for (uint32_t done = 0; done < count;) {
    const uint32_t in_page = (first + done) % kPageBlocks;
    const uint32_t slice_blocks = std::min(count - done, kPageBlocks - in_page);
    add_to_page({slot.packed(), (first + done) / kPageBlocks},
                {in_page, slice_blocks, ceph::bufferptr(blocks, done * kBlockBytes, slice_blocks * kBlockBytes)});
    done += slice_blocks;
  }
}

void DataCache::add(SlotAddress slot, const ceph::bufferlist& blocks) {
  uint32_t first = 0;
  for (const ceph::bufferptr& buffer : blocks.buffers()) {
    add(slot, first, buffer);
    first += buffer.length() / kBlockBytes;
  }
}

void DataCache::add_if_room(SlotAddress slot, uint32_t first, const ceph::bufferptr& blocks) {
  const uint32_t count = blocks.length() / kBlockBytes;
  for (uint32_t done = 0; done < count;) {
    const uint32_t in_page = (first + done) % kPageBlocks;
    const uint32_t slice_blocks = std::min(count - done, kPageBlocks - in_page);
    add_page_if_room({slot.packed(), (first + done) / kPageBlocks}, in_page,
                     ceph::bufferptr(blocks, done * kBlockBytes, slice_blocks * kBlockBytes));
    done += slice_blocks;
  }
}

// Copied page by page, because each goes by itself. Looks for room first: mostly there is none.
void DataCache::add_page_if_room(const Key& key, uint32_t first, const ceph::bufferptr& blocks) {
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
    page->slices.push_back({first, count, std::move(copy)});
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

ceph::bufferptr DataCache::get(SlotAddress slot, uint32_t first, uint32_t count, uint32_t* missing, bool scan) {
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
  const Slice* const slice = page.find(in_page);
  if (slice == nullptr) {
    *missing = 1;
    while (*missing < count && page.find(in_page + *missing) == nullptr) {
      ++*missing;
    }
    return {};
  }
  const uint32_t skipped = in_page - slice->first;
  return {slice->blocks, skipped * kBlockBytes, std::min(count, slice->count - skipped) * kBlockBytes};
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
    if (slice.first < std::min(first, slice_end)) {
      const uint32_t keep = std::min(first, slice_end) - slice.first;
      left.push_back({slice.first, keep, ceph::bufferptr(slice.blocks, 0, keep * kBlockBytes)});
    }
    if (const uint32_t from = std::max(end, slice.first); from < slice_end) {
      left.push_back(
          {from, slice_end - from,
           ceph::bufferptr(slice.blocks, (from - slice.first) * kBlockBytes, (slice_end - from) * kBlockBytes)});
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
