// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/disk_crash.h"

#include <fmt/format.h>

#include <algorithm>

namespace vtkv {

namespace {

using Kind = DiskEvent::Kind;

constexpr const char* kKinds[] = {
    "none", "all", "a prefix", "all but one", "one", "half", "half of the blocks of half"};
constexpr unsigned kNone = 0;

// Whether write number `n` of `count` lands; `chosen` is a number below `count`.
bool lands(unsigned kind, size_t n, size_t chosen, std::mt19937_64& random) {
  switch (kind) {
    case kNone:
      return false;
    case 1:
      return true;
    case 2:
      return n <= chosen;
    case 3:
      return n != chosen;
    case 4:
      return n == chosen;
    default:
      return random() % 2 == 0;
  }
}

bool tears(unsigned kind) { return kind + 1 == std::size(kKinds); }

void put(const DiskEvent& event, uint32_t i, DiskImage* image) {
  (*image)[event.block + i] = event.kind == Kind::write ? event.copy + i : 0;
}

bool is_change(const DiskEvent& event) { return event.kind == Kind::write || event.kind == Kind::zeros; }

}  // namespace

DiskCrashes::DiskCrashes(DiskTrace trace, uint64_t from) : m_trace(std::move(trace)) {
  uint64_t end = from;
  for (const DiskEvent& event : m_trace.events) {
    if (event.kind == Kind::flush && event.completed > from && event.completed != kDiskNever) {
      m_moments.push_back(event.completed - 1);
    }
    end = std::max(end, event.completed == kDiskNever ? event.submitted : event.completed);
  }
  m_moments.push_back(end);
}

// Writes are put on the disk in the order in which they were submitted.
std::vector<const DiskEvent*> DiskCrashes::in_doubt(uint64_t time, DiskImage* durable) const {
  uint64_t covered = 0;  // what had completed by then is durable
  for (const DiskEvent& event : m_trace.events) {
    if (event.kind == Kind::flush && event.completed <= time) {
      covered = std::max(covered, event.submitted);
    }
  }
  *durable = m_trace.before;
  std::vector<const DiskEvent*> result;
  for (const DiskEvent& event : m_trace.events) {
    if (!is_change(event) || event.submitted > time) {
      continue;
    }
    if (event.completed > covered) {
      result.push_back(&event);
      continue;
    }
    for (uint32_t i = 0; i < event.count; ++i) {
      put(event, i, durable);
    }
  }
  return result;
}

DiskCrash DiskCrashes::crash(uint64_t time, unsigned kind, std::mt19937_64& random) const {
  DiskCrash result{.time = time};
  const std::vector<const DiskEvent*> writes = in_doubt(time, &result.image);
  const size_t chosen = writes.empty() ? 0 : random() % writes.size();
  size_t landed = 0;
  for (size_t n = 0; n < writes.size(); ++n) {
    if (!lands(kind, n, chosen, random)) {
      continue;
    }
    ++landed;
    for (uint32_t i = 0; i < writes[n]->count; ++i) {
      if (!tears(kind) || random() % 2 == 0) {
        put(*writes[n], i, &result.image);
      }
    }
  }
  for (const DiskEvent& event : m_trace.events) {
    if (event.kind == Kind::mark && event.submitted <= time) {
      result.marks.push_back(event.mark);
    }
  }
  result.story =
      fmt::format("at time {}, of {} writes in doubt {} landed ({})", time, writes.size(), landed, kKinds[kind]);
  return result;
}

DiskCrash DiskCrashes::next(std::mt19937_64& random) {
  return crash(m_moments[random() % m_moments.size()], m_next_kind++ % std::size(kKinds), random);
}

DiskCrash DiskCrashes::nothing_landed() {
  std::mt19937_64 random;
  return crash(m_moments.back(), kNone, random);
}

}  // namespace vtkv
