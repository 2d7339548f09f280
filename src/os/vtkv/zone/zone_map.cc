// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/zone/zone_map.h"

#include <algorithm>
#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
constexpr uint64_t kZonesBeside = 2;  // of flushes and indexes
}  // namespace

void ZoneMap::set_step_bytes(uint64_t bytes) {
  MutexLock lock(m_lock);
  m_step_bytes = bytes;
}

void ZoneMap::set_holes(const std::vector<FileRange>& holes) {
  MutexLock lock(m_lock);
  for (Zone& zone : m_zones) {
    zone.space = Space::known;
  }
  for (const FileRange& hole : holes) {
    const uint64_t end = hole.offset + hole.length;
    for (uint64_t zone = hole.offset / m_zone_bytes; zone * m_zone_bytes < end && zone < m_zones.size(); ++zone) {
      const bool all = hole.offset <= zone * m_zone_bytes && (zone + 1) * m_zone_bytes <= end;
      m_zones[zone].space = all ? Space::none : Space::unknown;
    }
  }
}

void ZoneMap::pin_locked(uint64_t offset, uint64_t bytes, int change) {
  if (bytes == 0) {
    return;
  }
  const uint64_t last = (offset + bytes - 1) / m_zone_bytes;
  if (m_zones.size() <= last) {
    m_zones.resize(last + 1, Zone{0, Space::none});
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

uint64_t ZoneMap::allocated_bytes() const {
  MutexLock lock(m_lock);
  return count([](const Zone& zone) { return zone.pins > 0 || zone.space != Space::none; }) * m_zone_bytes;
}

uint64_t ZoneMap::pinned_bytes() const {
  MutexLock lock(m_lock);
  return count([](const Zone& zone) { return zone.pins > 0; }) * m_zone_bytes;
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

uint64_t ZoneMap::count(bool (*is_such)(const Zone& zone)) const {
  return static_cast<uint64_t>(std::count_if(m_zones.begin(), m_zones.end(), is_such));
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

uint64_t ZoneMap::lacks(uint64_t zone) const {
  return zone < m_zones.size() ? static_cast<uint64_t>(m_zones[zone].space) : static_cast<uint64_t>(Space::none);
}

uint64_t ZoneMap::find_free(uint64_t wanted) const {
  uint64_t best = m_zones.size(), least = UINT64_MAX;
  uint64_t free = 0, lacking = 0;  // of the zones before `end`
  for (uint64_t end = 1; end <= m_zones.size() + wanted && least > 0; ++end) {
    if (end <= m_zones.size() && m_zones[end - 1].pins > 0) {
      free = lacking = 0;
      continue;
    }
    lacking += lacks(end - 1);
    if (free == wanted) {
      lacking -= lacks(end - 1 - wanted);
    } else {
      ++free;
    }
    if (free == wanted && lacking < least) {
      least = lacking;
      best = end - wanted;
    }
  }
  return best;
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
  const uint64_t first = find_free(wanted);
  const ZoneRange range{first * m_zone_bytes, wanted * m_zone_bytes};
  pin_locked(range.offset, range.bytes, 1);
  for (uint64_t zone = first; zone < first + wanted; ++zone) {
    *needs_space = *needs_space || m_zones[zone].space != Space::known;
    m_zones[zone].space = Space::known;
  }
  return range;
}

void ZoneMap::cancel(const ZoneRange& range) {
  MutexLock lock(m_lock);
  for (uint64_t zone = range.offset / m_zone_bytes; zone * m_zone_bytes < range.offset + range.bytes; ++zone) {
    m_zones[zone].space = Space::unknown;  // the host may have given a part
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

uint64_t ZoneMap::spare_zones_most(uint64_t pinned_zones) const {
  const uint64_t step_bytes = std::min(pinned_zones * m_zone_bytes, m_step_bytes);
  return (step_bytes + m_zone_bytes - 1) / m_zone_bytes + kZonesBeside;
}

// A tail alone keeps its zone from being free.
void ZoneMap::drop_lone_tails() {
  for (ZoneRange& tail : m_tails) {
    const uint64_t last = (tail.offset + tail.bytes + m_zone_bytes - 1) / m_zone_bytes;
    for (uint64_t zone = tail.offset / m_zone_bytes; zone < last && tail.bytes > 0; ++zone) {
      if (m_zones[zone].pins == 1) {
        drop_tail(&tail);
      }
    }
  }
}

std::vector<ZoneRange> ZoneMap::take_surplus(bool all) {
  MutexLock lock(m_lock);
  if (all) {
    drop_lone_tails();
  }
  std::vector<uint64_t> spare;
  uint64_t pinned = 0;
  for (uint64_t zone = 0; zone < m_zones.size(); ++zone) {
    pinned += m_zones[zone].pins > 0;
    if (m_zones[zone].pins == 0 && m_zones[zone].space != Space::none) {
      spare.push_back(zone);
    }
  }
  const uint64_t most = all ? 0 : spare_zones_most(pinned);
  std::vector<ZoneRange> surplus;
  if (spare.size() <= most) {
    return surplus;
  }
  const uint64_t keep = all ? 0 : most - kZonesBeside;
  for (size_t i = keep; i < spare.size(); ++i) {  // the first ones are the next to be used
    surplus.push_back({spare[i] * m_zone_bytes, m_zone_bytes});
    pin_locked(surplus.back().offset, surplus.back().bytes, 1);
  }
  return surplus;
}

void ZoneMap::end_give_back(const ZoneRange& range, bool gone) {
  MutexLock lock(m_lock);
  for (uint64_t zone = range.offset / m_zone_bytes; zone * m_zone_bytes < range.offset + range.bytes; ++zone) {
    m_zones[zone].space = gone ? Space::none : Space::unknown;
  }
  pin_locked(range.offset, range.bytes, -1);
}

}  // namespace vtkv
