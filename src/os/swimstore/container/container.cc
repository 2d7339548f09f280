#include "swimstore/container/container.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::SequenceNumber;
using vtkv::Status;

std::string Container::file_name(unsigned size_class) {
  const uint32_t kib = slot_bytes(size_class) / 1024;
  return kib < 1024 ? std::to_string(kib) + "K" : std::to_string(kib / 1024) + "M";
}

uint64_t Container::growth_bytes(unsigned size_class, uint64_t stretch_bytes) {
  return std::max<uint64_t>(stretch_bytes, slot_bytes(size_class));
}

Status Container::open(uint64_t primed_slots) {
  uint64_t size = 0;
  VTKV_RETURN_IF_ERROR(m_file->size(&size));
  std::lock_guard lock(m_lock);
  // A last stretch that a crash cut short is made whole by the growth that wants it.
  m_slots.extend((size + m_growth_bytes - 1) / m_growth_bytes);
  m_slots.assume_primed(std::min(primed_slots, size / slot_bytes(m_size_class)));
  return {};
}

bool Container::take(AllocatedSlot* slot) {
  std::lock_guard lock(m_lock);
  const uint64_t index = m_slots.take(&slot->primed);
  if (index == SlotAllocator::npos) {
    return false;
  }
  m_used = true;
  slot->address = {static_cast<uint8_t>(m_size_class), index};
  return true;
}

void Container::put_back(uint64_t slot) {
  std::lock_guard lock(m_lock);
  m_slots.put_back(slot);
}

Status Container::claim(uint64_t slot) {
  std::lock_guard growth(m_growth_lock);
  const uint64_t stretch = slot / (m_growth_bytes / slot_bytes(m_size_class));
  bool backed = false;
  {
    std::lock_guard lock(m_lock);
    if (slot >= m_slots.slots()) {
      return Status::invalid_argument("slot " + std::to_string(slot) + " lies past the end of " + m_file->path());
    }
    if (m_slots.withheld_stretches() > 0) {
      return Status::busy("space of " + m_file->path() + " is being given back to the host");
    }
    backed = m_slots.is_backed(stretch);
  }
  if (!backed) {
    VTKV_RETURN_IF_ERROR(m_file->allocate(stretch * m_growth_bytes, m_growth_bytes));
  }
  std::lock_guard lock(m_lock);
  if (!backed) {
    m_slots.back(stretch);
  }
  if (!m_slots.take_this(slot)) {
    return Status::busy("slot " + std::to_string(slot) + " of " + m_file->path() + " is not free");
  }
  m_used = true;
  return {};
}

bool Container::next_owned(uint64_t from, uint64_t* slot) const {
  std::lock_guard lock(m_lock);
  *slot = m_slots.next_owned(from);
  return *slot != SlotAllocator::npos;
}

void Container::apply_allocated(uint64_t slot) {
  std::lock_guard lock(m_lock);
  m_slots.set_owned(slot, true);
}

void Container::apply_freed(SequenceNumber sequence, uint64_t slot, bool reuse_at_once) {
  std::lock_guard lock(m_lock);
  m_slots.set_owned(slot, false);
  if (reuse_at_once) {
    m_slots.put_back(slot);
  } else {
    VTKV_ASSERT(m_waiting.empty() || m_waiting.back().first <= sequence);
    m_waiting.emplace_back(sequence, slot);
  }
}

uint64_t Container::set_reuse_horizon(SequenceNumber horizon) {
  std::lock_guard lock(m_lock);
  uint64_t released = 0;
  while (!m_waiting.empty() && m_waiting.front().first <= horizon) {
    m_slots.put_back(m_waiting.front().second);
    m_waiting.pop_front();
    released++;
  }
  return released;
}

void Container::set_primed(uint64_t slot) {
  std::lock_guard lock(m_lock);
  m_slots.set_primed(slot);
}

bool Container::is_owned(uint64_t slot) const {
  std::lock_guard lock(m_lock);
  return m_slots.is_owned(slot);
}

bool Container::is_primed(uint64_t slot) const {
  std::lock_guard lock(m_lock);
  return m_slots.is_primed(slot);
}

Status Container::load(const AllocationPage& page) {
  std::lock_guard lock(m_lock);
  return m_slots.load(page);
}

Status Container::replay_owned(uint64_t slot, bool owned) {
  std::lock_guard lock(m_lock);
  return m_slots.replay_owned(slot, owned);
}

void Container::finish_recovery() {
  std::lock_guard lock(m_lock);
  m_slots.finish_recovery();
  m_used = m_slots.owned() > 0;
}

void Container::collect_pages(SequenceNumber as_of, std::vector<std::pair<std::string, std::string>>* entries) {
  std::lock_guard lock(m_lock);
  for (uint64_t number = m_slots.next_changed_page(0); number != SlotAllocator::npos;
       number = m_slots.next_changed_page(number + 1)) {
    const AllocationPage page = m_slots.take_page(number);
    entries->emplace_back(page.encode_key(), page.encode_value());
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
}

uint64_t Container::stretch_to_grow(bool* failed_punch) {
  const auto tried = std::find_if(m_punches.begin(), m_punches.end(), [](const Punch& punch) { return punch.tried; });
  *failed_punch = tried != m_punches.end();
  if (*failed_punch) {
    return tried->stretch;
  }
  const uint64_t unbacked = m_slots.find_unbacked();
  return unbacked != SlotAllocator::npos ? unbacked : m_slots.stretches();
}

Status Container::grow(bool only_when_empty) {
  std::lock_guard growth(m_growth_lock);
  uint64_t stretch = 0;
  bool failed_punch = false;
  {
    std::lock_guard lock(m_lock);
    if (only_when_empty && m_slots.available() > 0) {
      return {};
    }
    stretch = stretch_to_grow(&failed_punch);
  }
  VTKV_RETURN_IF_ERROR(m_file->allocate(stretch * m_growth_bytes, m_growth_bytes));
  std::lock_guard lock(m_lock);
  if (failed_punch) {
    dropped(stretch);
  } else if (stretch == m_slots.stretches()) {
    m_slots.extend(1);
  }
  m_slots.back(stretch);
  return {};
}

// A punch that failed may have made holes, in which nothing is primed and for which the host may have no space: such
// a stretch comes back through grow().
bool Container::cancel_punch(bool also_tried) {
  // Under the growth lock, so that no hole is being punched in what is given back.
  std::lock_guard growth(m_growth_lock);
  std::lock_guard lock(m_lock);
  const auto punch = std::find_if(m_punches.rbegin(), m_punches.rend(),
                                  [also_tried](const Punch& it) { return also_tried || !it.tried; });
  if (punch == m_punches.rend()) {
    return false;
  }
  m_slots.give_back(punch->stretch);
  m_punches.erase(std::next(punch).base());
  return true;
}

Status Container::prime(uint64_t bytes, uint64_t* bytes_done) {
  uint64_t first = 0;
  uint64_t count = 0;
  {
    std::lock_guard lock(m_lock);
    count = m_slots.take_unprimed_run(std::max<uint64_t>(1, bytes / slot_bytes(m_size_class)), &first);
  }
  *bytes_done = count * slot_bytes(m_size_class);
  if (count == 0) {
    return {};
  }
  const Status written = m_file->write_zeros(first * slot_bytes(m_size_class), *bytes_done);
  std::lock_guard lock(m_lock);
  if (!written.ok()) {
    for (uint64_t i = 0; i < count; i++) {
      m_slots.put_back(first + i);
    }
    return written;
  }
  m_priming.emplace_back(first, count);
  m_priming_slots += count;
  return {};
}

Status Container::sync_primed() {
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  {
    std::lock_guard lock(m_lock);
    runs.swap(m_priming);
    m_priming_slots = 0;
  }
  if (runs.empty()) {
    return {};
  }
  const Status synced = m_file->sync();
  std::lock_guard lock(m_lock);
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
  std::lock_guard lock(m_lock);
  return m_priming_slots * slot_bytes(m_size_class);
}

bool Container::withhold_one(bool punch_at_once) {
  std::lock_guard lock(m_lock);
  const uint64_t stretch = m_slots.find_whole_free_from_end(m_slots.stretches());
  if (stretch == SlotAllocator::npos) {
    return false;
  }
  Punch punch;
  punch.stretch = stretch;
  punch.needs_checkpoint = m_slots.withhold(stretch) && !punch_at_once;
  m_punches.push_back(punch);
  return true;
}

Status Container::punch(SequenceNumber durable, uint64_t limit, uint64_t* bytes) {
  std::lock_guard growth(m_growth_lock);
  std::vector<uint64_t> due;
  {
    std::lock_guard lock(m_lock);
    for (const Punch& punch : m_punches) {
      if (due.size() < limit && (!punch.needs_checkpoint || (punch.in_page && punch.collected_at <= durable))) {
        due.push_back(punch.stretch);
      }
    }
  }
  for (uint64_t stretch : due) {
    const Status punched = m_file->punch_hole(stretch * m_growth_bytes, m_growth_bytes);
    std::lock_guard lock(m_lock);
    if (!punched.ok()) {
      find_punch(stretch)->tried = true;
      return punched;
    }
    dropped(stretch);
    *bytes += m_growth_bytes;
  }
  return {};
}

std::vector<Container::Punch>::iterator Container::find_punch(uint64_t stretch) {
  return std::find_if(m_punches.begin(), m_punches.end(), [stretch](const Punch& it) { return it.stretch == stretch; });
}

void Container::dropped(uint64_t stretch) {
  m_slots.dropped(stretch);
  m_punches.erase(find_punch(stretch));
}

Container::Counts Container::counts() const {
  std::lock_guard lock(m_lock);
  Counts counts;
  counts.slots = m_slots.backed_slots();
  counts.owned = m_slots.owned();
  counts.available = m_slots.available();
  counts.primed_available = m_slots.primed_available();
  counts.waiting = m_waiting.size();
  counts.whole_free_stretches = m_slots.whole_free_stretches();
  counts.withheld_stretches = m_slots.withheld_stretches();
  counts.used = m_used;
  return counts;
}

}  // namespace swimstore
