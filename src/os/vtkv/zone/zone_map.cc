#include "vtkv/zone/zone_map.h"

#include <algorithm>
#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

void ZoneMap::pin_locked(uint64_t offset, uint64_t bytes, int change) {
  if (bytes == 0) {
    return;
  }
  const uint64_t last = (offset + bytes - 1) / m_zone_bytes;
  if (m_pins.size() <= last) {
    m_pins.resize(last + 1);
  }
  for (uint64_t zone = offset / m_zone_bytes; zone <= last; ++zone) {
    VTKV_ASSERT(change > 0 || m_pins[zone] > 0);
    m_pins[zone] += change;
  }
}

void ZoneMap::pin(uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(m_lock);
  pin_locked(offset, bytes, 1);
}

void ZoneMap::unpin(uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(m_lock);
  pin_locked(offset, bytes, -1);
}

uint64_t ZoneMap::file_bytes() const {
  std::lock_guard lock(m_lock);
  return m_pins.size() * m_zone_bytes;
}

uint64_t ZoneMap::pinned_bytes() const {
  std::lock_guard lock(m_lock);
  return (m_pins.size() - std::count(m_pins.begin(), m_pins.end(), 0u)) * m_zone_bytes;
}

void ZoneMap::drop_tail(ZoneRange* tail) {
  pin_locked(tail->offset, tail->bytes, -1);
  *tail = {};
}

ZoneRange ZoneMap::acquire(ZoneStream stream, uint64_t bytes_min, bool* grown) {
  std::lock_guard lock(m_lock);
  *grown = false;
  ZoneRange& tail = m_tails[static_cast<size_t>(stream)];
  if (tail.bytes >= bytes_min && tail.bytes > 0) {
    return std::exchange(tail, {});  // its pin goes to the caller
  }
  drop_tail(&tail);
  const uint64_t wanted = std::max<uint64_t>(1, (bytes_min + m_zone_bytes - 1) / m_zone_bytes);
  uint64_t first = 0, free = 0;
  while (free < wanted && first + free < m_pins.size()) {
    if (m_pins[first + free] == 0) {
      ++free;
    } else {
      first += free + 1;
      free = 0;
    }
  }
  *grown = first + wanted > m_pins.size();
  const ZoneRange range{first * m_zone_bytes, wanted * m_zone_bytes};
  pin_locked(range.offset, range.bytes, 1);
  return range;
}

void ZoneMap::release(ZoneStream stream, const ZoneRange& range, uint64_t written_bytes) {
  std::lock_guard lock(m_lock);
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

}  // namespace vtkv
