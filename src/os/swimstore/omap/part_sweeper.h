// SPDX-License-Identifier: LGPL-2.1-or-later
// Ends rows of omaps in parts (part_writer.h) that can never count again: those below a floor, and tombstones with what
// they hide. Nobody waits for it: what is left, where there is much, is for the next mount.
//
// A crash in between leaves nothing wrong: what hides a row goes only when the row is gone from its cube's disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "swimstore/object/store_context.h"

namespace swimstore {

class PartSweeper {
 public:
  // At most so many rows are ended, about.
  static constexpr uint64_t kRowsMax = 100000;

  // REQUIRES: the store has several cubes, and nothing is queued while it runs.
  explicit PartSweeper(StoreContext& store, uint64_t rows_max = kRowsMax) : m_store(store), m_left(rows_max) {}
  vtkv::Status run();
  uint64_t ended() const { return m_ended; }

 private:
  struct Tombstone {
    StoreCube* cube;
    uint64_t nid;
    std::string key;
  };

  vtkv::Status end_floors();
  vtkv::Status end_rows_below(uint64_t nid, uint64_t floor, bool* all);
  vtkv::Status end_tombstones(StoreCube& cube);
  vtkv::Status end(const std::vector<Tombstone>& tombstones);
  // Removes the rows that the tombstone hides. *ends: nothing else keeps it.
  vtkv::Status end_hidden(const Tombstone& tombstone, bool* ends);
  void remove(StoreCube& cube, uint64_t nid, std::string_view key);
  // Waits until what was removed so far is durable, in every cube.
  vtkv::Status write();

  StoreContext& m_store;
  std::map<unsigned, vtkv::WriteBatch> m_batches;  // by cube
  uint64_t m_left;
  uint64_t m_ended = 0;
};

// At mount. What cannot be ended stays hidden, as it was.
void sweep_omap_parts(StoreContext& store);

}  // namespace swimstore
