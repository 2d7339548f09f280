// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads of omap: what ObjectStore's omap calls of the same names do.
//
// Takes the collection's lock itself, shared. -ENOENT: no such object, or collection gone. What becomes of
// what cannot be read: metadata_failure.h.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "swimstore/object/object_reader.h"
#include "swimstore/omap/object_omap.h"
#include "swimstore/omap/omap_iterator.h"

namespace swimstore {

class OmapReader {
 public:
  OmapReader(StoreContext& store, ObjectReader& objects) : m_store(store), m_objects(objects) {}

  using Values = std::map<std::string, ceph::bufferlist>;
  int get(Collection& collection, const ghobject_t& oid, ceph::bufferlist* header, Values* values);
  int get_header(Collection& collection, const ghobject_t& oid, ceph::bufferlist* header);
  int get_keys(Collection& collection, const ghobject_t& oid, std::set<std::string>* keys);
  int get_values(Collection& collection, const ghobject_t& oid, const std::set<std::string>& keys, Values* values);
  int check_keys(Collection& collection, const ghobject_t& oid, const std::set<std::string>& keys,
                 std::set<std::string>* found);
  // A later change of the object does not show in the iterator.
  int iterator(Collection& collection, const ghobject_t& oid, std::unique_ptr<OmapIterator>* iterator);

 private:
  int find(Collection& collection, const ghobject_t& oid, OnodeRef* onode) REQUIRES_SHARED(collection.lock);
  ObjectOmap omap_of(Collection& collection, const Onode& onode) REQUIRES_SHARED(collection.lock) {
    return ObjectOmap(m_store, m_store.home(collection), onode);
  }
  int header_of(ObjectOmap omap, const Onode& onode, ceph::bufferlist* header);
  // Calls visit(key, value) for every entry.
  template <typename Visit>
  int for_each(ObjectOmap omap, const Onode& onode, const Visit& visit);
  // Calls visit(key, value) for those of `keys` that exist.
  template <typename Visit>
  int look_up(ObjectOmap omap, const Onode& onode, const std::set<std::string>& keys, const Visit& visit);
  int failed(const ObjectOmap& omap, const Onode& onode, const vtkv::Status& status) const;

  StoreContext& m_store;
  ObjectReader& m_objects;
};

}  // namespace swimstore
