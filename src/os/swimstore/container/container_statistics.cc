// SPDX-License-Identifier: LGPL-2.1-or-later
// What a set of containers holds, and several together.

#include <algorithm>

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

}  // namespace swimstore
