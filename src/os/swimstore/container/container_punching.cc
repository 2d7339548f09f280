// Of Container, what gives space back to the host, and takes it again.
#include "swimstore/container/container.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

constexpr uint64_t kPiecesPerStretch = 4;  // punched in the time of one; each changes the host's metadata
constexpr unsigned kProbes = 1024;         // for a free run, under the lock that allocations take
constexpr size_t kFillsAtOnce = 128;

}  // namespace

// ---- growing

std::vector<Container::Piece> Container::holes_to_fill() const {
  std::vector<Piece> holes;
  uint64_t bytes = 0;
  for (const auto& [first, count] : m_holes) {
    if (bytes >= m_growth_bytes || holes.size() >= kFillsAtOnce) {
      break;
    }
    holes.push_back({first, count});
    bytes += count * kBlockBytes;
  }
  return holes;
}

Status Container::fill(const std::vector<Piece>& holes) {
  bool filled = false;
  for (const Piece& hole : holes) {
    const Status status = m_file->allocate(hole.offset(), hole.bytes());
    if (!status.ok()) {
      return filled ? Status{} : status;
    }
    FreeChange change(*this);
    m_hole_blocks -= hole.count;
    m_split_hole_blocks -= lies_in_split(hole) ? hole.count : 0;
    m_holes.erase(hole.first);
    give_back(hole);
    filled = true;
  }
  return {};
}

Status Container::grow(bool only_when_empty) {
  std::lock_guard growth(m_growth_lock);
  std::vector<Piece> holes;
  Piece piece;
  bool failed_punch = false;
  {
    std::lock_guard lock(m_lock);
    if (only_when_empty && m_slots.available() > 0) {
      return {};
    }
    const auto tried = std::find_if(m_punches.begin(), m_punches.end(), [](const Punch& punch) { return punch.tried; });
    failed_punch = tried != m_punches.end();
    if (failed_punch) {
      piece = tried->piece;
    } else if (holes = holes_to_fill(); holes.empty()) {
      const uint64_t unbacked = m_slots.find_unbacked();
      piece = stretch_piece(unbacked != SlotAllocator::npos ? unbacked : m_slots.stretches());
    }
  }
  if (!holes.empty()) {
    return fill(holes);
  }
  VTKV_RETURN_IF_ERROR(m_file->allocate(piece.offset(), piece.bytes()));
  FreeChange change(*this);
  if (!piece.is_stretch) {
    m_punches.erase(find_punch(piece));
    give_back(piece);
    return {};
  }
  const uint64_t stretch = piece.offset() / m_growth_bytes;
  if (failed_punch) {
    dropped(piece);
  } else if (stretch == m_slots.stretches()) {
    m_slots.extend(1);
  }
  m_slots.back(stretch);
  return {};
}

// ---- withholding

Container::Piece Container::stretch_piece(uint64_t stretch) const {
  const uint64_t blocks = m_growth_bytes / kBlockBytes;
  return {stretch * blocks, blocks, true};
}

bool Container::overlaps(const Piece& piece, uint64_t slot) const {
  const uint64_t blocks = slot_blocks(m_size_class);
  return piece.first < (slot + 1) * blocks && slot * blocks < piece.end();
}

std::vector<Container::Punch>::iterator Container::find_punch(const Piece& piece) {
  return std::find_if(m_punches.begin(), m_punches.end(),
                      [&piece](const Punch& it) { return it.piece.first == piece.first; });
}

// What was primed before the store was opened, or before a piece of it was withheld, and is no more, the older manifest
// slot may still call so.
void Container::withhold(const Piece& piece, bool was_primed, SequenceNumber durable, bool punch_at_once) {
  Punch punch;
  punch.piece = piece;
  const bool checkpointed = m_first_collected && *m_first_collected <= durable;
  punch.needs_checkpoint = (was_primed || !checkpointed) && !punch_at_once;
  m_punches.push_back(punch);
}

bool Container::withhold_one(SequenceNumber durable, bool punch_at_once) {
  FreeChange change(*this);
  const uint64_t stretch = m_slots.find_whole_free_from_end(m_slots.stretches());
  if (stretch == SlotAllocator::npos) {
    return false;
  }
  const bool was_primed = m_slots.withhold(stretch);
  withhold(stretch_piece(stretch), was_primed, durable, punch_at_once);
  return true;
}

bool Container::withhold_piece(unsigned size_class, SequenceNumber durable, bool punch_at_once, uint64_t* withheld) {
  *withheld = 0;
  FreeChange change(*this);
  if (size_class >= m_size_class) {
    if (m_piece_class != size_class) {
      m_piece_class = size_class;
      m_piece_cursor = 0;
    }
    withhold_run(uint64_t{1} << (size_class - m_size_class), durable, punch_at_once, withheld);
    const bool more = m_piece_cursor != SlotAllocator::npos;
    m_piece_cursor = more ? m_piece_cursor : 0;
    return more;
  }
  uint64_t slot = 0;
  uint32_t first = 0;
  if (m_split.take(size_class, slot_blocks(size_class), &slot, &first)) {
    const bool was_primed = clear_primed(slot);
    withhold({slot * slot_blocks(m_size_class) + first, slot_blocks(size_class)}, was_primed, durable, punch_at_once);
    *withheld = slot_bytes(size_class);
    note_pieces();
  }
  return m_split.pieces(size_class) > 0;
}

void Container::withhold_run(uint64_t slots, SequenceNumber durable, bool punch_at_once, uint64_t* withheld) {
  if (slots > m_slots.stretch_slots()) {
    m_piece_cursor = SlotAllocator::npos;
  }
  const uint64_t first = m_slots.find_run(slots, kProbes, &m_piece_cursor);
  if (first == SlotAllocator::npos) {
    return;
  }
  bool was_primed = false;
  for (uint64_t slot = first; slot < first + slots; slot++) {
    m_slots.take_this(slot);
    was_primed |= clear_primed(slot);
  }
  const uint64_t blocks = slot_blocks(m_size_class);
  withhold({first * blocks, slots * blocks}, was_primed, durable, punch_at_once);
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
bool Container::cancel_punch(bool also_tried) {
  // Under the growth lock, so that no hole is being punched in what is given back.
  std::lock_guard growth(m_growth_lock);
  FreeChange change(*this);
  const auto punch = std::find_if(m_punches.rbegin(), m_punches.rend(),
                                  [also_tried](const Punch& it) { return also_tried || !it.tried; });
  if (punch == m_punches.rend()) {
    return false;
  }
  const Piece piece = punch->piece;
  m_punches.erase(std::next(punch).base());
  if (piece.is_stretch) {
    m_slots.give_back(piece.offset() / m_growth_bytes);
  } else {
    give_back(piece);
  }
  return true;
}

void Container::give_back(const Piece& piece) {
  const uint64_t blocks = slot_blocks(m_size_class);
  if (lies_in_split(piece)) {
    make_free({.slot = piece.first / blocks,
               .first = static_cast<uint32_t>(piece.first % blocks),
               .count = static_cast<uint32_t>(piece.count)});
    return;
  }
  for (uint64_t slot = piece.first / blocks; slot < piece.end() / blocks; slot++) {
    m_slots.put_back(slot);
  }
}

// ---- punching

Status Container::punch(SequenceNumber durable, uint64_t limit, Punched* punched) {
  std::lock_guard growth(m_growth_lock);
  Status first_error;
  for (const Piece& piece : due_punches(durable, limit)) {
    const Status status = m_file->punch_hole(piece.offset(), piece.bytes());
    std::lock_guard lock(m_lock);
    if (!status.ok()) {
      find_punch(piece)->tried = true;
      first_error = first_error.ok() ? status : first_error;
      continue;
    }
    dropped(piece);
    punched->bytes += piece.bytes();
    punched->pieces_bytes += piece.is_stretch ? 0 : piece.bytes();
  }
  return first_error;
}

// What was tried in vain holds up nothing else.
std::vector<Container::Piece> Container::due_punches(SequenceNumber durable, uint64_t limit) {
  std::vector<Piece> due;
  uint64_t effort = 0;
  std::lock_guard lock(m_lock);
  for (const bool tried : {false, true}) {
    for (const Punch& punch : m_punches) {
      if (effort >= limit * kPiecesPerStretch) {
        break;
      }
      if (punch.tried == tried && (!punch.needs_checkpoint || (punch.in_page && punch.collected_at <= durable))) {
        due.push_back(punch.piece);
        effort += punch.piece.is_stretch ? kPiecesPerStretch : 1;
      }
    }
  }
  return due;
}

void Container::dropped(const Piece& piece) {
  if (piece.is_stretch) {
    m_slots.dropped(piece.offset() / m_growth_bytes);
  } else {
    add_hole(piece.first, piece.count);
  }
  m_punches.erase(find_punch(piece));
}

// ---- holes

// Neighbours are one hole, as long as one call can fill it: runs of whole slots of a stretch, or pieces of one slot.
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

std::vector<Container::Piece> Container::holes_of(uint64_t slot) const {
  std::vector<Piece> holes;
  for (auto it = m_holes.lower_bound((slot + 1) * slot_blocks(m_size_class)); it != m_holes.begin();) {
    --it;
    if (!overlaps({it->first, it->second}, slot)) {
      break;
    }
    holes.push_back({it->first, it->second});
  }
  return holes;
}

// What is owned may have holes, too, when somebody made them: a copy that leaves out zeros, or `fallocate -d`.
void Container::make_hole(uint64_t first, uint64_t end, bool trust_pages) {
  const uint64_t blocks = slot_blocks(m_size_class);
  const uint64_t stretch_blocks = m_growth_bytes / kBlockBytes;
  end = std::min(end, m_slots.slots() * blocks);
  while (first < end) {
    const uint64_t slot = first / blocks;
    const uint64_t behind = std::min((slot + 1) * blocks, end);
    if (!m_slots.is_backed(first / stretch_blocks)) {
      first = (first / stretch_blocks + 1) * stretch_blocks;
    } else if (trust_pages && m_slots.is_primed(slot)) {
      first = behind;
    } else if (m_split.contains(slot)) {
      if (m_split.take_these(slot, static_cast<uint32_t>(first % blocks), 1)) {
        add_hole(first, 1);
      } else if (m_split.is_owned(slot, static_cast<uint32_t>(first % blocks), 1)) {
        m_owned_holes.emplace(first, 1);
      }
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

void Container::fill_owned(uint64_t* room_bytes) {
  std::lock_guard lock(m_lock);
  for (auto it = m_owned_holes.begin(); it != m_owned_holes.end();) {
    Piece hole{it->first, it->second};
    auto behind = std::next(it);
    for (; behind != m_owned_holes.end() && behind->first == hole.end() && hole.bytes() < m_growth_bytes; ++behind) {
      hole.count += behind->second;
    }
    if (hole.bytes() <= *room_bytes && m_file->allocate(hole.offset(), hole.bytes()).ok()) {
      *room_bytes -= hole.bytes();
      m_owned_holes.erase(it, behind);
    }
    it = behind;
  }
}

std::vector<Container::Piece> Container::take_owned_holes(uint64_t first, uint64_t count) {
  std::vector<Piece> holes;
  for (auto it = m_owned_holes.lower_bound(first); it != m_owned_holes.end() && it->first < first + count;) {
    holes.push_back({it->first, it->second});
    it = m_owned_holes.erase(it);
  }
  return holes;
}

}  // namespace swimstore
