// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/container.h"

#include <algorithm>
#include <cstring>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

using vtkv::Mutation;
using vtkv::MutexLock;
using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

uint64_t first_in_container(const SlotBlocks& blocks) {
  const SlotAddress whole = blocks.slot.whole();
  return whole.index * slot_blocks(whole.size_class) + blocks.first_block();
}

}  // namespace

std::string Container::file_name(unsigned size_class) {
  const uint32_t kib = slot_bytes(size_class) / 1024;
  return kib < 1024 ? std::to_string(kib) + "K" : std::to_string(kib / 1024) + "M";
}

uint64_t Container::growth_bytes(unsigned size_class, uint64_t chunk_bytes) {
  return std::max<uint64_t>(chunk_bytes, slot_bytes(size_class));
}

uint64_t Container::created_bytes(unsigned size_class, const ContainerOptions& options,
                                  const vtkv::FileSystemInfo& host) {
  const uint64_t growth = growth_bytes(size_class, options.chunk_bytes);
  const bool primes = size_class <= options.primed_class_max && host.single_flush;
  return primes && growth <= host.available_bytes / 64 ? growth : 0;
}

Status Container::open(uint64_t primed_slots, uint64_t bytes_max) {
  uint64_t size = 0;
  VTKV_RETURN_IF_ERROR(m_file->size(&size));
  if (size > bytes_max) {
    return Status::corruption(m_file->path() + " has " + std::to_string(size) + " bytes, more than could ever be " +
                              "allocated here; restore it, or enlarge the file system again if it was made smaller");
  }
  FreeChange change(*this);
  // A last chunk that a crash cut short is made whole by the growth that wants it.
  m_slots.extend((size + m_growth_bytes - 1) / m_growth_bytes);
  m_slots.assume_primed(std::min(primed_slots, size / slot_bytes(m_size_class)));
  return {};
}

bool Container::take(bool only_primed, AllocatedSlot* slot) {
  FreeChange change(*this);
  if (only_primed && m_slots.primed_available() == 0) {
    return false;
  }
  const uint64_t index = m_slots.take(&slot->primed);
  if (index == SlotAllocator::npos) {
    return false;
  }
  m_used = true;
  slot->address = {static_cast<uint8_t>(m_size_class), index};
  return true;
}

bool Container::take_fragment(unsigned size_class, bool only_primed, AllocatedSlot* slot) {
  const std::atomic<uint32_t>& classes = only_primed ? m_primed_fragment_classes : m_fragment_classes;
  if ((classes.load(std::memory_order_relaxed) >> size_class & 1) == 0) {
    return false;
  }
  FreeChange change(*this);
  return take_fragment_locked(size_class, only_primed ? SplitSlots::Wanted::primed : SplitSlots::Wanted::primed_first,
                              slot);
}

bool Container::take_fragment_locked(unsigned size_class, SplitSlots::Wanted wanted, AllocatedSlot* slot) {
  uint64_t whole = 0;
  uint32_t first = 0;
  if (!m_split.take(size_class, slot->bytes / kBlockBytes, wanted, &whole, &first)) {
    return false;
  }
  note_fragments();
  const unsigned levels = m_size_class - size_class;
  slot->address = {static_cast<uint8_t>(size_class), whole << levels | first >> size_class,
                   static_cast<uint8_t>(levels)};
  slot->primed = m_split.is_primed(whole, first, slot->bytes / kBlockBytes);
  return true;
}

bool Container::break_up(unsigned size_class, AllocatedSlot* slot) {
  FreeChange change(*this);
  if (take_fragment_locked(size_class, SplitSlots::Wanted::primed_first, slot)) {
    return true;  // one that came back meanwhile
  }
  bool primed = false;
  const uint64_t whole = m_slots.take(&primed);
  if (whole == SlotAllocator::npos) {
    return false;
  }
  m_used = true;
  m_split.split(whole, 0, primed ? slot_blocks(m_size_class) : 0);
  m_split.put_back(whole, 0, slot_blocks(m_size_class));
  return take_fragment_locked(size_class, SplitSlots::Wanted::primed_first, slot);
}

uint64_t Container::fragment_bytes(unsigned size_class, bool only_primed) const {
  if ((m_fragment_classes.load(std::memory_order_relaxed) >> size_class & 1) == 0) {
    return 0;
  }
  MutexLock lock(m_lock);
  return (only_primed ? m_split.primed_fragments(size_class) : m_split.fragments(size_class)) * slot_bytes(size_class);
}

void Container::note_fragments() {
  uint32_t classes = 0, primed = 0;
  for (unsigned k = 0; k < m_size_class; k++) {
    classes |= uint32_t{m_split.fragments(k) > 0} << k;
    primed |= uint32_t{m_split.primed_fragments(k) > 0} << k;
  }
  m_fragment_classes.store(classes, std::memory_order_relaxed);
  m_primed_fragment_classes.store(primed, std::memory_order_relaxed);
}

void Container::note_free() {
  m_free_bytes.store(m_slots.available() * slot_bytes(m_size_class) + m_split.free_blocks() * kBlockBytes,
                     std::memory_order_release);
}

void Container::put_back(const AllocatedSlot& slot) {
  FreeChange change(*this);
  const SlotBlocks blocks = slot.blocks();
  const bool whole = slot.address.split_levels == 0;
  make_free({.slot = slot.address.whole().index, .first = blocks.first_block(), .count = whole ? 0 : blocks.count});
}

// What waits there is no owner's, but may still be written to: only what is free at all can be claimed.
Status Container::claim(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed) {
  MutexLock growth(m_growth_lock);
  const uint64_t slot = blocks.slot.whole().index;
  const std::string name = "slot " + std::to_string(slot) + " of " + m_file->path();
  const uint64_t chunk = slot / (m_growth_bytes / slot_bytes(m_size_class));
  bool backed = false;
  std::vector<Range> holes;
  {
    MutexLock lock(m_lock);
    if (slot >= m_slots.slots()) {
      return Status::invalid_argument(name + " lies past its end");
    }
    if (!m_punches.empty()) {
      return Status::busy("space of " + m_file->path() + " is being given back to the host");
    }
    backed = m_slots.is_backed(chunk);
    holes = holes_of(slot);
  }
  if (!backed) {
    VTKV_RETURN_IF_ERROR(m_file->allocate(chunk * m_growth_bytes, m_growth_bytes));
  }
  while (!holes.empty()) {
    VTKV_RETURN_IF_ERROR(fill({holes.back()}));
    holes.pop_back();
  }
  FreeChange change(*this);
  if (!backed) {
    m_slots.back(chunk);
  }
  m_used = true;
  m_written_unknown = true;
  if (!m_split.contains(slot)) {
    if (!m_slots.take_this(slot)) {
      return Status::busy(name + " is not free");
    }
    if (blocks.slot.split_levels == 0) {
      claimed->push_back(SlotBlocks::all(blocks.slot, blocks.written));
      return {};
    }
    m_split.split(slot, 0, primed_blocks(slot, 0));
    m_split.put_back(slot, 0, slot_blocks(m_size_class));
  }
  claim_blocks(blocks, claimed);
  note_fragments();
  return claimed->empty() ? Status::busy("blocks of " + name + " are not free") : Status{};
}

// Some of them may have an owner already.
void Container::claim_blocks(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed) {
  for (uint32_t i = 0; i < blocks.count; i++) {
    if (!m_split.take_these(blocks.slot.whole().index, blocks.first_block() + i, 1)) {
      continue;
    }
    const uint32_t block = blocks.first + i;
    if (!claimed->empty() && claimed->back().first + claimed->back().count == block) {
      claimed->back().count++;
    } else {
      claimed->push_back({blocks.slot, block, 1, blocks.written});
    }
  }
}

bool Container::next_owned(uint64_t from, std::vector<SlotBlocks>* owned, bool* split) const {
  MutexLock lock(m_lock);
  owned->clear();
  const uint64_t slot = m_slots.next_owned(from);
  if (slot == SlotAllocator::npos) {
    return false;
  }
  const SlotAddress address{static_cast<uint8_t>(m_size_class), slot};
  *split = m_split.contains(slot);
  if (!*split) {
    owned->push_back(SlotBlocks::all(address));
    return true;
  }
  for (const auto& [first, count] : m_split.owned_runs(slot)) {
    owned->push_back({address, first, count, slot_blocks(m_size_class)});
  }
  return true;
}

// ---- owners

Status Container::set_owned(const SlotBlocks& blocks, bool owned, bool* splits) {
  const uint64_t slot = blocks.slot.whole().index;
  const bool all_of_it = blocks.slot.split_levels == 0 && blocks.count == blocks.written;
  *splits = false;
  if (!m_split.contains(slot)) {
    if (all_of_it) {
      return m_slots.set_owned(slot, owned);
    }
    if (m_slots.is_owned(slot) == owned || (!owned && blocks.slot.split_levels > 0)) {
      return Status::corruption("the log " + std::string(owned ? "allocates" : "frees") + " blocks of slot " +
                                std::to_string(slot) + " of " + m_file->path() + ", which is " +
                                (owned ? "owned" : "not split"));
    }
    m_split.split(slot, owned ? 0 : blocks.written, primed_blocks(slot, owned ? 0 : blocks.written));
    *splits = true;
  }
  return set_blocks_owned(slot, blocks, owned);
}

Status Container::set_blocks_owned(uint64_t slot, const SlotBlocks& blocks, bool owned) {
  const uint32_t first = blocks.first_block();
  if (!(owned ? m_split.is_free(slot, first, blocks.count) : m_split.is_owned(slot, first, blocks.count))) {
    return Status::corruption("the log " + std::string(owned ? "allocates owned" : "frees free") + " blocks of slot " +
                              std::to_string(slot) + " of " + m_file->path());
  }
  m_split.set_owned(slot, first, blocks.count, owned);
  const bool has_owner = m_split.owns_any(slot);
  return m_slots.is_owned(slot) == has_owner ? Status{} : m_slots.set_owned(slot, has_owner);
}

uint32_t Container::primed_blocks(uint64_t slot, uint32_t written) const {
  if (m_slots.is_primed(slot)) {
    return slot_blocks(m_size_class);
  }
  return slot < m_written.size() && m_written.test(slot) ? written : 0;
}

// The transaction writes the blocks, and syncs this file if they were not primed, before anything that was freed later
// is free.
void Container::apply_allocated(const SlotBlocks& blocks) {
  MutexLock lock(m_lock);
  bool splits = false;
  const Status status = set_owned(blocks, true, &splits);
  VTKV_ASSERT(status.ok() && !splits);
  const uint64_t slot = blocks.slot.whole().index;
  if (m_split.contains(slot)) {
    if (!m_written_unknown) {
      m_split.set_primed(slot, blocks.first_block(), blocks.count, true);
    }
    return;
  }
  if (slot >= m_written.size()) {
    m_written.resize(m_slots.slots());
  }
  m_written.assign(slot, !m_written_unknown);
}

bool Container::begin_free(const SlotBlocks& blocks) {
  const uint64_t first = first_in_container(blocks);
  const uint64_t end = first + blocks.count;
  MutexLock lock(m_lock);
  const auto behind = m_being_freed.lower_bound(end);
  const bool overlaps = behind != m_being_freed.begin() && std::prev(behind)->second > first;
  if (overlaps || !owns(blocks)) {
    return false;
  }
  m_being_freed.emplace_hint(behind, first, end);
  return true;
}

void Container::end_free(const SlotBlocks& blocks) {
  MutexLock lock(m_lock);
  m_being_freed.erase(first_in_container(blocks));
}

uint64_t Container::apply_freed(SequenceNumber sequence, const SlotBlocks& blocks) {
  FreeChange change(*this);
  const uint64_t slot = blocks.slot.whole().index;
  bool splits = false;
  const Status status = set_owned(blocks, false, &splits);
  VTKV_ASSERT(status.ok());
  m_being_freed.erase(first_in_container(blocks));
  if (!m_split.contains(slot)) {
    wait(sequence, slot, 0, 0);
    return 1;
  }
  const uint32_t never_written = splits ? slot_blocks(m_size_class) - blocks.written : 0;
  if (never_written > 0) {
    wait(sequence, slot, blocks.written, never_written);
  }
  wait(sequence, slot, blocks.first_block(), blocks.count);
  return never_written > 0 ? 2 : 1;
}

void Container::wait(SequenceNumber sequence, uint64_t slot, uint32_t first, uint32_t count) {
  const Waiting freed{sequence, slot, first, count};
  if (mutated(Mutation::slot_reused_at_once)) {
    make_free(freed);
    return;
  }
  VTKV_ASSERT(m_waiting.empty() || m_waiting.back().sequence <= sequence);
  m_waiting.push_back(freed);
  m_waiting_slots += count == 0;
}

void Container::make_free(const Waiting& freed) {
  const uint64_t blocks = slot_blocks(m_size_class);
  const uint64_t first = freed.slot * blocks;
  if (freed.count > 0 && m_split.put_back(freed.slot, freed.first, freed.count)) {
    for (const Range& hole : take_owned_holes(first + freed.first, freed.count)) {
      const auto first_of_hole = static_cast<uint32_t>(hole.first - first);
      if (m_split.take_these(freed.slot, first_of_hole, static_cast<uint32_t>(hole.count))) {
        m_split.set_primed(freed.slot, first_of_hole, static_cast<uint32_t>(hole.count), false);
        add_hole(hole.first, hole.count);
      }
    }
    note_fragments();
    return;
  }
  bool primed = false;
  if (freed.count > 0) {
    primed = m_split.is_primed(freed.slot, 0, slot_blocks(m_size_class));
    m_split.unite(freed.slot);
    note_fragments();
  }
  if (take_owned_holes(first, blocks).empty()) {
    if (primed) {
      m_slots.set_primed(freed.slot);
    }
    m_slots.put_back(freed.slot);
  } else {
    add_hole(first, blocks);
  }
}

uint64_t Container::set_reuse_horizon(SequenceNumber horizon) {
  FreeChange change(*this);
  uint64_t ended = 0;
  while (!m_waiting.empty() && m_waiting.front().sequence <= horizon) {
    const bool whole = m_waiting.front().count == 0;
    VTKV_ASSERT(!whole || m_waiting_slots > 0);
    m_waiting_slots -= whole;
    make_free(m_waiting.front());
    m_waiting.pop_front();
    ended++;
  }
  return ended;
}

// What was filled just before it was freed and punched stays unprimed.
void Container::set_primed(uint64_t slot) {
  MutexLock lock(m_lock);
  const bool is_punched =
      std::any_of(m_punches.begin(), m_punches.end(), [&](const Punch& punch) { return overlaps(punch.range, slot); });
  if (!is_punched && holes_of(slot).empty()) {
    m_slots.set_primed(slot);
    if (m_split.contains(slot)) {
      m_split.set_primed(slot, 0, slot_blocks(m_size_class), true);
      note_fragments();
    }
  }
}

bool Container::is_owned(const SlotBlocks& blocks) const {
  MutexLock lock(m_lock);
  return owns(blocks);
}

bool Container::owns(const SlotBlocks& blocks) const {
  const uint64_t slot = blocks.slot.whole().index;
  if (!m_split.contains(slot)) {
    return m_slots.is_owned(slot) && blocks.slot.split_levels == 0;
  }
  return m_split.is_owned(slot, blocks.first_block(), blocks.count);
}

bool Container::is_primed(uint64_t slot) const {
  MutexLock lock(m_lock);
  return m_slots.is_primed(slot);
}

Status Container::load(const AllocationPage& page) {
  MutexLock lock(m_lock);
  return m_slots.load(page);
}

Status Container::load(const SplitSlotRecord& record) {
  MutexLock lock(m_lock);
  if (!m_slots.is_owned(record.slot)) {
    return Status::corruption("slot " + std::to_string(record.slot) + " of " + m_file->path() +
                              " is split, says the tree, and has no owner, says its allocation page");
  }
  m_split.load(record, m_slots.is_primed(record.slot));
  return {};
}

Status Container::replay(const SlotBlocks& blocks, bool owned) {
  MutexLock lock(m_lock);
  const uint64_t slot = blocks.slot.whole().index;
  if (slot >= m_slots.slots()) {
    return m_slots.set_owned(slot, owned);  // says so
  }
  bool splits = false;
  VTKV_RETURN_IF_ERROR(set_owned(blocks, owned, &splits));
  if (m_split.contains(slot) && !m_split.owns_any(slot)) {
    m_split.unite(slot);
  }
  return {};
}

void Container::quarantine(uint64_t slot) {
  MutexLock lock(m_lock);
  m_slots.quarantine(slot);
  m_split.quarantine(slot);
}

void Container::collect_pages(SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries) {
  const SplitSlots::Changed changed = collect_changed(as_of, entries);
  entries->reserve(entries->size() + changed.slots.size());
  for (size_t i = 0; i < changed.slots.size(); i++) {
    const std::span<const uint64_t> owned = changed.owned_of(i);
    const bool has_entry = std::any_of(owned.begin(), owned.end(), [](uint64_t word) { return word != 0; });
    entries->push_back({SplitSlotRecord::encode_key(m_size_class, changed.slots[i]),
                        has_entry ? std::optional(SplitSlotRecord::encode_value(m_size_class, owned)) : std::nullopt});
  }
}

SplitSlots::Changed Container::collect_changed(SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* pages) {
  MutexLock lock(m_lock);
  for (uint64_t number = m_slots.next_changed_page(0); number != SlotAllocator::npos;
       number = m_slots.next_changed_page(number + 1)) {
    const AllocationPage page = m_slots.take_page(number);
    pages->push_back({page.encode_key(), page.encode_value()});
  }
  // A second collection at the same sequence is not told from the first when that becomes durable: then only
  // a later one will do.
  const SequenceNumber told_apart = m_collected && *m_collected == as_of ? as_of + 1 : as_of;
  for (Punch& punch : m_punches) {
    if (!punch.in_page) {
      punch.in_page = true;
      punch.collected_at = told_apart;
    }
  }
  m_collected = as_of;
  m_first_collected = m_first_collected ? m_first_collected : told_apart;
  return m_split.take_changed();
}

// While nobody else can have them.
Status Container::quarantine_bad(uint64_t first, uint64_t count, const Status& failed, Quarantine& quarantine) {
  const uint64_t bytes = slot_bytes(m_size_class);
  vtkv::AlignedBuffer zeros(bytes);
  std::memset(zeros.data(), 0, bytes);
  const std::vector<iovec> buffers(count, {zeros.data(), bytes});
  const std::vector<SlotAddress> bad =
      find_bad_slots(*m_file, static_cast<uint8_t>(m_size_class), first * bytes, buffers);
  m_bad_in_a_row += bad.size();
  if (bad.empty() || (count > 1 && bad.size() == count) || m_bad_in_a_row >= kBadSlotsMax) {
    return failed;  // it is not the slots
  }
  const Status added = quarantine.add(bad);
  const std::string text = std::string(failed.message()) + "; " + to_string(bad, *m_file);
  if (!added.ok() && !added.is_no_space()) {
    return Status::make(failed.code(), text + " cannot be quarantined: " + std::string(added.message()));
  }
  for (const SlotAddress& slot : bad) {
    this->quarantine(slot.index);
  }
  return added.ok() ? Status::busy(text + " quarantined, and not used again")
                    : Status::make(failed.code(),
                                   text + " are not used until the next start: " + std::string(added.message()));
}

Status Container::prime(uint64_t bytes, Quarantine& quarantine, uint64_t* bytes_done) {
  uint64_t first = 0;
  uint64_t count = 0;
  {
    FreeChange change(*this);
    count = m_slots.take_unprimed_run(std::max<uint64_t>(1, bytes / slot_bytes(m_size_class)), &first);
  }
  *bytes_done = count * slot_bytes(m_size_class);
  if (count == 0) {
    return {};
  }
  Status written = m_file->write_zeros(first * slot_bytes(m_size_class), *bytes_done);
  const bool failed = !written.ok();
  if (failed && !written.is_no_space()) {
    written = quarantine_bad(first, count, written, quarantine);
  }
  FreeChange change(*this);
  if (failed) {
    *bytes_done = 0;
    for (uint64_t i = 0; i < count; i++) {
      m_slots.put_back(first + i);
    }
    return written;
  }
  m_bad_in_a_row = 0;
  m_priming.emplace_back(first, count);
  m_priming_slots += count;
  return {};
}

Status Container::sync_primed() {
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  {
    MutexLock lock(m_lock);
    runs.swap(m_priming);
    m_priming_slots = 0;
  }
  if (runs.empty()) {
    return {};
  }
  const Status synced = m_file->sync();
  FreeChange change(*this);
  for (const auto& [first, count] : runs) {
    for (uint64_t slot = first; slot < first + count; slot++) {
      if (synced.ok()) {
        m_slots.set_primed(slot);
      }
      m_slots.put_back(slot);
    }
  }
  return synced;
}

uint64_t Container::priming_bytes() const {
  MutexLock lock(m_lock);
  return m_priming_slots * slot_bytes(m_size_class);
}

Container::Counts Container::counts() const {
  MutexLock lock(m_lock);
  Counts counts;
  counts.slots = m_slots.backed_slots();
  counts.owned = m_slots.owned();
  counts.available = m_slots.available();
  counts.primed_available = m_slots.primed_available();
  counts.waiting = m_waiting_slots;
  counts.whole_free_chunks = m_slots.whole_free_chunks();
  counts.withheld_chunks = m_slots.withheld_chunks();
  counts.split = m_split.slots();
  counts.split_with_owner = m_split.slots_with_owner();
  counts.split_owned_blocks = m_split.owned_blocks();
  counts.split_free_blocks = m_split.free_blocks();
  counts.used = m_used;
  for (const Punch& punch : m_punches) {
    counts.punches++;
    counts.failed_punches += punch.tried;
    counts.failed_punch_bytes += punch.tried ? punch.range.bytes() : 0;
    if (!punch.range.is_chunk) {
      counts.withheld_fragments++;
      counts.withheld_fragments_bytes += punch.range.bytes();
      counts.withheld_slots += lies_in_split(punch.range) ? 0 : punch.range.count / slot_blocks(m_size_class);
    }
  }
  counts.hole_bytes = m_hole_blocks * kBlockBytes;
  counts.split_hole_blocks = m_split_hole_blocks;
  counts.hole_slots = (m_hole_blocks - m_split_hole_blocks) / slot_blocks(m_size_class);
  return counts;
}

}  // namespace swimstore
