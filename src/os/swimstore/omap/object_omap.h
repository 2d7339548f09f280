// SPDX-License-Identifier: LGPL-2.1-or-later
// The omap of one object, wherever it is kept.
//
// In a store with several cubes a placement group's transaction commits in the group's cube, and yet may change the
// omap of an object of the OSD's own collection, which lies in cube 0. So the omap of such an object is kept in parts:
// each cube holds the rows that were written by its transactions. Of a key's rows the one with the greatest write id
// counts, if it is no tombstone and not below the object's floor. (omap/part_writer.h has what keeps this right
// across crashes.) All others have one entry for each key, in the cube of their collection.
//
// REQUIRES: the collection's lock is held, shared, while it lives; a cursor may outlive both, and sees what was there
// when it was made.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "swimstore/object/store_context.h"
#include "swimstore/omap/omap_contents.h"
#include "swimstore/omap/part_cursor.h"

namespace swimstore {

class ObjectOmap {
 public:
  // `home`: the collection's.
  ObjectOmap(StoreContext& store, StoreCube& home, const Onode& onode)
      : m_store(store), m_home(home), m_nid(onode.record.nid), m_in_parts(onode.has_omap_in_parts()) {}

  // Code::not_found: there is none.
  vtkv::Status get_header(std::string* header);
  vtkv::Status get(std::string_view key, std::string* value);
  std::unique_ptr<OmapCursor> new_cursor();
  // All of it. *contents: empty.
  vtkv::Status read(OmapContents* contents);
  // Where it lies, for MetadataFailure::met().
  unsigned cube() const { return m_in_parts ? MetadataFailure::kUnknownCube : m_home.number; }

 private:
  vtkv::Status get_newest(std::string_view key, std::string* value);

  StoreContext& m_store;
  StoreCube& m_home;
  const uint64_t m_nid;
  const bool m_in_parts;
};

// 0: it has none.
vtkv::Status get_omap_floor(StoreContext& store, uint64_t nid, uint64_t* floor);

}  // namespace swimstore
