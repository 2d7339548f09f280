// SPDX-License-Identifier: LGPL-2.1-or-later
// One object in memory.
//
// Threads: fields are read under the shared lock of the object's collection and changed under its unique
// lock, by the transaction planner. An onode that somebody refers to stays in the cache, so there is one
// Onode per object at any time.
#pragma once

#include <atomic>
#include <list>
#include <string>

#include <boost/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "common/hobject.h"

#include "swimstore/format/key_codec.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/object/extent_map.h"

namespace swimstore {

class Onode : public boost::intrusive_ref_counter<Onode> {
 public:
  explicit Onode(const ghobject_t& oid) : oid(oid), key(object_key(oid)) {}

  const ghobject_t oid;
  const std::string key;  // of its record in the tree
  bool exists = false;  // false: the cache remembers that there is no such object
  OnodeRecord record;   // flag shard_inline: as in the tree; the planner sets it when it writes the record
  ExtentMap extents;
  // OnodeCache's, changed under its lock:
  mutable std::atomic<size_t> counted_bytes{0};  // what it takes of the capacity
  std::list<boost::intrusive_ptr<Onode>>::iterator in_cache;
  bool looked_up = false;  // since trim() last came by
  uint32_t change = 0;  // the planner's: position among the objects the transaction changes; 0: unchanged

  bool has_omap() const { return exists && record.test(OnodeRecord::has_omap); }
  // Then it always has omap.
  bool has_omap_in_parts() const { return exists && record.test(OnodeRecord::omap_in_parts); }
  size_t memory_bytes() const;
};

using OnodeRef = boost::intrusive_ptr<Onode>;

}  // namespace swimstore
