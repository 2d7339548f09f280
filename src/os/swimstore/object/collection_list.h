// SPDX-License-Identifier: LGPL-2.1-or-later
// Listing of a collection's objects, in ghobject_t order.
//
// A PG's objects lie in two key ranges: its temporary objects (pool -2-N) and its own. Both belong to the
// listing; the temporary ones sort first.
#pragma once

#include <vector>

#include "swimstore/object/store_context.h"

namespace swimstore {

class CollectionLister {
 public:
  explicit CollectionLister(StoreContext& store) : m_store(store) {}

  // Appends objects in [start, end) until *objects holds `max`. *next: the first object not listed because
  // of max, else ghobject_t::get_max(). -ENOENT: collection gone. -EIO: the tree could not be read.
  // Takes the collection's lock itself. Thread-safe.
  int list(Collection& collection, const ghobject_t& start, const ghobject_t& end, int max,
           std::vector<ghobject_t>* objects, ghobject_t* next);
  // The same for who holds the lock, of a collection that exists; what cannot be read is his to tell.
  vtkv::Status read(const Collection& collection, const ghobject_t& start, const ghobject_t& end, int max,
                    std::vector<ghobject_t>* objects, ghobject_t* next) REQUIRES_SHARED(collection.lock);

 private:
  StoreContext& m_store;
};

// What belongs to a collection: [begin, end). Non-PG collections have one range, of pool -1.
struct ObjectRange {
  ghobject_t begin, end;
};
std::vector<ObjectRange> object_ranges(const coll_t& cid, uint32_t bits);
// Could an object belong to both?
bool overlap(const coll_t& a, uint32_t a_bits, const coll_t& b, uint32_t b_bits);

}  // namespace swimstore
