// SPDX-License-Identifier: LGPL-2.1-or-later
// Empties zones of the trees of a store in use that are little used, or used in small fragments: one cube's after the
// other's. Each cube's database does it by itself, at its rate, on its compaction worker (vtkv/tree/defragmenter.h);
// here it is begun, watched and ended.
//
// A cube is measured first: what its zones hold needs as much room on the host until they are empty, beside what the
// reserve is meant to have. A cube whose tree cannot be defragmented does not keep the others from it.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "swimstore/defragment/defragment_pass.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

class MetadataDefragmenter final : public DefragmentPass {
 public:
  // bytes_per_second: that are written; asked as each cube's turn comes.
  MetadataDefragmenter(StoreContext& store, bool only_measure, std::function<uint64_t()> bytes_per_second);
  // The cube's pass that is under way ends soon.
  ~MetadataDefragmenter() override;

  // Begins a cube's pass, or looks at it. Costs nothing: the database waits by itself.
  Outcome step(uint64_t* cost) override;
  std::vector<Field> fields() const override;
  double progress() const override;
  uint64_t cost_of_found() const override { return sum().chosen_bytes; }
  const std::string& error() const override { return m_error; }

 private:
  enum class Stage { next_cube, measuring, moving };

  vtkv::DB& database() { return m_store.cubes[m_cube].database(); }
  vtkv::Status begin(Stage stage);
  // The pass of this stage is over.
  vtkv::Status end_stage(const vtkv::Status& status);
  vtkv::Status check_room();
  void end_cube(const vtkv::Status& status);
  vtkv::DefragmentReport sum() const;  // over all cubes until now

  StoreContext& m_store;
  const bool m_only_measure;
  const std::function<uint64_t()> m_bytes_per_second;
  std::vector<uint64_t> m_weights;  // of each cube: bytes of its tree, and 1
  uint64_t m_weight_done = 0;       // of cubes that are done
  unsigned m_cube = 0;  // whose turn it is
  unsigned m_cubes_done = 0;
  Stage m_stage = Stage::next_cube;  // of that cube
  vtkv::DefragmentReport m_done;     // sums, of cubes that are done
  vtkv::DefragmentReport m_current;  // of that cube
  std::string m_error;               // of the first that failed
};

}  // namespace swimstore
