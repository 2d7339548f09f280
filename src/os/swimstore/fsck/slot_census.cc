#include "swimstore/fsck/slot_census.h"

#include <algorithm>

#include <fmt/format.h>

namespace swimstore {

std::string describe_slot(SlotAddress slot) {
  return fmt::format("slot {} of {} KiB", slot.index, slot_bytes(slot.size_class) >> 10);
}

std::string SlotCensus::add(const Extent& extent, int64_t pool) {
  Entry& entry = m_entries[extent.slot.packed()];
  std::string conflict;
  if (entry.references > 0 && entry.written_blocks != extent.slot_written_blocks) {
    conflict = fmt::format("says that {} blocks were written to {}, another extent says {}",
                           extent.slot_written_blocks, describe_slot(extent.slot), entry.written_blocks);
  }
  entry.written_blocks = std::max(entry.written_blocks, extent.slot_written_blocks);
  entry.references += extent.count;
  entry.pool = pool;
  if (!extent.shared) {
    entry.exclusive.resize(std::max<size_t>(entry.exclusive.size(), entry.written_blocks));
    for (uint64_t block = extent.slot_block; block < uint64_t{extent.slot_block} + extent.count; ++block) {
      if (entry.exclusive[block] && conflict.empty()) {
        conflict = fmt::format("claims block {} of {} for itself, another extent does too", block,
                               describe_slot(extent.slot));
      }
      entry.exclusive[block] = true;
    }
  }
  entry.conflict |= !conflict.empty();
  return conflict;
}

void SlotCensus::add_count(SlotAddress slot, uint32_t references) {
  Entry& entry = m_entries[slot.packed()];
  entry.counted = references;
  entry.has_count = true;
}

const SlotCensus::Entry* SlotCensus::find(SlotAddress slot) const {
  const auto found = m_entries.find(slot.packed());
  return found == m_entries.end() ? nullptr : &found->second;
}

}  // namespace swimstore
