#include "swimstore/store/slot_ledger.h"

#include <string>

#include "swimstore/format/key_codec.h"

namespace swimstore {

void SlotLedger::allocated(SlotAddress slot, uint32_t blocks, int64_t pool) {
  Change& change = m_changes[slot.packed()];
  change.written = blocks;
  change.fresh = true;
  change.pool = pool;
}

void SlotLedger::released(const Extent& extent, int64_t pool) {
  Change& change = m_changes[extent.slot.packed()];
  change.written = extent.slot_written_blocks;
  change.released += extent.count;
  change.was_shared |= extent.shared;
  change.pool = pool;
}

void SlotLedger::shared(SlotAddress slot, uint32_t blocks, uint32_t slot_written_blocks, int64_t pool) {
  Change& change = m_changes[slot.packed()];
  change.written = slot_written_blocks;
  change.added += blocks;
  change.pool = pool;
}

vtkv::Status SlotLedger::settle(vtkv::DB& database, vtkv::WriteBatch* batch, AllocationDelta* delta,
                                PoolUsageDelta* usage) {
  for (const auto& [packed, change] : m_changes) {
    const SlotAddress slot = SlotAddress::unpack(packed);
    // Blocks without the shared flag have one reference: when all of them go, nothing can be left.
    bool free = !change.was_shared && change.added == 0 && change.released == change.written;
    if (!free && (change.released > 0 || change.added > 0)) {
      VTKV_RETURN_IF_ERROR(settle_counted(database, slot, change, batch, &free));
    }
    if (change.fresh) {
      delta->allocated.push_back(slot);
      usage->of(change.pool).allocated += slot_bytes(slot.size_class);
    }
    if (free) {
      delta->freed.push_back(slot);
      usage->of(change.pool).allocated -= slot_bytes(slot.size_class);
    }
  }
  m_changes.clear();
  return {};
}

vtkv::Status SlotLedger::settle_counted(vtkv::DB& database, SlotAddress slot, const Change& change,
                                        vtkv::WriteBatch* batch, bool* free) {
  const std::string key = slot_reference_key(slot);
  uint32_t before = change.written;
  bool has_key = false;
  if (!change.fresh) {
    std::string value;
    const vtkv::Status status = database.get(key, &value);
    has_key = status.ok();
    if (!has_key && !status.is_not_found()) {
      return status;
    }
    if (has_key && !decode_slot_references(value, &before)) {
      return vtkv::Status::corruption("the reference count of slot " + std::to_string(slot.packed()) +
                                      " cannot be decoded");
    }
  }
  if (uint64_t{before} + change.added < change.released) {
    return vtkv::Status::corruption("slot " + std::to_string(slot.packed()) + " has " + std::to_string(before) +
                                    " references, fewer than are given up");
  }
  const uint32_t left = before + change.added - change.released;
  *free = left == 0;
  if (left != change.written && left != 0) {
    batch->put(key, encode_slot_references(left));
  } else if (has_key) {
    batch->remove(key);
  }
  return {};
}

}  // namespace swimstore
