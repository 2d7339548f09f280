// SPDX-License-Identifier: LGPL-2.1-or-later
// Who refers to which blocks of which slot, as found in the objects' extents.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "swimstore/format/extent_record.h"
#include "swimstore/format/slot_references.h"

namespace swimstore {

class ReferenceAudit {
 public:
  // Of a slot, or a fragment of one, that one write filled.
  struct Entry {
    uint32_t written_blocks = 0;   // the most that an extent says
    uint64_t references = 0;       // blocks, each as often as it is referred to
    bool conflict = false;         // extents contradict each other
    int64_t pool = 0;              // of the last that referred to it
    std::vector<bool> referenced;  // by block
    std::vector<bool> exclusive;   // blocks that an extent without the shared flag refers to
    SlotReferences::Counts found;  // by block; empty while no extent with the shared flag refers to it
    SlotReferences::Counts kept;   // what the tree's entries say; empty when there is none

    uint32_t found_of(uint32_t block) const {
      return block < found.size() ? found[block] : block < referenced.size() && referenced[block];
    }
    // How many references the store assumes, where there is one.
    uint32_t kept_of(uint32_t block) const { return block < kept.size() ? kept[block] : 1; }
    uint64_t blocks() const;  // that are referred to
    // Blocks with more references than are kept count: to lose one would give a block away that is in use.
    bool has_more_than_kept() const;
    bool has_fewer_than_kept() const;
    // As they should be kept.
    SlotReferences::Counts counts() const;
  };

  // Returns a sentence's end ("claims …") when the extent contradicts an earlier one.
  std::string add(const Extent& extent, int64_t pool);
  // What the tree's entry of this group says, of each of its blocks.
  void add_counts(SlotAddress slot, uint32_t group, const SlotReferences::Counts& counts);
  // By packed address.
  using Entries = std::unordered_map<uint64_t, Entry>;
  const Entries& entries() const { return m_entries; }
  // At its end: adds to *damaged what repair needs, the entries of each slot that extents contradict each other about,
  // with its fragments, and of these `slots` (packed).
  void move_damaged(const std::unordered_set<uint64_t>& slots, Entries* damaged);
  uint64_t bytes() const { return m_bytes; }  // of memory, about
  // What it grows by for a slot that is neither split nor shared.
  static constexpr uint64_t slot_memory_bytes(unsigned size_class) {
    return kEntryBytes + kWholeBytes + 3 * bitmap_bytes(slot_blocks(size_class));
  }
  // nullptr: nothing refers to it and it has no count.
  const Entry* find(SlotAddress slot) const;
  // Of `owned` blocks of a whole slot, as the containers say, the runs that nothing refers to. `split`: the slot is; of
  // one that is not, what was never written belongs to its one owner.
  std::vector<SlotBlocks> unreferenced(const SlotBlocks& owned, bool split) const;

 private:
  // With its node, its place in the table and what allocations cost.
  static constexpr uint64_t kEntryBytes = sizeof(Entry) + 60;
  static constexpr uint64_t kWholeBytes = 80;
  static constexpr uint64_t bitmap_bytes(uint32_t blocks) { return blocks / 8; }

  std::string claim_in_whole(const Extent& extent, uint32_t block);

  Entry& entry_of(SlotAddress slot);

  uint64_t m_bytes = 0;
  Entries m_entries;
  std::unordered_map<uint64_t, std::vector<bool>> m_referenced;  // blocks of whole slots, by packed address
};

// "slot 17 of 64 KiB", "slot 17 of 64 KiB, blocks 4 to 7"
std::string describe_slot(SlotAddress slot);
std::string describe_blocks(const SlotBlocks& blocks);

}  // namespace swimstore
