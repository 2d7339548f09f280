#include "swimstore/store/data_cache.h"

#include <cstring>

namespace swimstore {

void InFlightData::add(SlotAddress slot, ceph::bufferlist data) {
  Shard& shard = shard_of(slot);
  std::lock_guard lock(shard.mutex);
  shard.slots[slot.packed()] = std::move(data);
}

void InFlightData::remove(SlotAddress slot) {
  Shard& shard = shard_of(slot);
  ceph::bufferlist gone;  // freed after the lock
  std::lock_guard lock(shard.mutex);
  if (const auto found = shard.slots.find(slot.packed()); found != shard.slots.end()) {
    gone = std::move(found->second);
    shard.slots.erase(found);
  }
}

bool InFlightData::get(SlotAddress slot, uint32_t offset, uint32_t length, char* destination) const {
  const Shard& shard = shard_of(slot);
  ceph::bufferlist data;
  {
    std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(slot.packed());
    if (found == shard.slots.end()) {
      return false;
    }
    data = found->second;  // shares the memory
  }
  data.begin(offset).copy(length, destination);
  return true;
}

size_t InFlightData::size() const {
  size_t count = 0;
  for (const Shard& shard : m_shards) {
    std::lock_guard lock(shard.mutex);
    count += shard.slots.size();
  }
  return count;
}

size_t DataCache::KeyHash::operator()(const Key& key) const {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  const uint64_t mixed = (key.slot * kGolden) ^ (uint64_t{key.block} * 0xff51afd7ed558ccd);
  return mixed ^ mixed >> 32;
}

void DataCache::add(SlotAddress slot, uint32_t block, const char* data) {
  if (m_capacity_bytes < kShards * kBlockBytes) {
    return;
  }
  const Key key{slot.packed(), block};
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  if (const auto found = shard.by_place.find(key); found != shard.by_place.end()) {
    std::memcpy(found->second->data.get(), data, kBlockBytes);
    shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
    return;
  }
  shard.entries.push_front({key, std::make_unique_for_overwrite<char[]>(kBlockBytes)});
  std::memcpy(shard.entries.front().data.get(), data, kBlockBytes);
  shard.by_place.emplace(key, shard.entries.begin());
  m_bytes += kBlockBytes;
  trim(shard);
}

bool DataCache::get(SlotAddress slot, uint32_t block, char* destination) {
  const Key key{slot.packed(), block};
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.by_place.find(key);
  if (found == shard.by_place.end()) {
    return false;
  }
  shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
  std::memcpy(destination, found->second->data.get(), kBlockBytes);
  return true;
}

void DataCache::forget(SlotAddress slot, uint32_t block) {
  const Key key{slot.packed(), block};
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  if (const auto found = shard.by_place.find(key); found != shard.by_place.end()) {
    shard.entries.erase(found->second);
    shard.by_place.erase(found);
    m_bytes -= kBlockBytes;
  }
}

void DataCache::trim(Shard& shard) {
  const size_t blocks_max = m_capacity_bytes / kShards / kBlockBytes;
  while (shard.entries.size() > blocks_max) {
    shard.by_place.erase(shard.entries.back().key);
    shard.entries.pop_back();
    m_bytes -= kBlockBytes;
  }
}

void DataCache::set_capacity(size_t bytes) {
  m_capacity_bytes = bytes;
  for (Shard& shard : m_shards) {
    std::lock_guard lock(shard.mutex);
    trim(shard);
  }
}

void DataCache::clear() {
  for (Shard& shard : m_shards) {
    std::lock_guard lock(shard.mutex);
    m_bytes -= shard.entries.size() * kBlockBytes;
    shard.by_place.clear();
    shard.entries.clear();
  }
}

}  // namespace swimstore
