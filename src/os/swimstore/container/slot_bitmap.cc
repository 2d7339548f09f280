// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/slot_bitmap.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace swimstore {

void SlotBitmap::resize(uint64_t slots) {
  m_size = std::max(m_size, slots);
  uint64_t bits = m_size;
  for (size_t level = 0;; level++) {
    if (level == m_levels.size()) {
      m_levels.emplace_back();
      if (level > 0) {
        // A new top: what the old top said as one word is now summed up above it.
        m_levels[level].assign(1, 0);
        for (size_t word = 0; word < m_levels[level - 1].size() && word < 64; word++) {
          m_levels[level][0] |= uint64_t{m_levels[level - 1][word] != 0} << word;
        }
      }
    }
    const uint64_t words = std::max<uint64_t>(1, (bits + 63) / 64);
    if (m_levels[level].size() < words) {
      m_levels[level].resize(words, 0);
    }
    if (words == 1 && level + 1 >= m_levels.size()) {
      return;
    }
    bits = words;
  }
}

uint64_t SlotBitmap::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& level : m_levels) {
    bytes += level.capacity() * sizeof level[0];
  }
  return bytes;
}

void SlotBitmap::set(uint64_t slot) {
  if (test(slot)) {
    return;
  }
  m_count++;
  for (auto& level : m_levels) {
    uint64_t& word = level[slot / 64];
    const bool was_empty = word == 0;
    word |= uint64_t{1} << (slot % 64);
    if (!was_empty) {
      return;
    }
    slot /= 64;
  }
}

void SlotBitmap::clear(uint64_t slot) {
  if (!test(slot)) {
    return;
  }
  m_count--;
  for (auto& level : m_levels) {
    uint64_t& word = level[slot / 64];
    word &= ~(uint64_t{1} << (slot % 64));
    if (word != 0) {
      return;
    }
    slot /= 64;
  }
}

void SlotBitmap::set_word(uint64_t word, uint64_t members) {
  if (word * 64 >= m_size) {
    return;
  }
  const uint64_t before = std::exchange(m_levels[0][word], members);
  m_count += std::popcount(members);
  m_count -= std::popcount(before);
  for (size_t level = 1; level < m_levels.size(); level++) {
    const bool any = m_levels[level - 1][word] != 0;
    uint64_t& summary = m_levels[level][word / 64];
    summary = (summary & ~(uint64_t{1} << word % 64)) | uint64_t{any} << word % 64;
    word /= 64;
  }
}

uint64_t SlotBitmap::find_from(uint64_t start) const {
  if (start >= m_size) {
    return npos;
  }
  for (size_t level = 0; level < m_levels.size(); level++) {
    const auto& words = m_levels[level];
    if (start / 64 >= words.size()) {
      return npos;
    }
    uint64_t word = words[start / 64] & (~uint64_t{0} << (start % 64));
    if (word == 0) {
      start = start / 64 + 1;  // above: the words after this one
      continue;
    }
    uint64_t found = start / 64 * 64 + std::countr_zero(word);
    while (level > 0) {
      level--;
      found = found * 64 + std::countr_zero(m_levels[level][found]);
    }
    return found;
  }
  return npos;
}

uint64_t SlotBitmap::find_cyclic(uint64_t start) const {
  const uint64_t found = find_from(start);
  return found != npos || start == 0 ? found : find_from(0);
}

}  // namespace swimstore
