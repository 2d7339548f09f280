// SPDX-License-Identifier: LGPL-2.1-or-later
// Of Container, what gives space back to the host, and takes it again.
#include "swimstore/container/container.h"

#include <algorithm>

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

using vtkv::Mutation;
using vtkv::MutexLock;
using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

constexpr uint64_t kFragmentsPunchedPerChunk = 4;  // in the time of one; each changes the host's metadata
constexpr unsigned kProbes = 1024;         // for a free run, under the lock that allocations take
constexpr size_t kFillsAtOnce = 128;

}  // namespace

// ---- growing

std::vector<Container::Range> Container::holes_to_fill(bool only_whole) const {
  std::vector<Range> holes;
  uint64_t bytes = 0;
  for (const auto& [first, count] : m_holes) {
    if (bytes >= m_growth_bytes || holes.size() >= kFillsAtOnce) {
      break;
    }
    if (only_whole && lies_in_split({first, count})) {
      continue;
    }
    holes.push_back({first, count});
    bytes += count * kBlockBytes;
  }
  return holes;
}

Status Container::fill(const std::vector<Range>& holes) {
  bool filled = false;
  for (const Range& hole : holes) {
    const Status status = m_file->allocate(hole.offset(), hole.bytes());
    if (!status.ok()) {
      (void)m_file->punch_hole(hole.offset(), hole.bytes());  // the host may have given a part of it
      return filled ? Status{} : status;
    }
    FreeChange change(*this);
    const uint64_t in_split = lies_in_split(hole) ? hole.count : 0;
    VTKV_ASSERT(m_hole_blocks >= hole.count && m_split_hole_blocks >= in_split);
    m_hole_blocks -= hole.count;
    m_split_hole_blocks -= in_split;
    // What was freed meanwhile may have made it longer.
    const auto found = m_holes.find(hole.first);
    const uint64_t rest = found->second - hole.count;
    m_holes.erase(found);
    if (rest > 0) {
      m_holes.emplace(hole.first + hole.count, rest);
    }
    give_back(hole);
    filled = true;
  }
  return {};
}

Status Container::grow(bool only_when_empty, uint64_t chunks_most) {
  MutexLock growth(m_growth_lock);
  std::vector<Range> holes;
  Range range;
  uint64_t chunks = 1;
  bool failed_punch = false;
  {
    MutexLock lock(m_lock);
    if (only_when_empty && m_slots.available() > 0) {
      return {};
    }
    const auto tried = std::find_if(m_punches.begin(), m_punches.end(), [](const Punch& punch) { return punch.tried; });
    failed_punch = tried != m_punches.end();
    if (failed_punch) {
      range = tried->range;
    } else if (holes = holes_to_fill(only_when_empty); holes.empty()) {
      const uint64_t unbacked = m_slots.find_unbacked();
      const bool at_end = unbacked == SlotAllocator::npos;
      range = chunk_range(at_end ? m_slots.chunks() : unbacked);
      chunks = at_end ? chunks_most : 1;
    }
  }
  if (!holes.empty()) {
    return fill(holes);
  }
  const Status allocated = m_file->allocate(range.offset(), chunks * range.bytes());
  if (!allocated.ok()) {
    // The host may have given a part of it. What was withheld keeps what it has.
    (void)(failed_punch ? Status() : m_file->punch_hole(range.offset(), chunks * range.bytes()));
    return allocated;
  }
  FreeChange change(*this);
  if (!range.is_chunk) {
    m_punches.erase(find_punch(range));
    give_back(range);
    return {};
  }
  const uint64_t chunk = range.offset() / m_growth_bytes;
  if (failed_punch) {
    dropped(range);
  } else if (chunk == m_slots.chunks()) {
    m_slots.extend(chunks);
  }
  for (uint64_t i = 0; i < chunks; i++) {
    m_slots.back(chunk + i);
  }
  return {};
}

// ---- withholding

Container::Range Container::chunk_range(uint64_t chunk) const {
  const uint64_t blocks = m_growth_bytes / kBlockBytes;
  return {chunk * blocks, blocks, true};
}

bool Container::overlaps(const Range& range, uint64_t slot) const {
  const uint64_t blocks = slot_blocks(m_size_class);
  return range.first < (slot + 1) * blocks && slot * blocks < range.end();
}

std::vector<Container::Punch>::iterator Container::find_punch(const Range& range) {
  const auto found = std::find_if(m_punches.begin(), m_punches.end(),
                                  [&range](const Punch& it) { return it.range.first == range.first; });
  VTKV_ASSERT(found != m_punches.end());
  return found;
}

// What was primed before the store was opened, or before a fragment of it was withheld, and is no more, the older
// copy of the manifest may still call so.
void Container::withhold(const Range& range, bool was_primed, SequenceNumber durable) {
  Punch punch;
  punch.range = range;
  const bool checkpointed = m_first_collected && *m_first_collected <= durable;
  punch.needs_checkpoint = (was_primed || !checkpointed) && !mutated(Mutation::slot_punched_early) &&
                           (range.is_chunk || !mutated(Mutation::fragment_punched_early));
  m_punches.push_back(punch);
}

bool Container::withhold_one(SequenceNumber durable) {
  FreeChange change(*this);
  const uint64_t chunk = m_slots.find_whole_free_from_end(m_slots.chunks());
  if (chunk == SlotAllocator::npos) {
    return false;
  }
  const bool was_primed = m_slots.withhold(chunk);
  withhold(chunk_range(chunk), was_primed, durable);
  return true;
}

bool Container::withhold_fragment(unsigned size_class, SequenceNumber durable, uint64_t* withheld) {
  *withheld = 0;
  FreeChange change(*this);
  if (size_class >= m_size_class) {
    if (m_fragment_class != size_class) {
      m_fragment_class = size_class;
      m_fragment_cursor = 0;
    }
    withhold_run(uint64_t{1} << (size_class - m_size_class), durable, withheld);
    const bool more = m_fragment_cursor != SlotAllocator::npos;
    m_fragment_cursor = more ? m_fragment_cursor : 0;
    return more;
  }
  uint64_t slot = 0;
  uint32_t first = 0;
  if (m_split.take(size_class, slot_blocks(size_class), SplitSlots::Wanted::any, &slot, &first)) {
    const bool was_primed = clear_primed(slot);
    m_split.set_primed(slot, first, slot_blocks(size_class), false);
    withhold({slot * slot_blocks(m_size_class) + first, slot_blocks(size_class)}, was_primed, durable);
    *withheld = slot_bytes(size_class);
    note_fragments();
  }
  return m_split.fragments(size_class) > 0;
}

void Container::withhold_run(uint64_t slots, SequenceNumber durable, uint64_t* withheld) {
  if (slots > m_slots.chunk_slots()) {
    m_fragment_cursor = SlotAllocator::npos;
  }
  const uint64_t first = m_slots.find_run(slots, kProbes, &m_fragment_cursor);
  if (first == SlotAllocator::npos) {
    return;
  }
  bool was_primed = false;
  for (uint64_t slot = first; slot < first + slots; slot++) {
    m_slots.take_this(slot);
    was_primed |= clear_primed(slot);
  }
  const uint64_t blocks = slot_blocks(m_size_class);
  withhold({first * blocks, slots * blocks}, was_primed, durable);
  *withheld = slots * slot_bytes(m_size_class);
}

// From now on no page but one collected later is known to call it unprimed.
bool Container::clear_primed(uint64_t slot) {
  const bool was_primed = m_slots.clear_primed(slot);
  if (was_primed) {
    m_first_collected.reset();
  }
  return was_primed;
}

// A punch that failed may have made holes, in which nothing is primed and for which the host may have no space: that
// comes back through grow().
bool Container::cancel_punch(bool only_whole) {
  // Under the growth lock, so that no hole is being punched in what is given back.
  MutexLock growth(m_growth_lock);
  FreeChange change(*this);
  const auto punch = std::find_if(m_punches.rbegin(), m_punches.rend(), [&](const Punch& it) REQUIRES(m_lock) {
    return (!it.tried || mutated(Mutation::failed_punch_trusted)) && !(only_whole && lies_in_split(it.range));
  });
  if (punch == m_punches.rend()) {
    return false;
  }
  const Range range = punch->range;
  m_punches.erase(std::next(punch).base());
  if (range.is_chunk) {
    m_slots.give_back(range.offset() / m_growth_bytes);
  } else {
    give_back(range);
  }
  return true;
}

void Container::give_back(const Range& range) {
  const uint64_t blocks = slot_blocks(m_size_class);
  if (lies_in_split(range)) {
    make_free({.slot = range.first / blocks,
               .first = static_cast<uint32_t>(range.first % blocks),
               .count = static_cast<uint32_t>(range.count)});
    return;
  }
  for (uint64_t slot = range.first / blocks; slot < range.end() / blocks; slot++) {
    m_slots.put_back(slot);
  }
}

// ---- punching

Status Container::punch(SequenceNumber durable, uint64_t limit, Punched* punched) {
  MutexLock growth(m_growth_lock);
  Status first_error;
  for (const Range& range : due_punches(durable, limit)) {
    const Status status = m_file->punch_hole(range.offset(), range.bytes());
    MutexLock lock(m_lock);
    if (!status.ok()) {
      find_punch(range)->tried = true;
      first_error = first_error.ok() ? status : first_error;
      continue;
    }
    dropped(range);
    punched->bytes += range.bytes();
    punched->fragments_bytes += range.is_chunk ? 0 : range.bytes();
  }
  return first_error;
}

// What was tried in vain holds up nothing else.
std::vector<Container::Range> Container::due_punches(SequenceNumber durable, uint64_t limit) {
  std::vector<Range> due;
  uint64_t effort = 0;
  MutexLock lock(m_lock);
  for (const bool tried : {false, true}) {
    for (const Punch& punch : m_punches) {
      if (effort >= limit * kFragmentsPunchedPerChunk) {
        break;
      }
      if (punch.tried == tried && (!punch.needs_checkpoint || (punch.in_page && punch.collected_at <= durable))) {
        due.push_back(punch.range);
        effort += punch.range.is_chunk ? kFragmentsPunchedPerChunk : 1;
      }
    }
  }
  return due;
}

void Container::dropped(const Range& range) {
  if (range.is_chunk) {
    m_slots.dropped(range.offset() / m_growth_bytes);
  } else {
    add_hole(range.first, range.count);
  }
  m_punches.erase(find_punch(range));
}

// ---- holes

// Neighbours are one hole, as long as one call can fill it: runs of whole slots of a chunk, or fragments of one slot.
void Container::add_hole(uint64_t first, uint64_t count) {
  const bool is_split = lies_in_split({first, count});
  m_hole_blocks += count;
  m_split_hole_blocks += is_split ? count : 0;
  const uint64_t unit = is_split ? slot_blocks(m_size_class) : m_growth_bytes / kBlockBytes;
  const auto behind = m_holes.lower_bound(first);
  if (behind != m_holes.begin()) {
    const auto before = std::prev(behind);
    const bool alike = is_split == lies_in_split({before->first, before->second});
    if (alike && before->first + before->second == first && before->first / unit == first / unit) {
      before->second += count;
      return;
    }
  }
  m_holes.emplace_hint(behind, first, count);
}

std::vector<Container::Range> Container::holes_of(uint64_t slot) const {
  std::vector<Range> holes;
  for (auto it = m_holes.lower_bound((slot + 1) * slot_blocks(m_size_class)); it != m_holes.begin();) {
    --it;
    if (!overlaps({it->first, it->second}, slot)) {
      break;
    }
    holes.push_back({it->first, it->second});
  }
  return holes;
}

namespace {

// Broken, these rules leave holes in what pages call primed: found here, they would do no harm.
bool pages_are_trusted() { return mutated(Mutation::slot_punched_early) || mutated(Mutation::fragment_punched_early); }

}  // namespace

// What is owned may have holes, too, when somebody made them: a copy that leaves out zeros, or `fallocate -d`.
void Container::make_hole(uint64_t first, uint64_t end) {
  const uint64_t blocks = slot_blocks(m_size_class);
  const uint64_t chunk_blocks = m_growth_bytes / kBlockBytes;
  end = std::min(end, m_slots.slots() * blocks);
  while (first < end) {
    const uint64_t slot = first / blocks;
    const uint64_t behind = std::min((slot + 1) * blocks, end);
    if (!m_slots.is_backed(first / chunk_blocks)) {
      first = (first / chunk_blocks + 1) * chunk_blocks;
    } else if (pages_are_trusted() && m_slots.is_primed(slot)) {
      first = behind;
    } else if (m_split.contains(slot)) {
      if (m_split.take_these(slot, static_cast<uint32_t>(first % blocks), 1)) {
        add_hole(first, 1);
      } else if (m_split.is_owned(slot, static_cast<uint32_t>(first % blocks), 1)) {
        m_owned_holes.emplace(first, 1);
      }
      m_split.set_primed(slot, 0, slot_blocks(m_size_class), false);
      clear_primed(slot);
      first++;
    } else {
      if (m_slots.take_this(slot)) {
        add_hole(slot * blocks, blocks);
      } else if (m_slots.is_owned(slot)) {
        m_owned_holes.emplace(first, behind - first);
      }
      clear_primed(slot);
      first = behind;
    }
  }
}

// A hole may have been given space at an earlier mount, after which no page was written.
void Container::make_unprimed(uint64_t first, uint64_t end) {
  const uint32_t blocks = slot_blocks(m_size_class);
  for (uint64_t slot = first / blocks; slot * blocks < end; ++slot) {
    if (!m_slots.is_primed(slot) || pages_are_trusted()) {
      continue;
    }
    if (m_split.contains(slot)) {
      m_split.set_primed(slot, 0, blocks, false);  // its page said so of all of them
    }
    const bool was_free = m_slots.take_this(slot);
    clear_primed(slot);
    if (was_free) {
      m_slots.put_back(slot);
    }
  }
}

// One that was about to be punched when the store was last open still has its space. Nobody else could get it, if it
// counted as without.
std::vector<bool> Container::chunks_with_space(const std::vector<vtkv::FileRange>& holes) const {
  std::vector<uint64_t> without(m_slots.chunks());  // bytes
  for (const vtkv::FileRange& hole : holes) {
    const uint64_t end = std::min(hole.offset + hole.length, without.size() * m_growth_bytes);
    for (uint64_t at = hole.offset; at < end;) {
      const uint64_t next = std::min(end, (at / m_growth_bytes + 1) * m_growth_bytes);
      without[at / m_growth_bytes] += next - at;
      at = next;
    }
  }
  std::vector<bool> has_space(without.size());
  for (size_t chunk = 0; m_knows_holes && chunk < without.size(); ++chunk) {
    has_space[chunk] = without[chunk] < m_growth_bytes;
  }
  return has_space;
}

Status Container::finish_recovery() {
  vtkv::FileSpace space;
  std::vector<vtkv::FileRange>& holes = space.holes;
  uint64_t size = 0;
  VTKV_RETURN_IF_ERROR(m_file->size(&size));
  const Status mapped = m_file->map_space(&space);
  if (!mapped.ok() && mapped.code() != Status::Code::unsupported) {
    return mapped;
  }
  m_knows_holes = mapped.ok();
  FreeChange change(*this);
  if (m_knows_holes) {
    holes.push_back({size, m_slots.slots() * slot_bytes(m_size_class) - size});  // a chunk that a crash cut short
  }
  m_slots.finish_recovery(chunks_with_space(holes));
  m_split.finish_recovery();
  for (const vtkv::FileRange& hole : holes) {
    make_hole(hole.offset / kBlockBytes, blocks_for(hole.offset + hole.length));
  }
  for (const vtkv::FileRange& unwritten : space.unwritten) {
    make_unprimed(unwritten.offset / kBlockBytes, blocks_for(unwritten.offset + unwritten.length));
  }
  note_fragments();
  m_used = m_slots.owned() > 0;
  return {};
}

void Container::fill_owned(uint64_t* room_bytes) {
  MutexLock growth(m_growth_lock);
  std::vector<Range> holes;
  {
    MutexLock lock(m_lock);
    holes = owned_holes();
  }
  for (const Range& hole : holes) {
    if (hole.bytes() <= *room_bytes && m_file->allocate(hole.offset(), hole.bytes()).ok()) {
      *room_bytes -= hole.bytes();
      MutexLock lock(m_lock);
      take_owned_holes(hole.first, hole.count);
    }
  }
}

std::vector<Container::Range> Container::owned_holes() const {
  std::vector<Range> holes;
  for (const auto& [first, count] : m_owned_holes) {
    if (!holes.empty() && holes.back().end() == first && holes.back().bytes() < m_growth_bytes) {
      holes.back().count += count;
    } else {
      holes.push_back({first, count});
    }
  }
  return holes;
}

// What is left of one that reaches beyond stays.
std::vector<Container::Range> Container::take_owned_holes(uint64_t first, uint64_t count) {
  const uint64_t end = first + count;
  std::vector<Range> holes;
  auto it = m_owned_holes.upper_bound(first);
  if (it != m_owned_holes.begin() && std::prev(it)->first + std::prev(it)->second > first) {
    --it;
  }
  while (it != m_owned_holes.end() && it->first < end) {
    const auto [from, to] = std::pair(it->first, it->first + it->second);
    it = m_owned_holes.erase(it);
    if (from < first) {
      m_owned_holes.emplace(from, first - from);
    }
    if (to > end) {
      m_owned_holes.emplace(end, to - end);
    }
    holes.push_back({std::max(from, first), std::min(to, end) - std::max(from, first)});
  }
  return holes;
}

}  // namespace swimstore
