// What one transaction does to slots: which it fills, to whose blocks it adds or ends references.
//
// A slot is free when no block of it is referred to. Most slots never need a count: as long as all of their
// blocks have exactly one reference and go away together, the extents say it all. Otherwise the tree holds
// the number of block references that are left (key_codec.h, 'S'); no key means all that were written.
//
// Not thread-safe: one transaction's.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "swimstore/cube/cube.h"
#include "swimstore/format/extent_record.h"
#include "swimstore/store/pool_usage_delta.h"

namespace swimstore {

class SlotLedger {
 public:
  // The transaction fills the slot with `blocks` blocks, each referred to once.
  void allocated(SlotAddress slot, uint32_t blocks, int64_t pool);
  // References to these blocks end.
  void released(const Extent& extent, int64_t pool);
  // One more reference to each of `blocks` blocks.
  void shared(SlotAddress slot, uint32_t blocks, uint32_t slot_written_blocks, int64_t pool);

  // Writes the counts that changed and lists the slots taken and freed. Once, at the transaction's end.
  vtkv::Status settle(vtkv::DB& database, vtkv::WriteBatch* batch, AllocationDelta* delta,
                      PoolUsageDelta* usage);

 private:
  struct Change {
    uint32_t written = 0;
    uint32_t released = 0;
    uint32_t added = 0;
    bool fresh = false;       // filled by this transaction
    bool was_shared = false;  // a released block had the shared flag
    int64_t pool = 0;
  };
  vtkv::Status settle_counted(vtkv::DB& database, SlotAddress slot, const Change& change, vtkv::WriteBatch* batch,
                              bool* free);

  std::unordered_map<uint64_t, Change> m_changes;  // by packed address
};

}  // namespace swimstore
