// SPDX-License-Identifier: LGPL-2.1-or-later
// What the reference audit tells: reference counts, leaks, and the pools' sums.

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "swimstore/format/key_codec.h"
#include "swimstore/fsck/fsck.h"

namespace swimstore {

namespace {

std::string describe(const PoolUsage& usage) {
  std::string text =
      fmt::format("{} objects of {} bytes in {} bytes of slots", usage.objects, usage.stored, usage.allocated);
  if (usage.has_compressed()) {
    text += fmt::format(", {} of them compressed into {} in {}", usage.compressed_original, usage.compressed,
                        usage.compressed_allocated);
  }
  return text;
}

}  // namespace

void Fsck::check_slots() {
  for (const auto& [packed, entry] : m_references.entries()) {
    const SlotAddress slot = SlotAddress::unpack(packed);
    const bool more = entry.has_more_than_kept();
    if ((!more && !entry.has_fewer_than_kept()) || entry.conflict) {
      continue;  // a conflict is repaired first, and its counts with it
    }
    if (m_newer_counts.contains(packed) || (!more && (!knows_all_owners() || m_quarantined_owners > 0))) {
      ++m_unclear;
      continue;
    }
    Finding finding{.kind = FindingClass::slot_count_wrong,
                    .text = fmt::format("{} has {} block references, {} for some of its blocks", describe_slot(slot),
                                        entry.references, more ? "more than are counted" : "fewer than are counted"),
                    .key = slot_reference_key(slot, 0),
                    .blocks = {.slot = slot}};
    if (more) {
      found(std::move(finding));
    } else {
      found_missing_reference(std::move(finding));
    }
  }
  if (!m_options.online) {
    check_owned_slots();
  }
}

void Fsck::found_missing_reference(Finding finding) {
  if (m_foreign_undecodable == 0) {
    found(std::move(finding));
  } else if (m_withheld.size() < kFindingsOfClassMax) {
    m_withheld.push_back(std::move(finding));
  } else {
    ++m_unclear;
  }
}

void Fsck::judge_withheld() {
  for (Finding& finding : std::exchange(m_withheld, {})) {
    if (knows_all_owners()) {
      found(std::move(finding));
    } else {
      ++m_unclear;
    }
  }
}

void Fsck::check_owned_slots() {
  const ContainerSet& containers = m_cube.containers();
  std::vector<SlotBlocks> owned;
  bool split = false;
  for (unsigned container = 0; container < kSizeClasses; ++container) {
    for (uint64_t from = 0; containers.next_owned(container, from, &owned, &split);
         from = owned.front().slot.index + 1) {
      for (const SlotBlocks& blocks : owned) {
        if (is_mine(blocks.slot)) {
          check_owned(blocks, split);
        }
      }
    }
  }
}

void Fsck::check_owned(const SlotBlocks& owned, bool split) {
  for (const SlotBlocks& leaked : m_references.unreferenced(owned, split)) {
    if (!knows_all_owners() || m_quarantined_owners > 0) {
      ++m_unclear;
      continue;
    }
    found_missing_reference(
        {.kind = FindingClass::slot_leaked,
         .text = fmt::format("{} is marked as owned, and nothing refers to it", describe_blocks(leaked)),
         .blocks = leaked});
  }
}

void Fsck::check_usage() {
  for (const auto& [packed, entry] : m_references.entries()) {
    if (entry.references > 0) {
      m_usage[entry.pool].allocated += static_cast<int64_t>(entry.blocks() * kBlockBytes);
    }
  }
  if (m_options.online || !is_last_pass() || !knows_all_owners()) {
    return;
  }
  std::map<int64_t, PoolUsage> kept = m_cube.cube.pool_usage();
  for (const auto& [pool, counted] : m_usage) {
    kept.try_emplace(pool);
  }
  for (const auto& [pool, said] : kept) {
    const PoolUsage& counted = m_usage[pool];
    if (std::any_of(std::begin(PoolUsage::kSums), std::end(PoolUsage::kSums),
                    [&](const auto sum) { return sum != &PoolUsage::omap && said.*sum != counted.*sum; })) {
      found(FindingClass::usage_wrong,
            fmt::format("pool {} is said to have {}; counted were {}", pool, describe(said), describe(counted)));
    }
  }
}

void Fsck::end_references() {
  m_slots_before += m_references.entries().size();
  m_memory_bytes_max = std::max(m_memory_bytes_max, memory_bytes());
  if (!m_options.online) {
    std::unordered_set<uint64_t> miscounted;  // packed
    for (const auto* const findings : {&m_findings, &m_withheld}) {
      for (const Finding& finding : *findings) {
        if (finding.kind == FindingClass::slot_count_wrong) {
          miscounted.insert(finding.blocks.slot.packed());
        }
      }
    }
    m_references.move_damaged(miscounted, &m_damaged_references);
  }
  m_references = {};
}

}  // namespace swimstore
