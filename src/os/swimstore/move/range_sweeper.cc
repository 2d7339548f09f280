// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/range_sweeper.h"

#include <algorithm>

#include "swimstore/format/key_codec.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/maintenance/own_transaction.h"
#include "swimstore/object/collection_list.h"

namespace swimstore {

namespace {

constexpr size_t kObjectsMax = 64;             // of one transaction
constexpr size_t kBatchBytesMax = 256u << 10;  // after which it takes no further object
constexpr unsigned kUnderWayMax = 16;          // transactions

}  // namespace

vtkv::Status RangeSweeper::list(StoreCube& cube, std::vector<UnownedObjects>* ranges) {
  const auto iterator =
      cube.database().new_iterator(std::string(1, key_prefix::unowned), std::string(1, key_prefix::unowned + 1));
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    UnownedObjects objects;
    UnownedRange range;
    if (!decode_unowned_range_key(iterator->key(), &objects.cid) || !decode_unowned_range(iterator->value(), &range)) {
      return vtkv::Status::corruption("the entry of an unowned range, '" + std::string(iterator->key()) +
                                      "', in cube " + std::to_string(cube.number) + " cannot be decoded");
    }
    objects.bits = range.bits;
    ranges->push_back(objects);
  }
  return iterator->status();
}

int RangeSweeper::sweep(StoreCube& cube, const UnownedObjects& range, Collection& account,
                        const std::atomic<bool>* stop) {
  bool done = false;
  ghobject_t start;
  for (unsigned transactions = 1; !done; ++transactions) {
    if (stop != nullptr && *stop) {
      return -ECANCELED;
    }
    if (const int r = remove_some(cube, range, account, &start, &done); r < 0) {
      return r;
    }
    if (transactions % kUnderWayMax == 0 && !account.sequencer->wait_for_all()) {
      return -ESHUTDOWN;
    }
  }
  return 0;
}

// From *start on, which moves: so nobody walks over what was removed. *done: the entry, too.
int RangeSweeper::remove_some(StoreCube& cube, const UnownedObjects& range, Collection& account, ghobject_t* start,
                              bool* done) {
  std::vector<ghobject_t> oids;
  bool more = false;
  for (const ObjectRange& part : object_ranges(range.cid, range.bits)) {
    const std::string low = object_key(std::max(*start, part.begin));
    const auto iterator = cube.database().new_iterator(low, std::max(low, object_key(part.end)));
    for (iterator->seek_to_first(); iterator->valid() && !more; iterator->next()) {
      more = oids.size() == kObjectsMax;
      if (!more && !decode_object_key(iterator->key(), &oids.emplace_back())) {
        return m_store.metadata_failure.met(cube.number, vtkv::Status::corruption("an object's key cannot be decoded"),
                                            "what is left of collection ", range.cid, " in cube ", cube.number);
      }
    }
    if (!iterator->status().ok()) {
      return m_store.metadata_failure.met(cube.number, iterator->status(), "what is left of collection ", range.cid,
                                          " in cube ", cube.number);
    }
  }
  size_t removed = 0;
  OwnTransaction transaction(m_store, m_pipeline, cube, account);
  for (; removed < oids.size() && transaction.batch().encoded_bytes() < kBatchBytesMax; ++removed) {
    if (const int r = transaction.remove(oids[removed], pool_of(range.cid)); r < 0) {
      return r;
    }
  }
  *done = !more && removed == oids.size();
  if (*done) {
    transaction.batch().remove(unowned_range_key(range.cid));
  }
  if (const int r = transaction.submit(); r < 0) {
    return r;
  }
  m_objects += removed;
  if (removed > 0) {
    *start = oids[removed - 1];
  }
  for (const ghobject_t& oid : oids) {
    cube.onodes.forget(oid);  // whoever asks this cube for them again finds others
  }
  return 0;
}

}  // namespace swimstore
