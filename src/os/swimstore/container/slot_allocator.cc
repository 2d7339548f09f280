// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/slot_allocator.h"

#include <algorithm>
#include <bit>
#include <string>

#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::Status;

namespace {

std::string slot_name(unsigned size_class, uint64_t slot) {
  return "slot " + std::to_string(slot) + " of the " + std::to_string(slot_bytes(size_class) / 1024) + " KiB container";
}

}  // namespace

SlotAllocator::SlotAllocator(unsigned size_class, uint64_t chunk_slots)
    : m_size_class(size_class), m_chunk_shift(static_cast<unsigned>(std::countr_zero(chunk_slots))) {
  VTKV_ASSERT(std::has_single_bit(chunk_slots));
}

void SlotAllocator::extend(uint64_t chunks) {
  m_chunks.resize(m_chunks.size() + chunks);
  for (SlotBitmap* bitmap : {&m_owned, &m_primed, &m_primed_available, &m_unprimed_available}) {
    bitmap->resize(slots());
  }
  m_changed_pages.resize((slots() + kPageSlots - 1) / kPageSlots);
}

uint64_t SlotAllocator::find_unbacked() const {
  if (m_backed + m_withheld == m_chunks.size()) {
    return npos;
  }
  for (uint64_t i = 0; i < m_chunks.size(); i++) {
    if (m_chunks[i].state == State::unbacked) {
      return i;
    }
  }
  return npos;
}

void SlotAllocator::back(uint64_t chunk) {
  Chunk& it = m_chunks[chunk];
  VTKV_ASSERT(it.state == State::unbacked && it.busy == 0);
  it.state = State::backed;
  m_backed++;
  for_each_word(chunk << m_chunk_shift, chunk_slots(), [&](uint64_t word, uint64_t of_chunk) {
    const uint64_t free = of_chunk & ~m_owned.word(word) & ~quarantined_word(word);
    const uint64_t primed = m_primed.word(word);
    m_primed_available.set_word(word, m_primed_available.word(word) | (free & primed));
    m_unprimed_available.set_word(word, m_unprimed_available.word(word) | (free & ~primed));
    it.busy += std::popcount(of_chunk & ~free);
  });
  m_whole_free += it.busy == 0;
}

uint64_t SlotAllocator::quarantined_word(uint64_t word) const {
  const auto found = m_quarantined.find(word);
  return found != m_quarantined.end() ? found->second : 0;
}

void SlotAllocator::make_available(uint64_t slot) {
  if ((quarantined_word(slot / 64) >> slot % 64 & 1) != 0) {
    made_busy(slot);
    return;
  }
  (m_primed.test(slot) ? m_primed_available : m_unprimed_available).set(slot);
}

void SlotAllocator::made_busy(uint64_t slot) {
  Chunk& chunk = m_chunks[chunk_of(slot)];
  VTKV_ASSERT(chunk.state == State::backed && chunk.busy < chunk_slots() && !is_available(slot));
  if (chunk.busy++ == 0) {
    VTKV_ASSERT(m_whole_free > 0);
    m_whole_free--;
  }
}

// Free becomes reserved.
void SlotAllocator::taken(uint64_t slot) {
  VTKV_ASSERT(!m_owned.test(slot));
  made_busy(slot);
}

uint64_t SlotAllocator::take(bool* primed) {
  *primed = m_primed_available.count() > 0;
  SlotBitmap& from = *primed ? m_primed_available : m_unprimed_available;
  const uint64_t slot = from.find_cyclic(m_cursor < from.size() ? m_cursor : 0);
  if (slot == npos) {
    return npos;
  }
  from.clear(slot);
  taken(slot);
  m_cursor = slot + 1;
  return slot;
}

bool SlotAllocator::take_this(uint64_t slot) {
  if (!is_available(slot)) {
    return false;
  }
  m_primed_available.clear(slot);
  m_unprimed_available.clear(slot);
  taken(slot);
  return true;
}

uint64_t SlotAllocator::take_unprimed_run(uint64_t limit, uint64_t* first) {
  const uint64_t start = m_priming_cursor < slots() ? m_priming_cursor : 0;
  *first = m_unprimed_available.find_cyclic(start);
  if (*first == npos) {
    return 0;
  }
  uint64_t end = *first;
  while (end < slots() && end - *first < limit && m_unprimed_available.test(end)) {
    m_unprimed_available.clear(end);
    taken(end);
    end++;
  }
  m_priming_cursor = end;
  return end - *first;
}

uint64_t SlotAllocator::find_run(uint64_t count, unsigned probes, uint64_t* from) const {
  for (; probes > 0 && *from != npos; probes--) {
    const uint64_t next = std::min(m_primed_available.find_from(*from), m_unprimed_available.find_from(*from));
    if (next == npos) {
      *from = npos;
      break;
    }
    const uint64_t first = next / count * count;
    *from = first + count;
    uint64_t end = first;
    while (end < *from && is_available(end)) {
      end++;
    }
    if (end == *from) {
      return first;
    }
  }
  return npos;
}

void SlotAllocator::put_back(uint64_t slot) {
  Chunk& chunk = m_chunks[chunk_of(slot)];
  VTKV_ASSERT(chunk.state == State::backed && chunk.busy > 0 && !m_owned.test(slot) && !is_available(slot));
  if (--chunk.busy == 0) {
    m_whole_free++;
  }
  make_available(slot);
}

void SlotAllocator::set_primed(uint64_t slot) {
  if (m_chunks[chunk_of(slot)].state != State::backed || m_primed.test(slot)) {
    return;
  }
  m_primed.set(slot);
  changed(slot);
  if (m_unprimed_available.test(slot)) {
    m_unprimed_available.clear(slot);
    m_primed_available.set(slot);
  }
}

bool SlotAllocator::clear_primed(uint64_t slot) {
  VTKV_ASSERT(!is_available(slot));
  if (!m_primed.test(slot)) {
    return false;
  }
  m_primed.clear(slot);
  changed(slot);
  return true;
}

uint64_t SlotAllocator::find_whole_free_from_end(uint64_t below) const {
  for (uint64_t i = std::min<uint64_t>(below, m_chunks.size()); i-- > 0;) {
    if (m_chunks[i].state == State::backed && m_chunks[i].busy == 0) {
      return i;
    }
  }
  return npos;
}

bool SlotAllocator::withhold(uint64_t chunk) {
  Chunk& it = m_chunks[chunk];
  VTKV_ASSERT(it.state == State::backed && it.busy == 0);
  for (uint64_t slot = chunk << m_chunk_shift; slot < (chunk + 1) << m_chunk_shift; slot++) {
    m_unprimed_available.clear(slot);
    if (m_primed.test(slot)) {
      m_primed_available.clear(slot);
      m_primed.clear(slot);
      it.primed_before.push_back(slot);
      changed(slot);
    }
  }
  VTKV_ASSERT(m_backed > 0 && m_whole_free > 0);
  it.state = State::withheld;
  m_backed--;
  m_whole_free--;
  m_withheld++;
  return !it.primed_before.empty();
}

void SlotAllocator::give_back(uint64_t chunk) {
  Chunk& it = m_chunks[chunk];
  VTKV_ASSERT(it.state == State::withheld && it.busy == 0 && m_withheld > 0);
  m_withheld--;
  for (uint64_t slot : it.primed_before) {
    m_primed.set(slot);
    changed(slot);
  }
  it = Chunk{};
  back(chunk);
}

void SlotAllocator::dropped(uint64_t chunk) {
  VTKV_ASSERT(m_chunks[chunk].state == State::withheld && m_chunks[chunk].busy == 0 && m_withheld > 0);
  m_withheld--;
  m_chunks[chunk] = Chunk{};
}

// A crash may take back the growth of a file that nothing has synced since; the page knows of it all the same. No
// slot was written there: the first write of one brings its file's sync.
Status SlotAllocator::load(const AllocationPage& page) {
  const uint64_t first = page.first_slot();
  const uint64_t there = std::min<uint64_t>(page.slots, slots() - std::min(first, slots()));
  uint64_t past_the_end = 0;
  for_each_word(there, page.slots - there,
                [&](uint64_t i, uint64_t mask) { past_the_end |= (page.owned[i] | page.primed[i]) & mask; });
  if (past_the_end != 0) {
    return Status::corruption("allocation page " + std::to_string(page.number) + " of the " +
                              std::to_string(slot_bytes(m_size_class) / 1024) +
                              " KiB container names slots past the container's end");
  }
  // Of slots that came after the page was written it says nothing.
  for_each_word(uint64_t{0}, there, [&](uint64_t i, uint64_t mask) {
    const uint64_t word = first / 64 + i;
    m_owned.set_word(word, (m_owned.word(word) & ~mask) | (page.owned[i] & mask));
    m_primed.set_word(word, (m_primed.word(word) & ~mask) | (page.primed[i] & mask));
  });
  return {};
}

Status SlotAllocator::set_owned(uint64_t slot, bool owned) {
  if (slot >= slots()) {
    return Status::corruption("the log names " + slot_name(m_size_class, slot) + ", which is past the container's end");
  }
  if (m_owned.test(slot) == owned) {
    return Status::corruption("the log " + std::string(owned ? "allocates the owned " : "frees the free ") +
                              slot_name(m_size_class, slot));
  }
  VTKV_ASSERT(!is_available(slot));
  m_owned.assign(slot, owned);
  changed(slot);
  return {};
}

void SlotAllocator::assume_primed(uint64_t slots_primed) {
  for (uint64_t slot = 0; slot < std::min(slots_primed, slots()); slot++) {
    m_primed.set(slot);
  }
}

void SlotAllocator::finish_recovery(const std::vector<bool>& has_space) {
  VTKV_ASSERT(has_space.size() == m_chunks.size());
  for (uint64_t chunk = 0; chunk < m_chunks.size(); chunk++) {
    const uint64_t begin = chunk << m_chunk_shift;
    const uint64_t end = begin + chunk_slots();
    const uint64_t owned = m_owned.find_from(begin);
    const uint64_t primed = m_primed.find_from(begin);
    if (std::min(owned, primed) < end || has_space[chunk]) {
      back(chunk);
    }
  }
  INVARIANT(is_consistent());
}

bool SlotAllocator::is_consistent() const {
  uint64_t backed = 0, whole_free = 0, withheld = 0;
  for (uint64_t chunk = 0; chunk < m_chunks.size(); chunk++) {
    const Chunk& it = m_chunks[chunk];
    const bool is_backed = it.state == State::backed;
    backed += is_backed;
    whole_free += is_backed && it.busy == 0;
    withheld += it.state == State::withheld;
    uint64_t busy = 0;
    for (uint64_t slot = chunk << m_chunk_shift; slot < (chunk + 1) << m_chunk_shift; slot++) {
      const bool available = is_available(slot);
      const SlotBitmap& where = m_primed.test(slot) ? m_primed_available : m_unprimed_available;
      if ((available && (m_owned.test(slot) || !where.test(slot))) ||
          (!is_backed && (available || m_owned.test(slot) || m_primed.test(slot)))) {
        return false;
      }
      busy += is_backed && !available;
    }
    if (busy != it.busy) {
      return false;
    }
  }
  return backed == m_backed && whole_free == m_whole_free && withheld == m_withheld;
}

AllocationPage SlotAllocator::take_page(uint64_t number) {
  m_changed_pages.clear(number);
  AllocationPage page;
  page.size_class = static_cast<uint8_t>(m_size_class);
  page.number = static_cast<uint32_t>(number);
  page.slots = static_cast<uint32_t>(std::min<uint64_t>(kPageSlots, slots() - page.first_slot()));
  for (uint64_t word = 0; word < kPageWords; word++) {
    page.owned[word] = m_owned.word(number * kPageWords + word);
    page.primed[word] = m_primed.word(number * kPageWords + word);
  }
  return page;
}

}  // namespace swimstore
