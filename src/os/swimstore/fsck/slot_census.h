// Who refers to which blocks of which slot, as found in the objects' extents.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "swimstore/format/extent_record.h"

namespace swimstore {

class SlotCensus {
 public:
  struct Entry {
    uint32_t written_blocks = 0;
    uint64_t references = 0;      // blocks, each as often as it is referred to
    uint64_t counted = 0;         // what the tree's reference count says
    bool has_count = false;
    std::vector<bool> exclusive;  // blocks that an extent without the shared flag refers to
  };

  // Returns a sentence's end ("claims …") when the extent contradicts itself or an earlier one.
  std::string add(const Extent& extent);
  void add_count(SlotAddress slot, uint32_t references);
  const std::unordered_map<uint64_t, Entry>& entries() const { return m_entries; }

 private:
  std::unordered_map<uint64_t, Entry> m_entries;  // by packed address
};

// "slot 17 of 64 KiB"
std::string describe_slot(SlotAddress slot);

}  // namespace swimstore
