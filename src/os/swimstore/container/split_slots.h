// SPDX-License-Identifier: LGPL-2.1-or-later
// The slots of one container that are split: what dies of a large slot is given to smaller writes, in place.
//
// A slot splits when some of the blocks written to it are freed; from then on each of its blocks is owned, or waits
// for the reuse horizon, or is free. A write takes a free fragment: 2^k blocks at a multiple of their number, as in a
// buddy system, so that fragments find together again by themselves when their neighbours are freed. Splitting and
// uniting cost no I/O.
//
// For each block there are three bits; two as there are two states of a slot (container_set.h):
//   free    may be handed out: not reserved, owned, or waiting, i.e. not busy
//   owned   as of the last applied sequence; what the tree's entry of the slot holds (format/split_slot.h)
//   primed  written and synced since it was last punched; of one that is owned: when it is free, at the latest. Whoever
//           owned a block has written it, so a slot that was never filled or that was punched in part becomes primed
//           block by block. It is kept in memory alone: after an open, all of a slot's or none, as its page says.
// Invariants: free => not owned. A slot without a busy block is split no more. All blocks of a slot that is primed are.
//
// Source: buddy allocation, Knowlton 1965 (CACM 8:10); the paper (HotStorage '18, 3.2) punches dead fragments instead.
//
// Memory: the three bits, and for each slot of the container 1 byte (of 8 KiB) to 3 (of 4 MiB): 400 bytes for a split
// slot of 4 MiB, 9 for one of 64 KiB. Costs: a look at the slot's words, 16 of them for 4 MiB, and a step in a bitmap
// or two. Not thread-safe.
#pragma once

#include <array>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "swimstore/container/slot_bitmap.h"
#include "swimstore/format/size_class.h"
#include "swimstore/format/split_slot.h"
#include "vtkv/util/sparse_table.h"

namespace swimstore {

class SplitSlots {
 public:
  // Bit i of word j: block 64 * j + i.
  using Words = boost::container::static_vector<uint64_t, slot_blocks(kSizeClasses - 1) / 64>;
  enum class Wanted { any, primed_first, primed };

  explicit SplitSlots(unsigned container) : m_container(container), m_slots(3 * bitmap_bytes()) {}

  bool contains(uint64_t slot) const { return m_slots.contains(slot); }
  // From now on no fragment of it is handed out. Before finish_recovery(), or while it is not split.
  void quarantine(uint64_t slot) { m_quarantined.insert(slot); }
  // Splits the slot: all of it is busy, its first `owned` blocks are owned, its first `primed` ones primed.
  void split(uint64_t slot, uint32_t owned, uint32_t primed);
  // The slot is split no more; whoever names it next names all of it. REQUIRES: no block of it is owned.
  void unite(uint64_t slot);

  // How many fragments of 2^size_class blocks may be handed out; how many of them are primed.
  uint64_t fragments(unsigned size_class) const { return m_free.counts[size_class]; }
  uint64_t primed_fragments(unsigned size_class) const { return m_primed.counts[size_class]; }
  // Finds a free fragment of 2^size_class blocks and makes the first `blocks` of them busy; one that is part of no
  // larger fragment, if there is one in the slot. False: there is none.
  bool take(unsigned size_class, uint32_t blocks, Wanted wanted, uint64_t* slot, uint32_t* first);
  // Makes these busy; false when one of them is.
  bool take_these(uint64_t slot, uint32_t first, uint32_t count);
  // REQUIRES: they are busy and not owned. False: nothing of the slot is busy any more, unite() it.
  bool put_back(uint64_t slot, uint32_t first, uint32_t count);

  // REQUIRES: contains(slot), for all that follow.
  void set_primed(uint64_t slot, uint32_t first, uint32_t count, bool primed);
  bool is_primed(uint64_t slot, uint32_t first, uint32_t count) const;  // all of them
  void set_owned(uint64_t slot, uint32_t first, uint32_t count, bool owned);
  bool is_owned(uint64_t slot, uint32_t first, uint32_t count) const;  // all of them
  bool is_free(uint64_t slot, uint32_t first, uint32_t count) const;  // none of them owned
  bool owns_any(uint64_t slot) const;

  // For checkpoints: the slots whose owners changed since the last call, split or not, ascending.
  struct Changed {
    std::vector<uint64_t> slots;
    std::vector<uint64_t> owned;  // words for each of them, as in SplitSlotRecord; zeros: no block of it, or not split

    std::span<const uint64_t> owned_of(size_t which) const {
      const size_t words = owned.size() / slots.size();
      return std::span(owned).subspan(which * words, words);
    }
  };
  Changed take_changed();
  // Recovery: owned blocks as of the checkpoint; all blocks are primed, or none.
  void load(const SplitSlotRecord& record, bool primed);
  // Makes busy what is owned, and the rest of the slots free.
  void finish_recovery();

  uint64_t slots() const { return m_slots.size(); }
  uint64_t slots_with_owner() const { return m_slots_with_owner; }
  uint64_t owned_blocks() const { return m_owned_blocks; }
  uint64_t free_blocks() const { return m_free.counts[0]; }
  // Runs of owned blocks of the slot: first, count. REQUIRES: contains(slot).
  std::vector<std::pair<uint32_t, uint32_t>> owned_runs(uint64_t slot) const;
  uint64_t memory_bytes() const;

 private:
  using Counts = std::array<uint16_t, kSizeClasses>;  // of fragments, by size
  struct Slot {
    Words free;
    Words owned;
    Words primed;
  };
  // Where there are fragments of one kind.
  struct Index {
    std::array<SlotBitmap, kSizeClasses> by_largest;  // slots by their largest fragment
    std::array<uint64_t, kSizeClasses> counts{};  // sums over all slots

    void change(uint64_t slot, const Counts& before, const Counts& after);
    uint64_t find(unsigned size_class) const;  // REQUIRES: counts[size_class] > 0
  };

  uint32_t blocks() const { return slot_blocks(m_container); }
  size_t words() const { return (blocks() + 63) / 64; }
  size_t bitmap_bytes() const { return (blocks() + 7) / 8; }
  Slot empty() const;  // no bit is set
  Slot at(uint64_t slot) const;  // REQUIRES: contains(slot)
  // Keeps up what follows from the bits: sums, indices, what changed. REQUIRES: contains(slot).
  void replace(uint64_t slot, const Slot& now);
  void insert(uint64_t slot, const Slot& now);
  static void change_index(Index* index, uint64_t slot, const Words& before, const Words& after);
  static Counts count_fragments(const Words& free);
  static int largest(const Counts& fragments);  // class of the largest; -1: none

  const unsigned m_container;
  vtkv::SparseTable m_slots;  // the bits of each: free, owned, primed
  Index m_free, m_primed;
  SlotBitmap m_changed;
  std::unordered_set<uint64_t> m_quarantined;
  uint64_t m_owned_blocks = 0;
  uint64_t m_slots_with_owner = 0;
};

}  // namespace swimstore
