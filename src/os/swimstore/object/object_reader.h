// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads of objects, except omap: what ObjectStore's read calls of the same names do.
//
// Takes the collection's lock itself. -ENOENT: no such object, or collection gone. -EIO: the data could
// not be read, or does not match its checksum after several tries (said once in the log). What becomes of
// metadata that cannot be read: metadata_failure.h.
//
// Thread-safe.
#pragma once

#include <sys/stat.h>
#include <map>

#include "include/interval_set.h"

#include "swimstore/object/block_reader.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

class ObjectReader {
 public:
  explicit ObjectReader(StoreContext& store) : m_store(store) {}

  bool exists(Collection& collection, const ghobject_t& oid);
  int stat(Collection& collection, const ghobject_t& oid, struct stat* st);
  // length 0 with offset 0: the whole object. Returns the number of bytes read.
  int read(Collection& collection, const ghobject_t& oid, uint64_t offset, size_t length, ceph::bufferlist& out,
           uint32_t op_flags);
  // Cuts off intervals, or parts of them, that lie past the end of the object.
  int readv(Collection& collection, const ghobject_t& oid, interval_set<uint64_t>& intervals, ceph::bufferlist& out,
            uint32_t op_flags);
  int fiemap(Collection& collection, const ghobject_t& oid, uint64_t offset, size_t length,
             std::map<uint64_t, uint64_t>* extents);
  int getattr(Collection& collection, const ghobject_t& oid, std::string_view name, ceph::bufferptr& value);
  int getattrs(Collection& collection, const ghobject_t& oid,
               std::map<std::string, ceph::bufferptr, std::less<>>& attrs);
  int dump_onode(Collection& collection, const ghobject_t& oid, const std::string& section, ceph::Formatter* formatter);

  int find(Collection& collection, const ghobject_t& oid, OnodeRef* onode) REQUIRES_SHARED(collection.lock);

 private:
  // find, with the errors that a metadata read has: -EIO when injected.
  int find_for_metadata(Collection& collection, const ghobject_t& oid, OnodeRef* onode)
      REQUIRES_SHARED(collection.lock);
  // The result of a read of data that ended with `r`, counted; -EIO when injected.
  int end_read(const ghobject_t& oid, int r, uint64_t began_us, const ceph::bufferlist& out);

  StoreContext& m_store;
};

}  // namespace swimstore
