// SPDX-License-Identifier: LGPL-2.1-or-later
// A set of slot numbers: constant-time membership, and a search for the next member that reads one word
// per level of a 64-way tree of summaries (5 levels hold 2^30 slots).
//
// Not thread-safe. Invariant: bit j of level k+1 is set if and only if word j of level k is not zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace swimstore {

class SlotBitmap {
 public:
  static constexpr uint64_t npos = ~uint64_t{0};

  SlotBitmap() { resize(0); }

  // Grows; never shrinks. New slots are not members.
  void resize(uint64_t slots);
  uint64_t size() const { return m_size; }
  uint64_t count() const { return m_count; }
  uint64_t memory_bytes() const;

  // REQUIRES: slot < size(), for all four.
  bool test(uint64_t slot) const { return m_levels[0][slot / 64] >> (slot % 64) & 1; }
  void set(uint64_t slot);
  void clear(uint64_t slot);
  void assign(uint64_t slot, bool member) { member ? set(slot) : clear(slot); }

  // The smallest member at or above `start`; npos when there is none.
  uint64_t find_from(uint64_t start) const;
  // The same, going on from 0 at the end.
  uint64_t find_cyclic(uint64_t start) const;

  // 64 slots at once: slot 64 * word is bit 0. Words past the end read as 0.
  uint64_t word(uint64_t word) const { return word < m_levels[0].size() ? m_levels[0][word] : 0; }
  // REQUIRES: no member is size() or greater. So a word past the end has none, and nothing is done.
  void set_word(uint64_t word, uint64_t members);

 private:
  uint64_t m_size = 0;
  uint64_t m_count = 0;
  std::vector<std::vector<uint64_t>> m_levels;  // [0]: the slots; the last has one word
};

// Calls step(word, mask) for each word of 64 bits that holds some of the `count` bits from `first` on.
template <class Integer, class Step>
void for_each_word(Integer first, Integer count, Step step) {
  constexpr Integer kWordBits = 64;
  while (count > 0) {
    const Integer bit = first % kWordBits;
    const Integer bits = std::min(count, kWordBits - bit);
    const uint64_t ones = bits == kWordBits ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    step(first / kWordBits, ones << bit);
    first += bits;
    count -= bits;
  }
}

}  // namespace swimstore
