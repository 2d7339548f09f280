// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of a collection, with its temporary ones: those of one hash one after another.
//
// Reads some hundred at once; what comes and goes meanwhile may be there or not. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/hobject.h"
#include "osd/osd_types.h"

#include "vtkv/db.h"

namespace swimstore {

class ObjectsByHash {
 public:
  // Of a group of this name and so many bits, in its cube's database.
  ObjectsByHash(vtkv::DB& database, const coll_t& cid, uint32_t bits);

  // False: there is none more, or what is there cannot be read: see status().
  bool next(ghobject_t* oid);
  const vtkv::Status& status() const { return m_status; }

 private:
  struct List {  // of one of the collection's ranges
    std::string next_key, end_key;
    bool is_read = false;            // to its end
    std::vector<ghobject_t> oids{};  // descending
  };
  static uint32_t hash_of(const List& list) { return list.oids.back().hobj.get_bitwise_key_u32(); }
  vtkv::Status read(List* list);

  vtkv::DB& m_database;
  std::vector<List> m_lists;
  vtkv::Status m_status;
};

}  // namespace swimstore
