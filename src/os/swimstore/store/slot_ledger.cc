#include "swimstore/store/slot_ledger.h"

#include <algorithm>
#include <span>
#include <string>

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

void SlotLedger::allocated(SlotAddress slot, uint32_t blocks, int64_t pool) {
  Change& change = m_changes[slot.packed()];
  change.written = blocks;
  change.fresh = true;
  change.pool = pool;
}

void SlotLedger::released(const Extent& extent, int64_t pool) {
  Change& change = m_changes[extent.slot.packed()];
  change.written = extent.slot_written_blocks;
  change.counts |= extent.shared;
  change.pool = pool;
  change.steps.push_back({extent.slot_block, extent.count, -1});
}

void SlotLedger::shared(const SlotBlocks& blocks, int64_t pool) {
  Change& change = m_changes[blocks.slot.packed()];
  change.written = blocks.written;
  change.counts = true;
  change.pool = pool;
  change.steps.push_back({blocks.first, blocks.count, +1});
}

Status SlotLedger::settle(Cube& cube, vtkv::WriteBatch* batch, AllocationDelta* delta, PoolUsageDelta* usage) {
  for (auto& [packed, change] : m_changes) {
    const SlotAddress slot = SlotAddress::unpack(packed);
    if (change.fresh) {
      delta->allocated.push_back(SlotBlocks::all(slot, change.written));
      usage->of(change.pool).allocated += int64_t{change.written} * kBlockBytes;
    }
    const size_t before = delta->freed.size();
    VTKV_RETURN_IF_ERROR(change.counts ? settle_counted(cube.database(), slot, change, batch, &delta->freed)
                                       : end_blocks(slot, change, &delta->freed));
    for (size_t i = before; i < delta->freed.size(); ++i) {
      usage->of(change.pool).allocated -= int64_t{delta->freed[i].count} * kBlockBytes;
    }
  }
  m_changes.clear();
  return {};
}

Status SlotLedger::end_blocks(SlotAddress slot, Change& change, std::vector<SlotBlocks>* freed) {
  std::sort(change.steps.begin(), change.steps.end(),
            [](const Step& a, const Step& b) { return a.first < b.first; });
  const size_t before = freed->size();
  for (const Step& step : change.steps) {
    SlotBlocks* const last = freed->size() > before ? &freed->back() : nullptr;
    if (last != nullptr && last->first + last->count > step.first) {
      return Status::corruption(name_of(slot) + " has blocks with two owners");
    }
    if (last != nullptr && last->first + last->count == step.first) {
      last->count += step.count;
    } else {
      freed->push_back({slot, step.first, step.count, change.written});
    }
  }
  return {};
}

Status SlotLedger::settle_counted(vtkv::DB& database, SlotAddress slot, const Change& change, vtkv::WriteBatch* batch,
                                  std::vector<SlotBlocks>* freed) {
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
    VTKV_RETURN_IF_ERROR(load(database, slot, groups, &counts, &before));
  }
  VTKV_RETURN_IF_ERROR(count(slot, change.steps, &counts));
  for (uint32_t block = 0; block < change.written; ++block) {
    if (counts[block] > 0) {
      continue;
    }
    if (!freed->empty() && freed->back().slot == slot && freed->back().first + freed->back().count == block) {
      ++freed->back().count;
    } else {
      freed->push_back({slot, block, 1, change.written});
    }
  }
  for (const uint32_t group : groups) {
    const std::string value = SlotReferences::encode(of_group(counts, group));
    if (value == before[group]) {
      continue;
    }
    const std::string key = slot_reference_key(slot, group);
    value.empty() ? batch->remove(key) : batch->put(key, value);
  }
  return {};
}

Status SlotLedger::load(vtkv::DB& database, SlotAddress slot, const std::set<uint32_t>& groups,
                        SlotReferences::Counts* counts, std::map<uint32_t, std::string>* values) {
  for (const uint32_t group : groups) {
    std::string value;
    const Status status = database.get(slot_reference_key(slot, group), &value);
    if (status.is_not_found()) {
      continue;
    }
    VTKV_RETURN_IF_ERROR(status);
    if (!SlotReferences::decode(value, of_group(*counts, group))) {
      return Status::corruption(name_of(slot) + " has reference counts that cannot be decoded");
    }
    (*values)[group] = std::move(value);
  }
  return {};
}

// New references first: a block may lose its last old one in the same transaction.
Status SlotLedger::count(SlotAddress slot, const std::vector<Step>& steps, SlotReferences::Counts* counts) {
  for (const int references : {+1, -1}) {
    for (const Step& step : steps) {
      for (uint32_t block = step.first; block < step.first + step.count && step.references == references; ++block) {
        if ((*counts)[block] == (references > 0 ? UINT32_MAX : 0)) {
          return Status::corruption(name_of(slot) + " has fewer references than are given up");
        }
        (*counts)[block] += static_cast<uint32_t>(references);
      }
    }
  }
  return {};
}

}  // namespace swimstore
