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
    uint32_t written_blocks = 0;  // the most that an extent says
    uint64_t references = 0;      // blocks, each as often as it is referred to
    uint64_t counted = 0;         // what the tree's reference count says
    bool has_count = false;
    bool conflict = false;        // extents contradict each other
    int64_t pool = 0;             // of the last that referred to it
    std::vector<bool> exclusive;  // blocks that an extent without the shared flag refers to

    // How many references the store believes in.
    uint64_t believed() const { return has_count ? counted : written_blocks; }
  };

  // Returns a sentence's end ("claims …") when the extent contradicts an earlier one.
  std::string add(const Extent& extent, int64_t pool);
  void add_count(SlotAddress slot, uint32_t references);
  const std::unordered_map<uint64_t, Entry>& entries() const { return m_entries; }
  // nullptr: nothing refers to it and it has no count.
  const Entry* find(SlotAddress slot) const;

 private:
  std::unordered_map<uint64_t, Entry> m_entries;  // by packed address
};

// "slot 17 of 64 KiB"
std::string describe_slot(SlotAddress slot);

}  // namespace swimstore
