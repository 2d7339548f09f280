// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/split_slots.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "vtkv/util/invariants.h"

namespace swimstore {

namespace {

using Words = SplitSlots::Words;

constexpr uint32_t kWordBits = 64;
constexpr unsigned kWordClass = 6;  // fragments of 2^6 blocks fill a word
// Where fragments of each size up to a word may begin.
constexpr uint64_t kStarts[kWordClass + 1] = {~uint64_t{0},       0x5555555555555555, 0x1111111111111111,
                                              0x0101010101010101, 0x0001000100010001, 0x0000000100000001,
                                              0x0000000000000001};

void assign(Words* words, uint32_t first, uint32_t count, bool set) {
  for_each_word(first, count, [&](uint32_t word, uint64_t mask) {
    (*words)[word] = set ? (*words)[word] | mask : (*words)[word] & ~mask;
  });
}

bool all(const Words& words, uint32_t first, uint32_t count) {
  bool result = true;
  for_each_word(first, count, [&](uint32_t word, uint64_t mask) { result &= (words[word] & mask) == mask; });
  return result;
}

bool none(const Words& words, uint32_t first, uint32_t count) {
  bool result = true;
  for_each_word(first, count, [&](uint32_t word, uint64_t mask) { result &= (words[word] & mask) == 0; });
  return result;
}

bool any(const Words& words) {
  return std::any_of(words.begin(), words.end(), [](uint64_t word) { return word != 0; });
}

Words both(Words a, const Words& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] &= b[i];
  }
  return a;
}

// From where fragments half as large begin to where those of `size_class` do.
void halves_to_wholes(Words* starts, unsigned size_class) {
  if (size_class <= kWordClass) {
    for (uint64_t& word : *starts) {
      word &= word >> (1u << (size_class - 1)) & kStarts[size_class];
    }
    return;
  }
  const size_t half = size_t{1} << (size_class - 1 - kWordClass);  // words
  for (size_t i = 0; i < starts->size(); i += 2 * half) {
    (*starts)[i] &= (*starts)[i + half];
    (*starts)[i + half] = 0;
  }
}

// Of fragments, those that are not halves of the larger ones, of `length` blocks.
void leave_out_halves(Words* fragments, const Words& larger, uint32_t length) {
  for (uint32_t at = 0; at < fragments->size() * kWordBits; at += length) {
    if (larger[at / kWordBits] >> (at % kWordBits) & 1) {
      assign(fragments, at, length, false);
    }
  }
}

uint32_t count_bits(const Words& words) {
  uint32_t count = 0;
  for (const uint64_t word : words) {
    count += static_cast<uint32_t>(std::popcount(word));
  }
  return count;
}

uint32_t first_bit(const Words& words) {
  uint32_t word = 0;
  while (words[word] == 0) {
    ++word;
  }
  return word * kWordBits + static_cast<uint32_t>(std::countr_zero(words[word]));
}

void add(SlotBitmap* slots, uint64_t slot) {
  slots->resize(slot + 1);
  slots->set(slot);
}

}  // namespace

SplitSlots::Slot SplitSlots::empty() const {
  const Words zeros(words());
  return {zeros, zeros, zeros};
}

SplitSlots::Slot SplitSlots::at(uint64_t slot) const {
  const char* bytes = m_slots.find(slot);
  VTKV_ASSERT(bytes != nullptr);
  Slot result;
  for (Words* bitmap : {&result.free, &result.owned, &result.primed}) {
    bitmap->resize(words());
    std::memcpy(bitmap->data(), bytes, bitmap_bytes());
    bytes += bitmap_bytes();
  }
  return result;
}

void SplitSlots::insert(uint64_t slot, const Slot& now) {
  m_slots.insert(slot);
  replace(slot, now);
}

void SplitSlots::replace(uint64_t slot, const Slot& now) {
  const Slot before = at(slot);
  if (now.owned != before.owned) {
    m_slots_with_owner += any(now.owned);
    m_slots_with_owner -= any(before.owned);
    m_owned_blocks += count_bits(now.owned);
    m_owned_blocks -= count_bits(before.owned);
    add(&m_changed, slot);
  }
  if (!m_quarantined.contains(slot)) {
    change_index(&m_free, slot, before.free, now.free);
    change_index(&m_primed, slot, both(before.free, before.primed), both(now.free, now.primed));
  }
  char* bytes = m_slots.find(slot);
  for (const Words* bitmap : {&now.free, &now.owned, &now.primed}) {
    std::memcpy(bytes, bitmap->data(), bitmap_bytes());
    bytes += bitmap_bytes();
  }
}

void SplitSlots::split(uint64_t slot, uint32_t owned, uint32_t primed) {
  Slot it = empty();
  assign(&it.owned, 0, owned, true);
  assign(&it.primed, 0, primed, true);
  insert(slot, it);
}

void SplitSlots::unite(uint64_t slot) {
  VTKV_ASSERT(!owns_any(slot));
  replace(slot, empty());
  m_slots.erase(slot);
}

// ---- fragments

namespace {

// Adds how many there are of each size below a whole word.
void count_in_word(uint64_t free, uint16_t* fragments) {
  for (unsigned k = 0; k < kWordClass && free != 0; ++k) {
    fragments[k] = static_cast<uint16_t>(fragments[k] + std::popcount(free));
    free &= free >> (1u << k) & kStarts[k + 1];
  }
}

}  // namespace

// A word that is free as a whole is to larger fragments what a block is to smaller ones.
SplitSlots::Counts SplitSlots::count_fragments(const Words& free) {
  Counts fragments{};
  uint64_t whole_words = 0;
  for (size_t i = 0; i < free.size(); ++i) {
    count_in_word(free[i], &fragments[0]);
    whole_words |= uint64_t{free[i] == ~uint64_t{0}} << i;
  }
  count_in_word(whole_words, &fragments[kWordClass]);
  return fragments;
}

int SplitSlots::largest(const Counts& fragments) {
  int size_class = kSizeClasses - 1;
  while (size_class >= 0 && fragments[static_cast<unsigned>(size_class)] == 0) {
    --size_class;
  }
  return size_class;
}

void SplitSlots::change_index(Index* index, uint64_t slot, const Words& before, const Words& after) {
  if (before != after) {
    index->change(slot, count_fragments(before), count_fragments(after));
  }
}

void SplitSlots::Index::change(uint64_t slot, const Counts& before, const Counts& after) {
  for (unsigned k = 0; k < kSizeClasses; ++k) {
    VTKV_ASSERT(counts[k] >= before[k]);
    counts[k] += after[k];
    counts[k] -= before[k];
  }
  const int was = largest(before), is = largest(after);
  if (was != is && was >= 0) {
    by_largest[static_cast<unsigned>(was)].clear(slot);
  }
  if (was != is && is >= 0) {
    add(&by_largest[static_cast<unsigned>(is)], slot);
  }
}

uint64_t SplitSlots::Index::find(unsigned size_class) const {
  unsigned largest = size_class;
  while (by_largest[largest].count() == 0) {
    ++largest;
  }
  return by_largest[largest].find_from(0);
}

bool SplitSlots::take(unsigned size_class, uint32_t blocks, Wanted wanted, uint64_t* slot, uint32_t* first) {
  const bool primed = wanted == Wanted::primed || (wanted == Wanted::primed_first && m_primed.counts[size_class] > 0);
  const Index& index = primed ? m_primed : m_free;
  if (index.counts[size_class] == 0) {
    return false;
  }
  *slot = index.find(size_class);
  Slot it = at(*slot);
  Words found = primed ? both(it.free, it.primed) : it.free;
  for (unsigned k = 1; k <= size_class; ++k) {
    halves_to_wholes(&found, k);
  }
  if (size_class < m_container) {
    Words larger = found;
    halves_to_wholes(&larger, size_class + 1);
    if (count_bits(found) > 2 * count_bits(larger)) {
      leave_out_halves(&found, larger, 2u << size_class);
    }
  }
  *first = first_bit(found);
  VTKV_ASSERT(all(it.free, *first, blocks) && none(it.owned, *first, blocks));
  assign(&it.free, *first, blocks, false);
  replace(*slot, it);
  return true;
}

bool SplitSlots::take_these(uint64_t slot, uint32_t first, uint32_t count) {
  Slot it = at(slot);
  if (!all(it.free, first, count)) {
    return false;
  }
  assign(&it.free, first, count, false);
  replace(slot, it);
  return true;
}

bool SplitSlots::put_back(uint64_t slot, uint32_t first, uint32_t count) {
  Slot it = at(slot);
  VTKV_ASSERT(none(it.free, first, count) && none(it.owned, first, count));
  assign(&it.free, first, count, true);
  replace(slot, it);
  return !all(it.free, 0, blocks());
}

void SplitSlots::set_primed(uint64_t slot, uint32_t first, uint32_t count, bool primed) {
  Slot it = at(slot);
  assign(&it.primed, first, count, primed);
  replace(slot, it);
}

bool SplitSlots::is_primed(uint64_t slot, uint32_t first, uint32_t count) const {
  return all(at(slot).primed, first, count);
}

// ---- owners

void SplitSlots::set_owned(uint64_t slot, uint32_t first, uint32_t count, bool owned) {
  Slot it = at(slot);
  VTKV_ASSERT(none(it.free, first, count));
  VTKV_ASSERT(owned ? none(it.owned, first, count) : all(it.owned, first, count));
  assign(&it.owned, first, count, owned);
  replace(slot, it);
}

bool SplitSlots::is_owned(uint64_t slot, uint32_t first, uint32_t count) const {
  return all(at(slot).owned, first, count);
}

bool SplitSlots::is_free(uint64_t slot, uint32_t first, uint32_t count) const {
  return none(at(slot).owned, first, count);
}

bool SplitSlots::owns_any(uint64_t slot) const { return any(at(slot).owned); }

std::vector<std::pair<uint32_t, uint32_t>> SplitSlots::owned_runs(uint64_t slot) const {
  const Words owned = at(slot).owned;
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  for (uint32_t block = 0; block < blocks(); ++block) {
    if (none(owned, block, 1)) {
      continue;
    }
    if (!runs.empty() && runs.back().first + runs.back().second == block) {
      ++runs.back().second;
    } else {
      runs.emplace_back(block, 1);
    }
  }
  return runs;
}

// ---- checkpoints and recovery

SplitSlots::Changed SplitSlots::take_changed() {
  Changed changed;
  changed.slots.reserve(m_changed.count());
  changed.owned.reserve(m_changed.count() * words());
  for (uint64_t slot = m_changed.find_from(0); slot != SlotBitmap::npos; slot = m_changed.find_from(slot + 1)) {
    const Words owned = contains(slot) ? at(slot).owned : empty().owned;
    changed.slots.push_back(slot);
    changed.owned.insert(changed.owned.end(), owned.begin(), owned.end());
    m_changed.clear(slot);
  }
  return changed;
}

void SplitSlots::load(const SplitSlotRecord& record, bool primed) {
  Slot it = empty();
  it.owned.assign(record.owned.begin(), record.owned.end());
  assign(&it.primed, 0, primed ? blocks() : 0, true);
  insert(record.slot, it);
  m_changed.clear(record.slot);
}

void SplitSlots::finish_recovery() {
  for (uint64_t slot = m_slots.find_from(0); slot != vtkv::SparseTable::npos; slot = m_slots.find_from(slot + 1)) {
    Slot it = at(slot);
    assign(&it.free, 0, blocks(), true);
    for (size_t i = 0; i < it.free.size(); ++i) {
      it.free[i] &= ~it.owned[i];
    }
    replace(slot, it);
  }
}

uint64_t SplitSlots::memory_bytes() const {
  uint64_t bytes = m_slots.memory_bytes() + m_changed.memory_bytes();
  for (const Index* index : {&m_free, &m_primed}) {
    for (const SlotBitmap& slots : index->by_largest) {
      bytes += slots.memory_bytes();
    }
  }
  return bytes;
}

}  // namespace swimstore
