// SPDX-License-Identifier: LGPL-2.1-or-later
// What one transaction does to slots: which it fills, to which of their blocks it adds or ends references.
//
// A block is free when nothing refers to it. Most blocks have one reference, and their extents say so; then the end of
// it is all there is to know. Blocks whose extents have the shared flag may have more: the tree holds how many
// (format/slot_references.h). So only what clones and snapshots share is ever looked up.
//
// Not thread-safe: one transaction's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "swimstore/cube/cube.h"
#include "swimstore/format/extent_record.h"
#include "swimstore/format/slot_references.h"
#include "swimstore/transaction/pool_usage_delta.h"

namespace swimstore {

class SlotDelta {
 public:
  // The transaction fills the slot with `blocks` blocks, each referred to once.
  void allocated(SlotAddress slot, uint32_t blocks, int64_t pool);
  // References to these blocks end.
  void released(const Extent& extent, int64_t pool);
  // One more reference to each of these blocks.
  void shared(const SlotBlocks& blocks, int64_t pool);

  // Is there one reference to each of these blocks, after what the transaction has done so far?
  vtkv::Status has_one_reference(vtkv::DB& database, const SlotBlocks& blocks, bool* has) const;

  // Writes the references that changed and lists the slots taken and what was freed. Once, at the transaction's end.
  // Extents and counts of a damaged or forged store may contradict each other, name blocks that nobody owns, or one
  // block by two addresses or in two collections, whose transactions do not wait for one another: such a
  // slot keeps what it has, for a check to find, and *contradictions says which. Errors: of reading.
  vtkv::Status settle(Cube& cube, vtkv::WriteBatch* batch, AllocationDelta* delta, PoolUsageDelta* usage,
                      std::vector<std::string>* contradictions);

 private:
  struct Step {
    uint32_t first = 0;
    uint32_t count = 0;
    int references = 0;  // +1, -1
  };
  struct Change {
    uint32_t written = 0;
    bool fresh = false;   // filled by this transaction
    bool counts = false;  // some of the blocks may have more than one reference
    int64_t pool = 0;
    std::vector<Step> steps;
  };

  // What becomes of one slot.
  struct Outcome {
    std::vector<SlotBlocks> freed;                        // nothing refers to them any more
    std::vector<std::pair<std::string, std::string>> references;  // keys, and values to put; empty: remove
    std::string contradiction;  // where there is one, a sentence's end; the rest does not count
  };
  static vtkv::Status settle_slot(Cube& cube, SlotAddress slot, Change& change, Outcome* outcome);
  // False: some of them may not be freed, and none is.
  static bool begin_free(ContainerSet& containers, const std::vector<SlotBlocks>& freed);
  static void end_blocks(SlotAddress slot, Change& change, Outcome* outcome);
  static vtkv::Status settle_counted(vtkv::DB& database, SlotAddress slot, const Change& change, Outcome* outcome);
  // What the tree says of these groups.
  static vtkv::Status load(vtkv::DB& database, SlotAddress slot, const std::set<uint32_t>& groups,
                           SlotReferences::Counts* counts, std::map<uint32_t, std::string>* values,
                           std::string* contradiction);
  static void count(const std::vector<Step>& steps, SlotReferences::Counts* counts, std::string* contradiction);

  std::unordered_map<uint64_t, Change> m_changes;  // by packed address
};

}  // namespace swimstore
