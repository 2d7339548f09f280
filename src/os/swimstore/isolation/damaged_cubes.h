// SPDX-License-Identifier: LGPL-2.1-or-later
// Which cubes a mount goes on without.
//
// A data cube is damaged that did not open; whose collections, or what their witnesses are made of, cannot be read; or
// which is marked as suspect (directory/store_directory.h), because something of it could not be read while the store
// served, and in which a check finds metadata that cannot be read. The store is then refused, or, where the operator
// says so, the cube is abandoned: from then on it is never opened, whatever becomes of it, until it was made anew. Its
// placement groups are for lost_groups.h.
#pragma once

#include "swimstore/cube/cube_set.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/isolation/lost_groups.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

// Of those marked as abandoned: why.
vtkv::Status find_abandoned_cubes(StoreDirectory& directory, unsigned cubes, MissingCubes* abandoned);
// Before anything is served without them: their marks are durable, whatever became of the syncs when they were written.
vtkv::Status keep_abandoned_cubes(StoreDirectory& directory, const MissingCubes& abandoned);

class DamagedCubes {
 public:
  // `probe`: over all cubes that opened; nobody else uses it, and it ends before the store is mounted. `abandoned`:
  // those that were left out on purpose.
  DamagedCubes(StoreContext& probe, StoreDirectory& directory, const MissingCubes& abandoned)
      : m_probe(probe), m_directory(directory), m_abandoned(abandoned) {}

  // A check of a suspect cube reads all of its metadata. Ends the marks of those without errors.
  vtkv::Status find();
  const MissingCubes& damaged() const { return m_damaged; }
  // Durably, when it is sure that their placement groups can be made anew.
  vtkv::Status abandon();
  // What to say where they are not abandoned: a tool may not.
  vtkv::Status refusal(bool is_tool) const;

 private:
  vtkv::Status check_suspect(StoreCube& cube);
  vtkv::Status read_collections(StoreCube& cube);
  vtkv::Status try_read_collections(StoreCube& cube);
  // Those that would be made anew. Code::failed: it is not known of all of them how.
  vtkv::Status find_lost(std::vector<LostGroup>* lost) const;
  std::string names() const;
  std::string mark_paths() const;  // of the damaged ones, as a sentence lists them

  StoreContext& m_probe;
  StoreDirectory& m_directory;
  const MissingCubes& m_abandoned;
  MissingCubes m_damaged;
};

}  // namespace swimstore
