// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/zone/zone_map.h"

#include <algorithm>
#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
constexpr uint64_t kSpareZonesMin = 4;
}  // namespace

void ZoneMap::pin_locked(uint64_t offset, uint64_t bytes, int change) {
  if (bytes == 0) {
    return;
  }
  const uint64_t last = (offset + bytes - 1) / m_zone_bytes;
  if (m_zones.size() <= last) {
    m_zones.resize(last + 1);
  }
  for (uint64_t zone = offset / m_zone_bytes; zone <= last; ++zone) {
    VTKV_ASSERT(change > 0 ? m_zones[zone].pins < UINT32_MAX : m_zones[zone].pins > 0);
    m_zones[zone].pins += change;
  }
}

void ZoneMap::pin(uint64_t offset, uint64_t bytes) {
  MutexLock lock(m_lock);
  pin_locked(offset, bytes, 1);
}

void ZoneMap::unpin(uint64_t offset, uint64_t bytes) {
  MutexLock lock(m_lock);
  pin_locked(offset, bytes, -1);
}

uint64_t ZoneMap::file_bytes() const {
  MutexLock lock(m_lock);
  return m_zones.size() * m_zone_bytes;
}

uint64_t ZoneMap::pinned_bytes() const {
  MutexLock lock(m_lock);
  return (m_zones.size() - free_zones()) * m_zone_bytes;
}

std::vector<bool> ZoneMap::pinned() const {
  MutexLock lock(m_lock);
  std::vector<bool> result;
  for (const Zone& zone : m_zones) {
    result.push_back(zone.pins > 0);
  }
  return result;
}

std::vector<uint64_t> ZoneMap::open_zones() const {
  MutexLock lock(m_lock);
  std::vector<uint64_t> zones;
  for (const ZoneRange& tail : m_tails) {
    if (tail.bytes > 0) {
      zones.push_back(tail.offset / m_zone_bytes);
    }
  }
  return zones;
}

uint64_t ZoneMap::free_zones() const {
  return std::count_if(m_zones.begin(), m_zones.end(), [](const Zone& zone) { return zone.pins == 0; });
}

void ZoneMap::drop_tail(ZoneRange* tail) {
  pin_locked(tail->offset, tail->bytes, -1);
  *tail = {};
}

void ZoneMap::drop_tails(const std::set<uint64_t>& zones) {
  MutexLock lock(m_lock);
  for (ZoneRange& tail : m_tails) {
    if (tail.bytes > 0 && zones.contains(tail.offset / m_zone_bytes)) {
      drop_tail(&tail);
    }
  }
}

ZoneRange ZoneMap::acquire(ZoneStream stream, uint64_t bytes_min, bool* needs_space) {
  MutexLock lock(m_lock);
  *needs_space = false;
  ZoneRange& tail = m_tails[static_cast<size_t>(stream)];
  if (tail.bytes >= bytes_min && tail.bytes > 0) {
    return std::exchange(tail, {});  // its pin goes to the caller
  }
  drop_tail(&tail);
  const uint64_t wanted = std::max<uint64_t>(1, (bytes_min + m_zone_bytes - 1) / m_zone_bytes);
  uint64_t first = 0, free = 0;
  while (free < wanted && first + free < m_zones.size()) {
    if (m_zones[first + free].pins == 0) {
      ++free;
    } else {
      first += free + 1;
      free = 0;
    }
  }
  const ZoneRange range{first * m_zone_bytes, wanted * m_zone_bytes};
  pin_locked(range.offset, range.bytes, 1);
  for (uint64_t zone = first; zone < first + wanted; ++zone) {
    *needs_space = *needs_space || !m_zones[zone].has_space;
    m_zones[zone].has_space = true;
  }
  return range;
}

void ZoneMap::cancel(const ZoneRange& range) {
  MutexLock lock(m_lock);
  for (uint64_t zone = range.offset / m_zone_bytes; zone * m_zone_bytes < range.offset + range.bytes; ++zone) {
    m_zones[zone].has_space = false;
  }
  pin_locked(range.offset, range.bytes, -1);
}

void ZoneMap::release(ZoneStream stream, const ZoneRange& range, uint64_t written_bytes) {
  MutexLock lock(m_lock);
  VTKV_ASSERT(written_bytes <= range.bytes);
  ZoneRange rest{range.offset + written_bytes, range.bytes - written_bytes};
  pin_locked(rest.offset, rest.bytes, 1);
  pin_locked(range.offset, range.bytes, -1);
  ZoneRange& tail = m_tails[static_cast<size_t>(stream)];
  if (tail.bytes < rest.bytes) {
    std::swap(tail, rest);
  }
  drop_tail(&rest);
}

std::vector<ZoneRange> ZoneMap::take_surplus(bool all) {
  MutexLock lock(m_lock);
  std::vector<uint64_t> spare;
  uint64_t pinned = 0;
  for (uint64_t zone = 0; zone < m_zones.size(); ++zone) {
    pinned += m_zones[zone].pins > 0;
    if (m_zones[zone].pins == 0 && m_zones[zone].has_space) {
      spare.push_back(zone);
    }
  }
  const uint64_t keep = all ? 0 : kSpareZonesMin + pinned / 8;
  std::vector<ZoneRange> surplus;
  if (spare.size() <= 2 * keep) {
    return surplus;
  }
  for (size_t i = keep; i < spare.size(); ++i) {  // the first ones are the next to be used
    surplus.push_back({spare[i] * m_zone_bytes, m_zone_bytes});
    pin_locked(surplus.back().offset, surplus.back().bytes, 1);
    m_zones[spare[i]].has_space = false;
  }
  return surplus;
}

}  // namespace vtkv
