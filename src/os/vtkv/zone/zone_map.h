// SPDX-License-Identifier: LGPL-2.1-or-later
// Which zones of the tree's file are in use, and which of them the host has given space.
//
// Every run that exists (in a version, a manifest copy or a reader's hand) and every writer under way pins
// the zones it touches; a zone without a pin is free and may be overwritten. What is written behind the
// last span of a run is given to the next writer of the same stream.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

// Data of different lifetime goes to different zones, so that zones become free as a whole. A run has all its bytes,
// filter and descriptor included, in one stream.
enum class ZoneStream : uint8_t {
  flush,  // runs of level 0
  tier,   // between level 0 and the last level
  last,   // parts of the last level: they live the longest
  rest,   // the rest of a run that a step cut: a few blocks and a descriptor, until the next step
};
inline constexpr size_t kZoneStreams = 4;

// A range of the file that one writer has for itself.
struct ZoneRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class ZoneMap {
 public:
  // The file has that many zones. Whether the host has space for them is not known.
  ZoneMap(uint64_t zone_bytes, uint64_t zones) : m_zone_bytes(zone_bytes), m_zones(zones) {}
  // The host has space for all zones but for these parts of the file.
  void set_holes(const std::vector<FileRange>& holes);

  uint64_t zone_bytes() const { return m_zone_bytes; }
  // Of the file: the zones known so far, holes as well.
  uint64_t file_bytes() const;
  // Of these, the zones that have space, or may have.
  uint64_t allocated_bytes() const;
  uint64_t pinned_bytes() const;
  std::vector<bool> pinned() const;  // by zone
  std::vector<uint64_t> open_zones() const;  // that some next writer goes on in

  // Every zone that [offset, offset + bytes) touches. REQUIRES for unpin: it was pinned.
  void pin(uint64_t offset, uint64_t bytes);
  void unpin(uint64_t offset, uint64_t bytes);

  // Hands out at least `bytes_min` contiguous bytes, pinned: the rest of the stream's last zone, or zones that are free
  // or new ones behind the end of the file. The zones that lack the least space come first, and of these the first in
  // the file: a host that is full has none to add. *needs_space: the host has to reserve space for it.
  ZoneRange acquire(ZoneStream stream, uint64_t bytes_min, bool* needs_space);
  // The host has no space for the range: it is free again.
  void cancel(const ZoneRange& range);
  // The writer is done: `written` is pinned by its runs by now (or is given up); `rest`, the tail of the
  // range that it never wrote to, goes to the next writer.
  void release(ZoneStream stream, const ZoneRange& range, uint64_t written_bytes);

  // The next writers do not go on in these zones.
  void drop_tails(const std::set<uint64_t>& zones);

  // Of what a step of a compaction writes, about: as much free space stays for it.
  void set_step_bytes(uint64_t bytes);
  // Free zones that have space, but for a few that stay (spare_zones_most), pinned, to be given back to the host;
  // end_give_back() ends that for each. Several are taken at once, so that zones in steady use keep theirs. `all`: none
  // stays, not even for the next writer of a stream.
  std::vector<ZoneRange> take_surplus(bool all = false);
  // Unpins one of them. `gone`: its space is; otherwise the host may have kept some.
  void end_give_back(const ZoneRange& range, bool gone);

 private:
  // Of the host, the least that it may have to add first. A zone of unknown space has all of it, a part, or none.
  enum class Space : uint8_t { known, unknown, none };
  struct Zone {
    uint32_t pins = 0;
    Space space = Space::unknown;
  };

  uint64_t count(bool (*is_such)(const Zone& zone)) const REQUIRES(m_lock);
  // So many free zones keep their space. It serves the step of a compaction that makes other zones free, and counts as
  // used.
  uint64_t spare_zones_most(uint64_t pinned_zones) const REQUIRES(m_lock);
  // How much the host may have to add before somebody writes there; 0: nothing.
  uint64_t lacks(uint64_t zone) const REQUIRES(m_lock);
  // The first of so many free zones in a row, which may lie behind the end of the file.
  uint64_t find_free(uint64_t wanted) const REQUIRES(m_lock);
  void pin_locked(uint64_t offset, uint64_t bytes, int change) REQUIRES(m_lock);
  void drop_tail(ZoneRange* tail) REQUIRES(m_lock);
  void drop_lone_tails() REQUIRES(m_lock);

  const uint64_t m_zone_bytes;
  mutable Mutex m_lock;
  std::vector<Zone> m_zones GUARDED_BY(m_lock);
  uint64_t m_step_bytes GUARDED_BY(m_lock) = 0;
  std::array<ZoneRange, kZoneStreams> m_tails GUARDED_BY(m_lock){};  // each pins its zone
};

}  // namespace vtkv
