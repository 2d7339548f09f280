// SPDX-License-Identifier: LGPL-2.1-or-later
// The slots of one class: who owns them, which may be handed out, which are primed. No I/O, no lock.
//
// A slot is in exactly one of these states:
//   available   may be taken
//   busy        taken and not yet back: reserved, owned, waiting for the reuse horizon, being primed, quarantined, or a
//               fragment that is punched (Container)
//   withheld    its chunk is not backed by host space, or is about to be punched
// Beside it stands what allocation pages hold: `owned` as of the last applied sequence, and `primed`.
// Invariants:
//   1. owned => busy (once recovery is finished).
//   2. primed, available or busy => its chunk is backed.
//   3. A chunk counts its busy slots; it may be withheld only at 0.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "swimstore/container/slot_bitmap.h"
#include "swimstore/format/allocation_page.h"
#include "vtkv/status.h"

namespace swimstore {

class SlotAllocator {
 public:
  static constexpr uint64_t npos = SlotBitmap::npos;

  // REQUIRES: chunk_slots is a power of two.
  SlotAllocator(unsigned size_class, uint64_t chunk_slots);

  // Chunks. New ones are withheld until back().
  void extend(uint64_t chunks);
  uint64_t chunks() const { return m_chunks.size(); }
  uint64_t chunk_slots() const { return uint64_t{1} << m_chunk_shift; }
  uint64_t slots() const { return chunks() << m_chunk_shift; }
  uint64_t backed_slots() const { return m_backed << m_chunk_shift; }
  // The first chunk without host space; npos when all have it.
  uint64_t find_unbacked() const;
  void back(uint64_t chunk);
  // False: without host space, or about to be punched.
  bool is_backed(uint64_t chunk) const { return m_chunks[chunk].state == State::backed; }

  // Next-fit, primed slots first; npos when nothing is available.
  uint64_t take(bool* primed);
  // Takes exactly this one; false when it is not available.
  bool take_this(uint64_t slot);
  // The run of at most `limit` unprimed available slots at or after the priming cursor; 0: none.
  uint64_t take_unprimed_run(uint64_t limit, uint64_t* first);
  // The first run of `count` available slots at a multiple of that, at or after *from, which is one too and where the
  // search goes on next. npos: none among the next `probes`; at the end *from is npos, too.
  uint64_t find_run(uint64_t count, unsigned probes, uint64_t* from) const;
  void put_back(uint64_t slot);
  bool is_available(uint64_t slot) const { return m_primed_available.test(slot) || m_unprimed_available.test(slot); }
  // 64 slots at once, as SlotBitmap::word().
  uint64_t available_word(uint64_t word) const {
    return m_primed_available.word(word) | m_unprimed_available.word(word);
  }
  uint64_t available() const { return m_primed_available.count() + m_unprimed_available.count(); }
  uint64_t primed_available() const { return m_primed_available.count(); }

  // Code::corruption: there is no such slot, or it is so already.
  vtkv::Status set_owned(uint64_t slot, bool owned);
  bool is_owned(uint64_t slot) const { return slot < slots() && m_owned.test(slot); }
  uint64_t owned() const { return m_owned.count(); }
  uint64_t next_owned(uint64_t from) const { return m_owned.find_from(from); }  // npos: none
  // From now on it becomes available no more: once nobody has it, it stays busy. Before finish_recovery(), or while it
  // is busy.
  void quarantine(uint64_t slot) { m_quarantined[slot / 64] |= uint64_t{1} << slot % 64; }
  // Primes a slot of a backed chunk; nothing happens to one that was withheld meanwhile.
  void set_primed(uint64_t slot);
  bool is_primed(uint64_t slot) const { return slot < slots() && m_primed.test(slot); }
  // Of a slot that is not available. False: it was not primed.
  bool clear_primed(uint64_t slot);

  // Punching, of wholly available chunks: withhold() clears the primed bits; when pages that say so are
  // durable the hole may be punched, and then dropped() is due. give_back() undoes withhold().
  uint64_t whole_free_chunks() const { return m_whole_free; }
  uint64_t find_whole_free_from_end(uint64_t below) const;  // npos: none
  // False: none of its slots was primed, the hole may be punched at once.
  bool withhold(uint64_t chunk);
  void give_back(uint64_t chunk);
  void dropped(uint64_t chunk);
  uint64_t withheld_chunks() const { return m_withheld; }

  // Pages and recovery.
  vtkv::Status load(const AllocationPage& page);
  void assume_primed(uint64_t slots);  // from the header; before load()
  // `has_space`, of each chunk: the host is known to hold some for it. A chunk with an owned or a primed slot has all
  // of it, for it was not punched since. The others count as without.
  void finish_recovery(const std::vector<bool>& has_space);
  // The next changed page at or after `from`; npos when there is none.
  uint64_t next_changed_page(uint64_t from) const { return m_changed_pages.find_from(from); }
  AllocationPage take_page(uint64_t number);

 private:
  enum class State : uint8_t { unbacked, backed, withheld };
  struct Chunk {
    State state = State::unbacked;
    uint32_t busy = 0;
    std::vector<uint64_t> primed_before;  // withheld: slots that were primed, for give_back()
  };

  uint64_t chunk_of(uint64_t slot) const { return slot >> m_chunk_shift; }
  void made_busy(uint64_t slot);
  void taken(uint64_t slot);
  bool is_consistent() const;  // goes through all slots
  void make_available(uint64_t slot);
  uint64_t quarantined_word(uint64_t word) const;
  void changed(uint64_t slot) { m_changed_pages.set(slot / kPageSlots); }

  const unsigned m_size_class;
  const unsigned m_chunk_shift;
  std::vector<Chunk> m_chunks;
  uint64_t m_backed = 0;
  uint64_t m_whole_free = 0;  // backed chunks without a busy slot
  uint64_t m_withheld = 0;
  SlotBitmap m_owned;
  SlotBitmap m_primed;
  SlotBitmap m_primed_available;
  SlotBitmap m_unprimed_available;
  SlotBitmap m_changed_pages;
  std::unordered_map<uint64_t, uint64_t> m_quarantined;  // few: words as of SlotBitmap, also past the end
  uint64_t m_cursor = 0;
  uint64_t m_priming_cursor = 0;
};

}  // namespace swimstore
