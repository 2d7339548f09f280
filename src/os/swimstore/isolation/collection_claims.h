// SPDX-License-Identifier: LGPL-2.1-or-later
// Which objects are whose, of a store with several cubes: of two records that claim the same ones the one with the
// greater generation is right (format/collection_record.h). The other is of before a move, a split or a merge, and so
// are the objects beside it. A mount removes both; a log that is cut short by damage can bring them back.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "osd/osd_types.h"

#include "vtkv/db.h"

namespace swimstore {

using KeyRange = std::pair<std::string, std::string>;  // of objects' keys, without its end

// Of the collection's objects, its temporary ones included.
std::vector<KeyRange> object_key_ranges(const coll_t& cid, uint32_t bits);
// What is left of the ranges.
std::vector<KeyRange> without(std::vector<KeyRange> ranges, const std::vector<KeyRange>& taken);

class CollectionClaims {
 public:
  struct Claim {
    KeyRange keys;
    uint32_t cube = 0;
    uint64_t generation = 0;
    std::string collection;
  };

  // The records of this cube. One that cannot be read claims nothing.
  void read(vtkv::DB& database, uint32_t cube);
  // What other cubes claim, but for where this one has a record that is as new.
  std::vector<Claim> against(uint32_t cube) const;
  std::vector<KeyRange> of(uint32_t cube) const;

 private:
  std::vector<Claim> m_claims;
};

}  // namespace swimstore
