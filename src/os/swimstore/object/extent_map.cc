// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/extent_map.h"

#include <algorithm>
#include <utility>

#include "include/ceph_assert.h"

#include "swimstore/format/key_codec.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

namespace {

// From this many missing shards on, one range read is cheaper than a lookup for each.
constexpr uint32_t kRangeLoadShards = 3;
// From this many on, all that exist are loaded: a sparse object may have few.
constexpr uint32_t kLoadAllShards = 256;

vtkv::Status damaged_shard(uint64_t nid, uint32_t shard) {
  return vtkv::Status::corruption("extent shard " + std::to_string(shard) + " of object id " + std::to_string(nid) +
                                  " cannot be decoded");
}

// The shards that some blocks touch, one after another.
class ShardSteps {
 public:
  ShardSteps(uint64_t first, uint64_t count) : m_first(first), m_left(count) {}
  // False: there is none more.
  bool next() {
    m_first += count;
    m_left -= count;
    number = static_cast<uint32_t>(m_first / kShardBlocks);
    begin = m_first % kShardBlocks;
    count = static_cast<uint32_t>(std::min<uint64_t>(m_left, kShardBlocks - begin));
    return count > 0;
  }
  uint32_t number = 0;
  uint32_t begin = 0;  // in it
  uint32_t count = 0;

 private:
  uint64_t m_first;
  uint64_t m_left;
};

// The slice [first, last) of an extent, in blocks of the shard.
Extent slice_of(const Extent& extent, uint32_t first, uint32_t last) {
  Extent slice = extent;
  slice.block = static_cast<uint8_t>(first);
  slice.count = static_cast<uint8_t>(last - first);
  slice.slot_block = extent.slot_block + (first - extent.block);
  return slice;
}

// Makes [first, last) consist of whole extents. Returns the index of the first extent at or after `first`.
size_t split_at(ExtentShard* shard, uint32_t first, uint32_t last) {
  auto& extents = shard->extents;
  for (const uint32_t edge : {first, last}) {
    for (size_t i = 0; i < extents.size(); ++i) {
      const uint32_t end = extents[i].block + extents[i].count;
      if (extents[i].block < edge && edge < end) {
        const Extent right = slice_of(extents[i], edge, end);
        extents[i] = slice_of(extents[i], extents[i].block, edge);
        extents.insert(extents.begin() + i + 1, right);
        break;
      }
    }
  }
  return std::find_if(extents.begin(), extents.end(), [&](const Extent& extent) { return extent.block >= first; }) -
         extents.begin();
}

bool first_live_less(const CompressedBlob& a, const CompressedBlob& b) {
  return std::countr_zero(a.live) < std::countr_zero(b.live);
}

size_t memory_of(const CompressedBlob& blob) {
  return sizeof(blob) + blob.extents.size() * sizeof(Extent) + blob.crc32c.size() * sizeof(uint32_t);
}

// Runs of the blocks among `wanted` that live in the blob.
void resolve_blob(const CompressedBlob& blob, uint64_t shard_block, uint16_t wanted, MappedRuns* runs) {
  const auto live = static_cast<uint16_t>(blob.live & wanted);
  const auto shared = live == 0 ? nullptr : std::make_shared<const CompressedBlob>(blob);
  CompressedBlob::for_each_run(live, [&](uint32_t first, uint32_t count) {
    MappedRun& run = runs->emplace_back();
    run.block = shard_block + first;
    run.count = count;
    run.blob = shared;
  });
}

}  // namespace

void ExtentMap::set_all_loaded() {
  vtkv::MutexLock lock(m_mutex);
  m_all_loaded = true;
  ++m_generation;
}

void ExtentMap::set_inline(ExtentShard shard) {
  clear();
  if (!shard.empty()) {
    vtkv::MutexLock lock(m_mutex);
    add(0, std::move(shard));
  }
}

// Keeps one that is there already.
void ExtentMap::add(uint32_t number, ExtentShard shard) {
  const auto [found, added] = m_shards.try_emplace(number, std::move(shard));
  if (added) {
    m_extents_allocated += found->second.extents.capacity();
    for (const CompressedBlob& blob : found->second.blobs) {
      m_blob_bytes += memory_of(blob);
    }
  }
}

void ExtentMap::add_loaded(uint64_t generation, Loaded loaded) {
  VTKV_ASSERT(generation == m_generation);  // cleared or taken meanwhile: the collection was not locked
  for (auto& [number, shard] : loaded) {
    add(number, std::move(shard));
  }
}

vtkv::Status ExtentMap::load(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last, bool* was_read) {
  if (last - first >= kLoadAllShards) {
    return load_all(database, nid, was_read);
  }
  *was_read = false;
  std::vector<uint32_t> missing;
  vtkv::MutexLock lock(m_mutex);
  if (m_all_loaded) {
    return {};
  }
  for (uint32_t number = first; number <= last && missing.size() < kRangeLoadShards; ++number) {
    if (!m_shards.contains(number)) {
      missing.push_back(number);
    }
  }
  if (missing.empty()) {
    return {};
  }
  const uint64_t generation = m_generation;
  lock.unlock();
  *was_read = true;
  Loaded loaded;
  VTKV_RETURN_IF_ERROR(missing.size() >= kRangeLoadShards ? read_range(database, nid, first, last, &loaded)
                                                          : read(database, nid, missing, &loaded));
  lock.lock();
  add_loaded(generation, std::move(loaded));
  if (missing.size() >= kRangeLoadShards) {
    for (uint32_t number = first; number <= last; ++number) {
      m_shards.try_emplace(number);
    }
  }
  return {};
}

vtkv::Status ExtentMap::load_all(vtkv::DB& database, uint64_t nid, bool* was_read) {
  *was_read = false;
  vtkv::MutexLock lock(m_mutex);
  if (m_all_loaded) {
    return {};
  }
  const uint64_t generation = m_generation;
  lock.unlock();
  *was_read = true;
  Loaded loaded;
  VTKV_RETURN_IF_ERROR(read_range(database, nid, 0, UINT32_MAX, &loaded));
  lock.lock();
  add_loaded(generation, std::move(loaded));
  m_all_loaded = true;
  return {};
}

vtkv::Status ExtentMap::read(vtkv::DB& database, uint64_t nid, const std::vector<uint32_t>& numbers, Loaded* loaded) {
  std::string value;
  for (const uint32_t number : numbers) {
    ExtentShard shard;
    const vtkv::Status status = database.get(extent_key(nid, number), &value);
    if (status.ok()) {
      if (!decode_extent_shard(value, &shard)) {
        return damaged_shard(nid, number);
      }
    } else if (!status.is_not_found()) {
      return status;
    }
    loaded->emplace_back(number, std::move(shard));
  }
  return {};
}

vtkv::Status ExtentMap::read_range(vtkv::DB& database, uint64_t nid, uint32_t first, uint32_t last, Loaded* loaded) {
  const std::string begin = extent_key(nid, first);
  const std::string end = last == UINT32_MAX ? extent_range_end(nid) : extent_key(nid, last + 1);
  const auto iterator = database.new_iterator(begin, end);
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    uint64_t found_nid = 0;
    uint32_t number = 0;
    ExtentShard shard;
    if (!decode_extent_key(iterator->key(), &found_nid, &number) || found_nid != nid ||
        !decode_extent_shard(iterator->value(), &shard)) {
      return damaged_shard(nid, number);
    }
    loaded->emplace_back(number, std::move(shard));
  }
  return iterator->status();
}

void ExtentMap::resolve(uint64_t first, uint64_t count, MappedRuns* runs) const {
  vtkv::MutexLock lock(m_mutex);
  for (ShardSteps step(first, count); step.next();) {
    const auto found = m_shards.find(step.number);
    if (found == m_shards.end()) {
      ceph_assert(m_all_loaded);
      continue;
    }
    const ExtentShard& shard = found->second;
    const size_t before_shard = runs->size();
    for (const Extent& extent : shard.extents) {
      const uint32_t from = std::max<uint32_t>(extent.block, step.begin);
      const uint32_t to = std::min<uint32_t>(extent.block + extent.count, step.begin + step.count);
      if (from >= to) {
        continue;
      }
      const Extent slice = slice_of(extent, from, to);
      const uint64_t block = uint64_t{step.number} * kShardBlocks + from;
      const auto* crcs = &shard.crc32c[from];
      if (!runs->empty()) {
        MappedRun& before = runs->back();
        if (!before.blob && before.slot == slice.slot && before.block + before.count == block &&
            before.slot_block + before.count == slice.slot_block) {
          before.count += slice.count;
          before.crc32c.insert(before.crc32c.end(), crcs, crcs + slice.count);
          continue;
        }
      }
      MappedRun& run = runs->emplace_back();
      run.block = block;
      run.count = slice.count;
      run.slot = slice.slot;
      run.slot_block = slice.slot_block;
      run.slot_written_blocks = slice.slot_written_blocks;
      run.crc32c.assign(crcs, crcs + slice.count);
    }
    if (shard.blobs.empty()) {
      continue;
    }
    for (const CompressedBlob& blob : shard.blobs) {
      resolve_blob(blob, uint64_t{step.number} * kShardBlocks, block_bits(step.begin, step.begin + step.count), runs);
    }
    std::sort(runs->begin() + before_shard, runs->end(),
              [](const MappedRun& a, const MappedRun& b) { return a.block < b.block; });
  }
}

const ExtentShard& ExtentMap::find_shard(uint32_t number) const {
  static const ExtentShard empty;
  vtkv::MutexLock lock(m_mutex);
  const auto found = m_shards.find(number);
  ceph_assert(found != m_shards.end() || m_all_loaded);
  return found != m_shards.end() ? found->second : empty;
}

ExtentShard& ExtentMap::shard(uint32_t number) {
  vtkv::MutexLock lock(m_mutex);
  return shard_locked(number);
}

ExtentShard& ExtentMap::shard_locked(uint32_t number) {
  const auto [found, added] = m_shards.try_emplace(number);
  ceph_assert(!added || m_all_loaded);
  return found->second;
}

void ExtentMap::punch(uint64_t first, uint64_t count, Unmapped* unmapped) {
  if (count == 0) {
    return;
  }
  vtkv::MutexLock lock(m_mutex);
  // Far fewer shards may exist than the range spans.
  const uint32_t last_shard = static_cast<uint32_t>((first + count - 1) / kShardBlocks);
  for (auto at = m_shards.lower_bound(static_cast<uint32_t>(first / kShardBlocks));
       at != m_shards.end() && at->first <= last_shard; ++at) {
    const uint64_t base = uint64_t{at->first} * kShardBlocks;
    const uint32_t from = static_cast<uint32_t>(std::max(first, base) - base);
    const uint32_t to = static_cast<uint32_t>(std::min<uint64_t>(first + count, base + kShardBlocks) - base);
    auto& extents = at->second.extents;
    const size_t begin = split_counted(&at->second, from, to);
    size_t end = begin;
    while (end < extents.size() && extents[end].block < to) {
      ++end;
    }
    bool changed = punch_blobs(at->first, &at->second, block_bits(from, to), unmapped);
    if (begin < end) {
      unmapped->extents.insert(unmapped->extents.end(), extents.begin() + begin, extents.begin() + end);
      extents.erase(extents.begin() + begin, extents.begin() + end);
      changed = true;
    }
    if (changed) {
      mark_dirty(at->first);
    }
  }
}

bool ExtentMap::punch_blobs(uint32_t number, ExtentShard* shard, uint16_t blocks, Unmapped* unmapped) {
  bool any = false, cut = false;
  for (CompressedBlob& blob : shard->blobs) {
    const auto ended = static_cast<uint16_t>(blob.live & blocks);
    if (ended == 0) {
      continue;
    }
    any = true;
    unmapped->blob_blocks += std::popcount(ended);
    blob.live &= ~blocks;
    if (blob.live != 0) {
      cut = true;
      continue;
    }
    m_blob_bytes -= memory_of(blob);
    unmapped->blobs.push_back(std::move(blob));
    blob.live = 0;
  }
  if (any) {
    std::erase_if(shard->blobs, [](const CompressedBlob& blob) { return blob.live == 0; });
    std::sort(shard->blobs.begin(), shard->blobs.end(), first_live_less);
  }
  // One that was not cut now was looked at before; only a clone may have gone since.
  const auto may_gain = [cut](const CompressedBlob& blob) { return blob.is_worn() && (cut || blob.is_shared()); };
  if (std::any_of(shard->blobs.begin(), shard->blobs.end(), may_gain)) {
    unmapped->worn_shards.push_back(number);
  }
  return any;
}

std::vector<CompressedBlob> ExtentMap::blobs(uint32_t number, bool only_worn) const {
  std::vector<CompressedBlob> blobs;
  vtkv::MutexLock lock(m_mutex);
  if (const auto found = m_shards.find(number); found != m_shards.end()) {
    std::copy_if(found->second.blobs.begin(), found->second.blobs.end(), std::back_inserter(blobs),
                 [&](const CompressedBlob& blob) { return !only_worn || blob.is_worn(); });
  }
  return blobs;
}

void ExtentMap::insert_blob(uint32_t number, CompressedBlob blob) {
  vtkv::MutexLock lock(m_mutex);
  ExtentShard& target = shard_locked(number);
  CompressedBlob::for_each_run(blob.live, [&](uint32_t first, uint32_t count) {
    for (uint32_t block = first; block < first + count; ++block) {
      ceph_assert(!target.is_mapped(block));
    }
  });
  m_blob_bytes += memory_of(blob);
  const auto at = std::lower_bound(target.blobs.begin(), target.blobs.end(), blob, first_live_less);
  target.blobs.insert(at, std::move(blob));
  mark_dirty(number);
}

void ExtentMap::insert(uint64_t first, uint64_t count, SlotAddress slot, uint32_t slot_block,
                       uint32_t slot_written_blocks, bool shared, const uint32_t* crc32c) {
  vtkv::MutexLock lock(m_mutex);
  for (ShardSteps step(first, count); step.next();) {
    ExtentShard& target = shard_locked(step.number);
    auto& extents = target.extents;
    const auto at =
        std::find_if(extents.begin(), extents.end(), [&](const Extent& extent) { return extent.block >= step.begin; });
    ceph_assert(at == extents.end() || step.begin + step.count <= at->block);
    ceph_assert(at == extents.begin() || uint32_t{std::prev(at)->block} + std::prev(at)->count <= step.begin);
    for (const CompressedBlob& blob : target.blobs) {
      ceph_assert((blob.live & block_bits(step.begin, step.begin + step.count)) == 0);
    }
    m_extents_allocated -= extents.capacity();
    extents.insert(at, Extent{static_cast<uint8_t>(step.begin), static_cast<uint8_t>(step.count), shared, slot,
                              slot_block, slot_written_blocks});
    m_extents_allocated += extents.capacity();
    std::copy(crc32c, crc32c + step.count, target.crc32c.begin() + step.begin);
    mark_dirty(step.number);
    slot_block += step.count;
    crc32c += step.count;
  }
}

void ExtentMap::share(uint64_t first, uint64_t count) {
  vtkv::MutexLock lock(m_mutex);
  for (ShardSteps step(first, count); step.next();) {
    ExtentShard& target = shard_locked(step.number);
    const uint32_t end = step.begin + step.count;
    bool changed = false;
    for (const Extent& extent : target.extents) {
      changed |= !extent.shared && extent.block < end && step.begin < uint32_t{extent.block} + extent.count;
    }
    for (CompressedBlob& blob : target.blobs) {
      if ((blob.live & block_bits(step.begin, end)) != 0 && blob.share()) {
        mark_dirty(step.number);
      }
    }
    if (!changed) {
      continue;
    }
    const size_t at = split_counted(&target, step.begin, end);
    for (size_t i = at; i < target.extents.size() && target.extents[i].block < end; ++i) {
      target.extents[i].shared = true;
    }
    mark_dirty(step.number);
  }
}

size_t ExtentMap::split_counted(ExtentShard* shard, uint32_t first, uint32_t last) {
  VTKV_ASSERT(m_extents_allocated >= shard->extents.capacity());
  m_extents_allocated -= shard->extents.capacity();
  const size_t at = split_at(shard, first, last);
  m_extents_allocated += shard->extents.capacity();
  return at;
}

std::vector<uint32_t> ExtentMap::take_dirty() {
  std::vector<uint32_t> dirty;
  dirty.swap(m_dirty);
  std::sort(dirty.begin(), dirty.end());
  dirty.erase(std::unique(dirty.begin(), dirty.end()), dirty.end());
  return dirty;
}

void ExtentMap::clear() {
  vtkv::MutexLock lock(m_mutex);
  m_shards.clear();
  m_extents_allocated = 0;
  m_blob_bytes = 0;
  m_dirty.clear();
  m_all_loaded = true;
  ++m_generation;
}

void ExtentMap::take(ExtentMap* other) {
  std::map<uint32_t, ExtentShard> shards;
  size_t extents_allocated = 0, blob_bytes = 0;
  bool all_loaded = false;
  {
    vtkv::MutexLock lock(other->m_mutex);
    shards.swap(other->m_shards);
    extents_allocated = std::exchange(other->m_extents_allocated, 0);
    blob_bytes = std::exchange(other->m_blob_bytes, 0);
    all_loaded = std::exchange(other->m_all_loaded, true);
    ++other->m_generation;
  }
  vtkv::MutexLock lock(m_mutex);
  m_shards = std::move(shards);
  m_extents_allocated = extents_allocated;
  m_blob_bytes = blob_bytes;
  m_all_loaded = all_loaded;
  ++m_generation;
  m_dirty = std::exchange(other->m_dirty, {});
}

// Called for each read, and for each changed object of each transaction, so it does not look into the shards.
size_t ExtentMap::memory_bytes() const {
  constexpr size_t kMapNodeBytes = 40;  // its links and the shard's number
  constexpr size_t kAllocatorBytes = 8;  // what it rounds up, in the mean
  vtkv::MutexLock lock(m_mutex);
  return m_shards.size() * (sizeof(ExtentShard) + kMapNodeBytes + kAllocatorBytes) +
         m_extents_allocated * sizeof(Extent) + m_blob_bytes;
}

}  // namespace swimstore
