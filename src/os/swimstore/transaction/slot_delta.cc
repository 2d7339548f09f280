// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/slot_delta.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "swimstore/format/key_codec.h"

namespace swimstore {

using vtkv::Status;

namespace {

std::string name_of(SlotAddress slot) {
  const SlotAddress whole = slot.whole();
  return "slot " + std::to_string(whole.index) + " of " + std::to_string(slot_bytes(whole.size_class) / 1024) +
         " KiB, blocks from " + std::to_string(slot.first_block()) + " on,";
}

template <class Counts>
auto of_group(Counts& counts, uint32_t group) {
  const size_t first = size_t{group} * kReferenceGroupBlocks;
  return std::span(counts).subspan(first, std::min<size_t>(kReferenceGroupBlocks, counts.size() - first));
}

}  // namespace

void SlotDelta::allocated(SlotAddress slot, uint32_t blocks, int64_t pool) {
  Change& change = m_changes[slot.packed()];
  change = Change{};  // it was free: an extent that names it, and was released before, never owned it
  change.written = blocks;
  change.fresh = true;
  change.pool = pool;
}

void SlotDelta::released(const Extent& extent, int64_t pool) {
  Change& change = m_changes[extent.slot.packed()];
  if (change.fresh && change.written != extent.slot_written_blocks) {
    return;  // the same
  }
  change.written = std::max(change.written, extent.slot_written_blocks);
  change.counts |= extent.shared;
  change.pool = pool;
  change.steps.push_back({extent.slot_block, extent.count, -1});
}

void SlotDelta::shared(const SlotBlocks& blocks, int64_t pool) {
  Change& change = m_changes[blocks.slot.packed()];
  change.written = std::max(change.written, blocks.written);
  change.counts = true;
  change.pool = pool;
  change.steps.push_back({blocks.first, blocks.count, +1});
}

Status SlotDelta::settle(Cube& cube, vtkv::WriteBatch* batch, AllocationDelta* delta, PoolUsageDelta* usage,
                         std::vector<std::string>* contradictions) {
  for (auto& [packed, change] : m_changes) {
    const SlotAddress slot = SlotAddress::unpack(packed);
    if (change.fresh) {
      delta->allocated.push_back(SlotBlocks::all(slot, change.written));
      usage->of(change.pool).allocated += int64_t{change.written} * kBlockBytes;
    }
    Outcome outcome;
    VTKV_RETURN_IF_ERROR(settle_slot(cube, slot, change, &outcome));
    if (outcome.contradiction.empty() && !change.fresh && !begin_free(cube.containers(), outcome.freed)) {
      outcome.contradiction = " have two owners";
    }
    if (!outcome.contradiction.empty()) {
      contradictions->push_back(name_of(slot) + outcome.contradiction);
      continue;
    }
    for (const auto& [key, value] : outcome.references) {
      value.empty() ? batch->remove(key) : batch->put(key, value);
    }
    for (const SlotBlocks& blocks : outcome.freed) {
      usage->of(change.pool).allocated -= int64_t{blocks.count} * kBlockBytes;
      delta->freed.push_back(blocks);
    }
  }
  m_changes.clear();
  return {};
}

bool SlotDelta::begin_free(ContainerSet& containers, const std::vector<SlotBlocks>& freed) {
  for (auto blocks = freed.begin(); blocks != freed.end(); ++blocks) {
    if (!containers.begin_free(*blocks)) {
      std::for_each(freed.begin(), blocks, [&](const SlotBlocks& begun) { containers.end_free(begun); });
      return false;
    }
  }
  return true;
}

Status SlotDelta::settle_slot(Cube& cube, SlotAddress slot, Change& change, Outcome* outcome) {
  for (const Step& step : change.steps) {
    if (!change.fresh && !cube.containers().is_owned({slot, step.first, step.count, change.written})) {
      outcome->contradiction = " are referred to, and nobody owns them";
      return {};
    }
  }
  if (change.counts) {
    return settle_counted(cube.database(), slot, change, outcome);
  }
  end_blocks(slot, change, outcome);
  return {};
}

void SlotDelta::end_blocks(SlotAddress slot, Change& change, Outcome* outcome) {
  std::vector<SlotBlocks>* const freed = &outcome->freed;
  std::sort(change.steps.begin(), change.steps.end(), [](const Step& a, const Step& b) { return a.first < b.first; });
  for (const Step& step : change.steps) {
    SlotBlocks* const last = freed->empty() ? nullptr : &freed->back();
    if (last != nullptr && last->first + last->count > step.first) {
      outcome->contradiction = " have two owners";
      return;
    }
    if (last != nullptr && last->first + last->count == step.first) {
      last->count += step.count;
    } else {
      freed->push_back({slot, step.first, step.count, change.written});
    }
  }
}

Status SlotDelta::settle_counted(vtkv::DB& database, SlotAddress slot, const Change& change, Outcome* outcome) {
  std::vector<SlotBlocks>* const freed = &outcome->freed;
  SlotReferences::Counts counts(change.written, 1);
  std::set<uint32_t> groups;
  for (const Step& step : change.steps) {
    for (uint32_t group = step.first / kReferenceGroupBlocks;
         group <= (step.first + step.count - 1) / kReferenceGroupBlocks; ++group) {
      groups.insert(group);
    }
  }
  std::map<uint32_t, std::string> before;  // by group, where there is an entry
  if (!change.fresh) {
    VTKV_RETURN_IF_ERROR(load(database, slot, groups, &counts, &before, &outcome->contradiction));
  }
  count(change.steps, &counts, &outcome->contradiction);
  if (!outcome->contradiction.empty()) {
    return {};
  }
  for (uint32_t block = 0; block < change.written; ++block) {
    if (counts[block] > 0) {
      continue;
    }
    if (!freed->empty() && freed->back().first + freed->back().count == block) {
      ++freed->back().count;
    } else {
      freed->push_back({slot, block, 1, change.written});
    }
  }
  for (const uint32_t group : groups) {
    std::string value = SlotReferences::encode(of_group(counts, group));
    if (value != before[group]) {
      outcome->references.emplace_back(slot_reference_key(slot, group), std::move(value));
    }
  }
  return {};
}

Status SlotDelta::load(vtkv::DB& database, SlotAddress slot, const std::set<uint32_t>& groups,
                       SlotReferences::Counts* counts, std::map<uint32_t, std::string>* values,
                       std::string* contradiction) {
  for (const uint32_t group : groups) {
    std::string value;
    const Status status = database.get(slot_reference_key(slot, group), &value);
    if (status.is_not_found()) {
      continue;
    }
    VTKV_RETURN_IF_ERROR(status);
    if (!SlotReferences::decode(value, of_group(*counts, group))) {
      *contradiction = " have reference counts that cannot be decoded";
    }
    (*values)[group] = std::move(value);
  }
  return {};
}

Status SlotDelta::has_one_reference(vtkv::DB& database, const SlotBlocks& blocks, bool* has) const {
  SlotReferences::Counts counts(blocks.written, 1);
  const auto found = m_changes.find(blocks.slot.packed());
  std::string contradiction;
  if (found == m_changes.end() || !found->second.fresh) {
    std::set<uint32_t> groups;
    for (uint32_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
      groups.insert(block / kReferenceGroupBlocks);
    }
    std::map<uint32_t, std::string> ignored;
    VTKV_RETURN_IF_ERROR(load(database, blocks.slot, groups, &counts, &ignored, &contradiction));
  }
  if (found != m_changes.end()) {
    counts.resize(std::max<size_t>(counts.size(), found->second.written), 1);
    count(found->second.steps, &counts, &contradiction);
  }
  *has =
      contradiction.empty() && std::all_of(counts.begin() + blocks.first, counts.begin() + blocks.first + blocks.count,
                                           [](uint32_t references) { return references == 1; });
  return {};
}

// New references first: a block may lose its last old one in the same transaction.
void SlotDelta::count(const std::vector<Step>& steps, SlotReferences::Counts* counts, std::string* contradiction) {
  for (const int references : {+1, -1}) {
    for (const Step& step : steps) {
      for (uint32_t block = step.first; block < step.first + step.count && step.references == references; ++block) {
        if ((*counts)[block] == (references > 0 ? UINT32_MAX : 0)) {
          *contradiction = " have fewer references than are given up";
          return;
        }
        (*counts)[block] += static_cast<uint32_t>(references);
      }
    }
  }
}

}  // namespace swimstore
