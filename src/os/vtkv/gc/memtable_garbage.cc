// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/memtable_garbage.h"

#include <algorithm>

#include "vtkv/tree/overwrite_sample.h"

namespace vtkv {

namespace {

constexpr uint64_t kGainMin = 2;  // bytes freed for one that the flush writes, about

// Of the log, about, that it would be with a flush.
uint64_t garbage_bytes(const MemTable& memtable, const std::shared_ptr<const Version>& version) {
  ValueDelta delta;
  OverwriteSample sample(version, memtable.entries(), &delta);
  const auto entries = memtable.new_iterator();
  for (entries->seek_to_first(); entries->valid(); entries->next()) {
    sample.see(entries->entry().key);
  }
  sample.see_ranges(memtable.range_tombstones());
  return delta.hidden_bytes();
}

}  // namespace

std::optional<std::chrono::microseconds> MemtableGarbage::look(const ReadState& state, SequenceNumber visible,
                                                               uint64_t now_us, uint64_t segment_bytes,
                                                               bool* worth_flushing) {
  *worth_flushing = false;
  const MemTable& memtable = *state.memtables.front();
  if (visible == m_examined || memtable.empty()) {
    return std::nullopt;
  }
  if (visible != m_seen) {
    m_seen = visible;
    m_seen_us = now_us;
  }
  const auto idle = std::chrono::microseconds(now_us - m_seen_us);
  if (idle < kIdle) {
    return kIdle - idle;
  }
  m_examined = visible;
  const uint64_t written = memtable.memory_bytes() - memtable.kept_bytes();
  *worth_flushing = garbage_bytes(memtable, state.version) >= std::max(segment_bytes, kGainMin * written);
  return std::nullopt;
}

}  // namespace vtkv
