// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/reference_audit.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace swimstore {

std::string describe_slot(SlotAddress slot) {
  const SlotAddress whole = slot.whole();
  const std::string name = fmt::format("slot {} of {} KiB", whole.index, slot_bytes(whole.size_class) >> 10);
  return slot == whole ? name
                       : fmt::format("{}, blocks {} to {}", name, slot.first_block(),
                                     slot.first_block() + slot_blocks(slot.size_class) - 1);
}

std::string describe_blocks(const SlotBlocks& blocks) {
  if (blocks.slot.split_levels == 0 && blocks.count == blocks.written) {
    return describe_slot(blocks.slot);
  }
  return fmt::format("{}, blocks {} to {}", describe_slot(blocks.slot.whole()), blocks.first_block(),
                     blocks.first_block() + blocks.count - 1);
}

// ---- one slot

uint64_t ReferenceAudit::Entry::blocks() const {
  return static_cast<uint64_t>(std::count(referenced.begin(), referenced.end(), true));
}

bool ReferenceAudit::Entry::has_more_than_kept() const {
  for (uint32_t block = 0; block < referenced.size(); ++block) {
    if (found_of(block) > kept_of(block)) {
      return true;
    }
  }
  return false;
}

// One that is kept and not found says that the block is owned, which is the containers' to tell.
bool ReferenceAudit::Entry::has_fewer_than_kept() const {
  for (uint32_t block = 0; block < kept.size(); ++block) {
    if (kept[block] > std::max<uint32_t>(1, found_of(block))) {
      return true;
    }
  }
  return false;
}

SlotReferences::Counts ReferenceAudit::Entry::counts() const {
  SlotReferences::Counts counts(std::max(referenced.size(), kept.size()));
  for (uint32_t block = 0; block < counts.size(); ++block) {
    counts[block] = found_of(block);
  }
  return counts;
}

// ---- all of them

namespace {

constexpr uint64_t kCountBytes = sizeof(SlotReferences::Counts::value_type);

}  // namespace

ReferenceAudit::Entry& ReferenceAudit::entry_of(SlotAddress slot) {
  const auto [entry, added] = m_entries.try_emplace(slot.packed());
  m_bytes += added ? kEntryBytes + 2 * bitmap_bytes(slot_blocks(slot.size_class)) : 0;
  return entry->second;
}

std::string ReferenceAudit::add(const Extent& extent, int64_t pool) {
  Entry& entry = entry_of(extent.slot);
  std::string conflict;
  if (entry.references > 0 && entry.written_blocks != extent.slot_written_blocks) {
    conflict = fmt::format("says that {} blocks were written to {}, another extent says {}", extent.slot_written_blocks,
                           describe_slot(extent.slot), entry.written_blocks);
  }
  entry.written_blocks = std::max(entry.written_blocks, extent.slot_written_blocks);
  entry.references += extent.count;
  entry.pool = pool;
  for (auto* bits : {&entry.referenced, &entry.exclusive}) {
    bits->resize(entry.written_blocks);
  }
  if (!entry.found.empty()) {
    entry.found.resize(entry.written_blocks);
  }
  for (uint32_t block = extent.slot_block; block < extent.slot_block + extent.count; ++block) {
    const bool again = entry.referenced[block];
    std::string wrong = again ? "" : claim_in_whole(extent, block);
    if (again && (!extent.shared || entry.exclusive[block])) {
      wrong =
          fmt::format("claims block {} of {} for itself, another extent does too", block, describe_slot(extent.slot));
    }
    if (conflict.empty()) {
      conflict = std::move(wrong);
    }
    if ((again || extent.shared) && entry.found.empty()) {
      entry.found.assign(entry.referenced.begin(), entry.referenced.end());
      m_bytes += entry.found.size() * kCountBytes;
    }
    entry.referenced[block] = true;
    entry.exclusive[block] = entry.exclusive[block] || !extent.shared;
    if (!entry.found.empty()) {
      ++entry.found[block];
    }
  }
  entry.conflict |= !conflict.empty();
  return conflict;
}

std::string ReferenceAudit::claim_in_whole(const Extent& extent, uint32_t block) {
  const SlotAddress whole = extent.slot.whole();
  const auto [found, added] = m_referenced.try_emplace(whole.packed());
  std::vector<bool>& referenced = found->second;
  m_bytes += added ? kWholeBytes + bitmap_bytes(slot_blocks(whole.size_class)) : 0;
  const uint32_t in_whole = extent.slot.first_block() + block;
  referenced.resize(std::max<size_t>(referenced.size(), in_whole + 1));
  if (!referenced[in_whole]) {
    referenced[in_whole] = true;
    return {};
  }
  return fmt::format("claims block {} of {}, which was filled by another write", in_whole, describe_slot(whole));
}

void ReferenceAudit::add_counts(SlotAddress slot, uint32_t group, const SlotReferences::Counts& counts) {
  Entry& entry = entry_of(slot);
  m_bytes += entry.kept.empty() ? slot_blocks(slot.size_class) * kCountBytes : 0;
  entry.kept.resize(slot_blocks(slot.size_class), 1);
  std::copy(counts.begin(), counts.end(), entry.kept.begin() + group * kReferenceGroupBlocks);
}

void ReferenceAudit::move_damaged(const std::unordered_set<uint64_t>& slots, Entries* damaged) {
  std::unordered_set<uint64_t> conflicting;  // whole ones
  for (const auto& [packed, entry] : m_entries) {
    if (entry.conflict) {
      conflicting.insert(SlotAddress::unpack(packed).whole().packed());
    }
  }
  if (slots.empty() && conflicting.empty()) {
    return;
  }
  for (auto entry = m_entries.begin(); entry != m_entries.end();) {
    const uint64_t packed = entry->first;
    const auto next = std::next(entry);
    if (slots.contains(packed) || conflicting.contains(SlotAddress::unpack(packed).whole().packed())) {
      damaged->insert(m_entries.extract(entry));
    }
    entry = next;
  }
}

const ReferenceAudit::Entry* ReferenceAudit::find(SlotAddress slot) const {
  const auto found = m_entries.find(slot.packed());
  return found == m_entries.end() ? nullptr : &found->second;
}

std::vector<SlotBlocks> ReferenceAudit::unreferenced(const SlotBlocks& owned, bool split) const {
  const auto found = m_referenced.find(owned.slot.packed());
  if (found == m_referenced.end()) {
    return {owned};
  }
  const Entry* const entry = split ? nullptr : find(owned.slot);
  const uint32_t written = entry != nullptr ? entry->written_blocks : owned.written;
  const std::vector<bool>& referenced = found->second;
  std::vector<SlotBlocks> runs;
  for (uint32_t block = owned.first; block < std::min(owned.first + owned.count, written); ++block) {
    if (block < referenced.size() && referenced[block]) {
      continue;
    }
    if (!runs.empty() && runs.back().first + runs.back().count == block) {
      ++runs.back().count;
    } else {
      runs.push_back({owned.slot, block, 1, written});
    }
  }
  return runs;
}

}  // namespace swimstore
