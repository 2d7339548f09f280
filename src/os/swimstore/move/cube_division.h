// SPDX-License-Identifier: LGPL-2.1-or-later
// A store that had one cube, and got others (SwimStore::add_cubes): what its only cube has becomes what cube 0 has in a
// store with several. Placement groups stay there, until they are moved.
//
//   1. Of each object of no placement group that may have an omap: its values are copied to rows (omap/part_writer.h).
//      Nobody reads them yet.
//   2. In one transaction, not before the last of these: its record says that its omap is in parts, and the values go.
//   3. In the last one, when that is done of all: the collections' records get a generation. Until then they have none,
//      and the next mount begins with 1 where this one ended.
//
// A transaction takes what comes until it has about a MiB. In one cube what was submitted first is durable first, so
// nothing is waited for but the last one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "swimstore/object/store_context.h"

namespace swimstore {

class CubeDivision {
 public:
  // REQUIRES: the collections are loaded, and nobody uses the store meanwhile.
  explicit CubeDivision(StoreContext& store) : m_store(store) {}

  // Of a store with one cube: can all be read that run() reads? *bytes: what it would copy. Changes nothing.
  // Code::failed: repair has quarantined something.
  vtkv::Status measure(uint64_t* bytes);
  // Of a store with several: does what is left to be done, and waits until it is durable. Nothing is left where all
  // collections have a generation. Code::corruption: cube 0 has what cannot be decoded, or there is something to be
  // done, though the store did not have one cube. Code::failed: as above.
  vtkv::Status run(bool had_one_cube);

 private:
  // Calls it for the record of each object of no placement group.
  using Visit = std::function<vtkv::Status(std::string_view key, std::string_view value)>;
  vtkv::Status for_each_internal_object(const Visit& visit);
  vtkv::Status check_nothing_is_quarantined();
  // What is batched so far, when it is enough for a transaction. Waits for nothing.
  vtkv::Status write_if_full();
  vtkv::Status copy_to_rows(uint64_t nid);
  vtkv::Status put_in_parts(std::string_view key, std::string_view value);
  vtkv::Status give_generations();
  vtkv::DB& database() { return m_store.cubes[0].database(); }

  StoreContext& m_store;
  vtkv::WriteBatch m_batch;
  uint64_t m_objects = 0, m_values = 0;
};

}  // namespace swimstore
