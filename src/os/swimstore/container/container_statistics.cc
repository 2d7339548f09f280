// SPDX-License-Identifier: LGPL-2.1-or-later
// What a set of containers holds, and several together.

#include <algorithm>
#include <bit>

#include "swimstore/container/container.h"
#include "swimstore/container/container_set.h"
#include "swimstore/container/primer.h"
#include "swimstore/container/reclaimer.h"
#include "swimstore/container/space_promises.h"
#include "swimstore/container/space_reserve.h"

namespace swimstore {

ContainerStatistics ContainerSet::statistics() const {
  ContainerStatistics statistics;
  for (unsigned size_class = 0; size_class < kSizeClasses; size_class++) {
    const Container& container = *m_containers[size_class];
    const Container::Counts counts = container.counts();
    // What is withheld is given back when a transaction needs it before it is punched.
    const uint64_t withheld = counts.withheld_chunks * (container.growth_bytes() / slot_bytes(size_class));
    ContainerStatistics::Class& it = statistics.classes[size_class];
    it.slots = counts.slots - counts.hole_slots + withheld;
    it.owned = counts.owned;
    it.free = counts.available + withheld + counts.withheld_slots;
    it.waiting = counts.waiting;
    it.reserved = it.slots - std::min(it.slots, it.owned + it.free + it.waiting);
    it.primed_free = counts.primed_available;
    it.split = counts.split;
    it.split_free_blocks = counts.split_free_blocks;
    const uint64_t split_blocks = counts.split * slot_blocks(size_class);
    statistics.owned_bytes +=
        (it.owned - counts.split_with_owner) * slot_bytes(size_class) + counts.split_owned_blocks * kBlockBytes;
    statistics.free_bytes += (it.free + it.waiting) * slot_bytes(size_class) +
                             (split_blocks - counts.split_owned_blocks - counts.split_hole_blocks) * kBlockBytes;
    statistics.file_bytes += it.slots * slot_bytes(size_class) - counts.split_hole_blocks * kBlockBytes;
    statistics.hole_bytes += counts.hole_bytes;
  }
  vtkv::FileSystemInfo host;
  if (m_env->file_system_info(m_directory, &host).ok()) {
    statistics.growable_bytes = m_reserve->growable_bytes(host);
  }
  statistics.kept_bytes = m_promises->kept_bytes();
  statistics.promised_bytes = m_promises->promised_bytes();
  statistics.growth_error = m_promises->growth_error();
  statistics.reserve_bytes = m_reserve->held_bytes();
  statistics.reserve_target_bytes = m_reserve->target_bytes();
  statistics.reserve_lent_bytes = m_reserve->lent_bytes();
  statistics.primed_bytes_total = m_primer->primed_bytes();
  statistics.punched_bytes_total = m_reclaimer->punched_bytes();
  statistics.punched_fragments_bytes_total = m_reclaimer->punched_fragments_bytes();
  return statistics;
}

ContainerStatistics& ContainerStatistics::operator+=(const ContainerStatistics& other) {
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    Class& to = classes[size_class];
    const Class& from = other.classes[size_class];
    to.slots += from.slots;
    to.owned += from.owned;
    to.free += from.free;
    to.waiting += from.waiting;
    to.reserved += from.reserved;
    to.primed_free += from.primed_free;
    to.split += from.split;
    to.split_free_blocks += from.split_free_blocks;
  }
  owned_bytes += other.owned_bytes;
  file_bytes += other.file_bytes;
  free_bytes += other.free_bytes;
  kept_bytes += other.kept_bytes;
  promised_bytes += other.promised_bytes;
  hole_bytes += other.hole_bytes;
  primed_bytes_total += other.primed_bytes_total;
  punched_bytes_total += other.punched_bytes_total;
  punched_fragments_bytes_total += other.punched_fragments_bytes_total;
  if (growth_error.empty()) {
    growth_error = other.growth_error;
  }
  return *this;
}

// ---- how free space lies

void FreePieces::add(uint64_t blocks, uint64_t count) {
  Size& size = sizes[std::min<unsigned>(std::bit_width(blocks) - 1, kSizeClasses - 1)];
  size.pieces += count;
  size.bytes += count * blocks * kBlockBytes;
}

FreePieces& FreePieces::operator+=(const FreePieces& other) {
  for (unsigned size = 0; size < kSizeClasses; ++size) {
    sizes[size].pieces += other.sizes[size].pieces;
    sizes[size].bytes += other.sizes[size].bytes;
  }
  return *this;
}

uint64_t FreePieces::bytes() const {
  uint64_t sum = 0;
  for (const Size& size : sizes) {
    sum += size.bytes;
  }
  return sum;
}

double FreePieces::score() const {
  double small = 0;
  for (unsigned size = 0; size < kSizeClasses; ++size) {
    small += static_cast<double>(sizes[size].bytes) * (kSizeClasses - 1 - size) / (kSizeClasses - 1);
  }
  const uint64_t all = bytes();
  return all == 0 ? 0 : small / static_cast<double>(all);
}

void Container::add_free_pieces(FreePieces* pieces) const {
  constexpr uint64_t kWordsAtOnce = 128;
  uint64_t run = 0;  // free slots up to here
  const auto end_run = [&] {
    if (run > 0) {
      pieces->add(run * slot_blocks(m_size_class));
      run = 0;
    }
  };
  bool is_over = false;
  for (uint64_t word = 0; !is_over;) {
    vtkv::MutexLock lock(m_lock);
    const uint64_t words = (m_slots.slots() + 63) / 64;
    for (const uint64_t end = std::min(words, word + kWordsAtOnce); word < end; ++word) {
      uint64_t free = m_slots.available_word(word);
      for (unsigned left = 64; left > 0;) {
        const auto ones = static_cast<unsigned>(std::countr_one(free));
        run += ones;
        left -= ones;
        if (left == 0) {
          break;
        }
        end_run();
        const unsigned zeros = std::min(left, static_cast<unsigned>(std::countr_zero(free >> ones)));
        left -= zeros;
        free = left == 0 ? 0 : free >> (ones + zeros);
      }
    }
    is_over = word >= words;
    if (is_over) {
      // Of fragments those that are part of no larger one.
      for (unsigned size = 0; size < m_size_class; ++size) {
        const uint64_t in_larger = size + 1 < kSizeClasses ? 2 * m_split.fragments(size + 1) : 0;
        pieces->add(slot_blocks(size), m_split.fragments(size) - in_larger);
      }
    }
  }
  end_run();
}

FreePieces ContainerSet::free_pieces() const {
  FreePieces pieces;
  for (const auto& container : m_containers) {
    container->add_free_pieces(&pieces);
  }
  return pieces;
}

}  // namespace swimstore
