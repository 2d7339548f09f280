// Blocks whose read failed while recovery checked the log. The record stands; reads of them give an error
// until the slot changes hands. Marks of a record that recovery dropped all the same, or whose slot it frees again,
// are none: what is written there later is somebody else's, and whole.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "swimstore/container/size_class.h"
#include "swimstore/format/note_record.h"
#include "vtkv/write_batch.h"

namespace swimstore {

class DamageList {
 public:
  void add(const vtkv::ExternalWrite& write) {
    std::lock_guard lock(m_lock);
    const SlotAddress slot{static_cast<uint8_t>(write.container), write.slot};
    const uint32_t first = write.offset / kBlockBytes;
    const uint32_t end = (write.offset + write.length + kBlockBytes - 1) / kBlockBytes;
    m_blocks.emplace(slot.packed(), std::pair{first, end});
    m_empty = false;
  }

  // Once, when recovery has found out who owns what.
  template <class IsOwned>
  void keep_only(IsOwned is_owned) {
    std::lock_guard lock(m_lock);
    std::erase_if(m_blocks, [&](const auto& entry) { return !is_owned(SlotAddress::unpack(entry.first)); });
    m_empty = m_blocks.empty();
  }

  bool contains(SlotAddress slot, uint32_t block) const {
    if (m_empty.load(std::memory_order_relaxed)) {
      return false;
    }
    std::lock_guard lock(m_lock);
    const auto [begin, end] = m_blocks.equal_range(slot.packed());
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
    std::lock_guard lock(m_lock);
    for (const SlotAddress& slot : delta.freed) {
      m_blocks.erase(slot.packed());
    }
    m_empty = m_blocks.empty();
  }

 private:
  mutable std::mutex m_lock;
  std::multimap<uint64_t, std::pair<uint32_t, uint32_t>> m_blocks;  // by slot: [first, end) blocks
  std::atomic<bool> m_empty{true};
};

}  // namespace swimstore
