// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks whose read failed while recovery checked the log. The record stands; reads of them give an error
// until the slot changes hands. Marks of a record that recovery dropped all the same, or whose slot it frees again,
// are none: what is written there later is somebody else's, and whole.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "swimstore/format/note_record.h"
#include "swimstore/format/size_class.h"
#include "vtkv/util/mutex.h"
#include "vtkv/write_batch.h"

namespace swimstore {

class DamageList {
 public:
  void add(const vtkv::ExternalWrite& write) {
    vtkv::MutexLock lock(m_lock);
    const SlotAddress slot{static_cast<uint8_t>(write.container), write.slot};
    const uint32_t first = write.offset / kBlockBytes;
    const uint32_t end = (write.offset + write.length + kBlockBytes - 1) / kBlockBytes;
    m_blocks.emplace(slot.packed(), std::pair{first, end});
    m_empty = false;
  }

  // Once, when recovery has found out who owns what.
  template <class IsOwned>
  void keep_only(IsOwned is_owned) {
    vtkv::MutexLock lock(m_lock);
    const auto marked = m_blocks;
    for (const auto& [packed, range] : marked) {
      const SlotAddress slot = SlotAddress::unpack(packed);
      for (uint32_t block = range.first; block < range.second; ++block) {
        if (!is_owned(SlotBlocks{slot, block, 1, slot_blocks(slot.size_class)})) {
          remove(packed, block, block + 1);
        }
      }
    }
    m_empty = m_blocks.empty();
  }

  bool contains(SlotAddress slot, uint32_t block) const {
    if (m_empty.load(std::memory_order_relaxed)) {
      return false;
    }
    vtkv::MutexLock lock(m_lock);
    const auto [begin, end] = m_blocks.equal_range(slot.whole().packed());
    block += slot.first_block();
    for (auto it = begin; it != end; ++it) {
      if (block >= it->second.first && block < it->second.second) {
        return true;
      }
    }
    return false;
  }

  void apply(const AllocationDelta& delta) {
    if (m_empty.load(std::memory_order_relaxed)) {
      return;
    }
    vtkv::MutexLock lock(m_lock);
    for (const SlotBlocks& blocks : delta.freed) {
      remove(blocks.slot.whole().packed(), blocks.first_block(), blocks.first_block() + blocks.count);
    }
    m_empty = m_blocks.empty();
  }

 private:
  using Range = std::pair<uint32_t, uint32_t>;  // [first, end) blocks

  // What is left of a range on either side stays.
  void remove(uint64_t slot, uint32_t first, uint32_t end) REQUIRES(m_lock) {
    const auto [begin, past] = m_blocks.equal_range(slot);
    std::vector<Range> left;
    for (auto it = begin; it != past; ++it) {
      if (it->second.first < std::min(first, it->second.second)) {
        left.emplace_back(it->second.first, std::min(first, it->second.second));
      }
      if (std::max(end, it->second.first) < it->second.second) {
        left.emplace_back(std::max(end, it->second.first), it->second.second);
      }
    }
    m_blocks.erase(begin, past);
    for (const Range& range : left) {
      m_blocks.emplace(slot, range);
    }
  }

  mutable vtkv::Mutex m_lock;
  std::multimap<uint64_t, Range> m_blocks GUARDED_BY(m_lock);  // by whole slot
  std::atomic<bool> m_empty{true};                             // changed under m_lock
};

}  // namespace swimstore
