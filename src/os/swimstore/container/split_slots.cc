// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/split_slots.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "swimstore/container/slot_bitmap.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

namespace {

using Words = std::vector<uint64_t>;

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

}  // namespace

const SplitSlots::Slot& SplitSlots::at(uint64_t slot) const {
  const auto found = m_slots.find(slot);
  VTKV_ASSERT(found != m_slots.end());
  return found->second;
}

SplitSlots::Slot& SplitSlots::insert(uint64_t slot) {
  const auto [found, added] = m_slots.try_emplace(slot);
  VTKV_ASSERT(added);
  const size_t words = (blocks() + kWordBits - 1) / kWordBits;
  found->second.owned.resize(words);
  found->second.busy.resize(words);
  found->second.primed.resize(words);
  m_changed.insert(slot);
  return found->second;
}

void SplitSlots::split(uint64_t slot, uint32_t owned, uint32_t primed) {
  Slot& it = insert(slot);
  assign(&it.primed, 0, primed, true);
  assign(&it.owned, 0, owned, true);
  count_owned(it, owned);
  assign(&it.busy, 0, blocks(), true);
}

void SplitSlots::unite(uint64_t slot) {
  const Slot& it = at(slot);
  VTKV_ASSERT(it.owned_blocks == 0);
  forget_fragments(slot, it);
  m_slots.erase(slot);
  m_changed.insert(slot);
}

void SplitSlots::count_owned(Slot& slot, int64_t difference) {
  const int64_t owned = slot.owned_blocks + difference;
  VTKV_ASSERT(owned >= 0 && owned <= int64_t{blocks()});
  m_slots_with_owner -= slot.owned_blocks > 0;
  slot.owned_blocks = static_cast<uint32_t>(owned);
  m_slots_with_owner += slot.owned_blocks > 0;
  m_owned_blocks += static_cast<uint64_t>(difference);
}

// ---- fragments

namespace {

// Of blocks, those at which a fragment of this size begins.
Words starts(Words blocks, unsigned size_class) {
  for (unsigned k = 1; k <= size_class; ++k) {
    halves_to_wholes(&blocks, k);
  }
  return blocks;
}

}  // namespace

SplitSlots::Words SplitSlots::free_blocks(const Slot& slot, bool only_primed) const {
  Words free = slot.busy;
  for (size_t i = 0; i < free.size(); ++i) {
    free[i] = ~free[i] & (only_primed ? slot.primed[i] : ~uint64_t{0});
  }
  if (blocks() < kWordBits) {
    free[0] &= (uint64_t{1} << blocks()) - 1;
  }
  return free;
}

SplitSlots::Counts SplitSlots::count_fragments(Words free) const {
  Counts fragments{};
  for (unsigned k = 0; k <= m_container; ++k) {
    if (k > 0) {
      halves_to_wholes(&free, k);
    }
    fragments[k] = static_cast<uint16_t>(count_bits(free));
  }
  return fragments;
}

int SplitSlots::largest(const Counts& fragments) {
  int size_class = kSizeClasses - 1;
  while (size_class >= 0 && fragments[static_cast<unsigned>(size_class)] == 0) {
    --size_class;
  }
  return size_class;
}

void SplitSlots::Index::add(uint64_t slot, const Counts& fragments) {
  for (unsigned k = 0; k < kSizeClasses; ++k) {
    counts[k] += fragments[k];
  }
  if (const int now = largest(fragments); now >= 0) {
    by_largest[static_cast<unsigned>(now)].insert(slot);
  }
}

void SplitSlots::Index::remove(uint64_t slot, const Counts& fragments) {
  for (unsigned k = 0; k < kSizeClasses; ++k) {
    VTKV_ASSERT(counts[k] >= fragments[k]);
    counts[k] -= fragments[k];
  }
  if (const int before = largest(fragments); before >= 0) {
    by_largest[static_cast<unsigned>(before)].erase(slot);
  }
}

uint64_t SplitSlots::Index::find(unsigned size_class) const {
  unsigned largest = size_class;
  while (by_largest[largest].empty()) {
    ++largest;
  }
  return *by_largest[largest].begin();
}

void SplitSlots::forget_fragments(uint64_t number, const Slot& slot) {
  m_free.remove(number, slot.free);
  m_primed.remove(number, slot.primed_free);
}

void SplitSlots::recount(uint64_t number, Slot& slot) {
  forget_fragments(number, slot);
  slot.free.fill(0);
  slot.primed_free.fill(0);
  if (m_quarantined.contains(number)) {
    return;
  }
  const Words free = free_blocks(slot, false);
  const Words primed = free_blocks(slot, true);
  slot.free = count_fragments(free);
  slot.primed_free = primed == free ? slot.free : count_fragments(primed);
  m_free.add(number, slot.free);
  m_primed.add(number, slot.primed_free);
}

bool SplitSlots::take(unsigned size_class, uint32_t blocks, Wanted wanted, uint64_t* slot, uint32_t* first) {
  const bool primed = wanted == Wanted::primed || (wanted == Wanted::primed_first && m_primed.counts[size_class] > 0);
  const Index& index = primed ? m_primed : m_free;
  if (index.counts[size_class] == 0) {
    return false;
  }
  *slot = index.find(size_class);
  Slot& it = at(*slot);
  const Counts& fragments = primed ? it.primed_free : it.free;
  const Words free = free_blocks(it, primed);
  Words found = starts(free, size_class);
  if (size_class < m_container && fragments[size_class] > 2 * fragments[size_class + 1]) {
    // Leave out the halves of larger fragments.
    const Words larger = starts(free, size_class + 1);
    const uint32_t length = 2u << size_class;
    for (uint32_t at = 0; at < this->blocks(); at += length) {
      if (larger[at / kWordBits] >> (at % kWordBits) & 1) {
        assign(&found, at, length, false);
      }
    }
  }
  *first = first_bit(found);
  VTKV_ASSERT(none(it.busy, *first, blocks) && none(it.owned, *first, blocks));
  assign(&it.busy, *first, blocks, true);
  recount(*slot, it);
  return true;
}

bool SplitSlots::take_these(uint64_t slot, uint32_t first, uint32_t count) {
  Slot& it = at(slot);
  if (!none(it.busy, first, count)) {
    return false;
  }
  assign(&it.busy, first, count, true);
  recount(slot, it);
  return true;
}

bool SplitSlots::put_back(uint64_t slot, uint32_t first, uint32_t count) {
  Slot& it = at(slot);
  VTKV_ASSERT(all(it.busy, first, count) && none(it.owned, first, count));
  assign(&it.busy, first, count, false);
  recount(slot, it);
  return !none(it.busy, 0, blocks());
}

void SplitSlots::set_primed(uint64_t slot, uint32_t first, uint32_t count, bool primed) {
  Slot& it = at(slot);
  assign(&it.primed, first, count, primed);
  if (!all(it.busy, first, count)) {
    recount(slot, it);
  }
}

bool SplitSlots::is_primed(uint64_t slot, uint32_t first, uint32_t count) const {
  return all(at(slot).primed, first, count);
}

// ---- owners

void SplitSlots::set_owned(uint64_t slot, uint32_t first, uint32_t count, bool owned) {
  Slot& it = at(slot);
  VTKV_ASSERT(owned ? none(it.owned, first, count) : all(it.owned, first, count));
  assign(&it.owned, first, count, owned);
  count_owned(it, owned ? int64_t{count} : -int64_t{count});
  m_changed.insert(slot);
}

bool SplitSlots::is_owned(uint64_t slot, uint32_t first, uint32_t count) const {
  return all(at(slot).owned, first, count);
}

bool SplitSlots::is_free(uint64_t slot, uint32_t first, uint32_t count) const {
  return none(at(slot).owned, first, count);
}

bool SplitSlots::owns_any(uint64_t slot) const { return at(slot).owned_blocks > 0; }

std::vector<std::pair<uint32_t, uint32_t>> SplitSlots::owned_runs(uint64_t slot) const {
  const Words& owned = at(slot).owned;
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

std::vector<uint64_t> SplitSlots::take_changed() {
  std::vector<uint64_t> changed(m_changed.begin(), m_changed.end());
  m_changed.clear();
  return changed;
}

SplitSlotRecord SplitSlots::record(uint64_t slot) const {
  return {static_cast<uint8_t>(m_container), slot, at(slot).owned};
}

void SplitSlots::load(const SplitSlotRecord& record, bool primed) {
  Slot& it = insert(record.slot);
  assign(&it.primed, 0, primed ? blocks() : 0, true);
  it.owned = record.owned;
  count_owned(it, count_bits(it.owned));
  m_changed.erase(record.slot);
}

void SplitSlots::finish_recovery() {
  for (auto& [number, slot] : m_slots) {
    slot.busy = slot.owned;
    recount(number, slot);
  }
}

}  // namespace swimstore
