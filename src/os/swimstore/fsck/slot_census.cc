#include "swimstore/fsck/slot_census.h"

#include <fmt/format.h>

namespace swimstore {

std::string describe_slot(SlotAddress slot) {
  return fmt::format("slot {} of {} KiB", slot.index, slot_bytes(slot.size_class) >> 10);
}

std::string SlotCensus::add(const Extent& extent) {
  const uint64_t end = uint64_t{extent.slot_block} + extent.count;
  if (end > extent.slot_written_blocks || extent.slot_written_blocks > slot_blocks(extent.slot.size_class)) {
    return fmt::format("claims blocks {} to {} of {}, in which {} blocks were written", extent.slot_block, end,
                       describe_slot(extent.slot), extent.slot_written_blocks);
  }
  Entry& entry = m_entries[extent.slot.packed()];
  if (entry.references > 0 && entry.written_blocks != extent.slot_written_blocks) {
    return fmt::format("says that {} blocks were written to {}, another extent says {}", extent.slot_written_blocks,
                       describe_slot(extent.slot), entry.written_blocks);
  }
  entry.written_blocks = extent.slot_written_blocks;
  entry.references += extent.count;
  if (extent.shared) {
    return {};
  }
  entry.exclusive.resize(entry.written_blocks);
  for (uint64_t block = extent.slot_block; block < end; ++block) {
    if (entry.exclusive[block]) {
      return fmt::format("claims block {} of {} for itself, another extent does too", block,
                         describe_slot(extent.slot));
    }
    entry.exclusive[block] = true;
  }
  return {};
}

void SlotCensus::add_count(SlotAddress slot, uint32_t references) {
  Entry& entry = m_entries[slot.packed()];
  entry.counted = references;
  entry.has_count = true;
}

}  // namespace swimstore
