// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/collection_mover.h"

#include <algorithm>

#include "common/debug.h"
#include "common/errno.h"

#include "swimstore/format/key_codec.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/move/collection_copier.h"
#include "swimstore/move/own_transaction.h"
#include "swimstore/object/collection_list.h"
#include "swimstore/omap/witness_writer.h"
#include "swimstore/transaction/transaction_pipeline.h"
#include "vtkv/util/mutations.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.move "

namespace swimstore {

using vtkv::mutated;
using vtkv::Mutation;

namespace {

// Of which the rest goes back when the copy has ended.
class PromisedRoom {
 public:
  PromisedRoom(ContainerSet& containers, uint64_t bytes) : m_containers(containers), m_left_bytes(bytes) {
    // A promise grows containers as far as the host lets them, and what it is short of stays with them: so it is asked
    // for when there is enough. Late: who waits for room before the next attempt (SpaceGate) gets no more.
    const ContainerStatistics statistics = containers.statistics();
    const bool is_enough = statistics.free_bytes + statistics.growable_bytes + statistics.reserve_bytes / 2 >= bytes;
    m_promised = is_enough && containers.promise(bytes, Urgency::late);
  }
  ~PromisedRoom() {
    if (m_promised) {
      m_containers.give_back(m_left_bytes);
    }
  }
  PromisedRoom(const PromisedRoom&) = delete;
  PromisedRoom& operator=(const PromisedRoom&) = delete;

  explicit operator bool() const { return m_promised; }
  void used(uint64_t bytes) {
    m_left_bytes -= bytes;
    m_containers.give_back(bytes);
  }

 private:
  ContainerSet& m_containers;
  uint64_t m_left_bytes;
  bool m_promised = false;
};

bool overlap(const ObjectRange& a, const ObjectRange& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

int CollectionMover::move(Collection& collection, unsigned to, uint64_t* lacking_bytes) {
  StoreCube& from = m_store.home(collection);
  const int r = try_move(collection, from, m_store.cubes[to], lacking_bytes);
  if (r < 0 && *lacking_bytes == 0 && r != -ESHUTDOWN) {
    derr
        << "collection " << collection.cid << " cannot be moved from cube " << from.number << " to cube " << to << ": "
        << cpp_strerror(r) << ". It lies in cube " << collection.record.home()
        << ", whole; the next mount removes what the other holds of it. Check the store with ceph-swimstore-tool fsck, "
        << "and repair it" << dendl;
  }
  return r;
}

int CollectionMover::try_move(Collection& collection, StoreCube& from, StoreCube& to, uint64_t* lacking_bytes) {
  const uint64_t began_us = m_store.env->now_us();
  const UnownedObjects old_copy{collection.cid, collection.record.bits};
  int r = collection.sequencer->wait_for_all() ? 0 : -ESHUTDOWN;
  if (r == 0) {
    r = sweep_leftovers(to, collection);
  }
  if (r == 0 && mutated(Mutation::moved_before_copied)) {
    r = put_record(to, collection);
  }
  if (r == 0) {
    r = copy(collection, from, to, lacking_bytes);
  }
  if (r == 0) {
    r = put_record(to, collection);
  }
  if (r == 0) {
    r = disown(from, old_copy, collection);
  }
  // Durable before a later transaction in the new cube is, which may end the collection: the old cube's record would be
  // the only one.
  if (r == 0 && !collection.sequencer->wait_for_all()) {
    r = -ESHUTDOWN;
  }
  if (r == 0) {
    r = m_sweeper.sweep(from, old_copy, collection);
  }
  if (r == 0) {
    dout(1) << "collection " << collection.cid << " was moved from cube " << from.number << " to cube " << to.number
            << " in " << (m_store.env->now_us() - began_us) / 1000 << " ms" << dendl;
  }
  return r;
}

int CollectionMover::copy(Collection& collection, StoreCube& from, StoreCube& to, uint64_t* lacking_bytes) {
  CollectionCopier copier(m_store, m_pipeline, collection, from, to);
  uint64_t slot_bytes = 0;
  if (const int r = copier.measure(&slot_bytes); r < 0) {
    return r;
  }
  PromisedRoom room(to.containers(), slot_bytes);
  if (!room) {
    dout(1) << "collection " << collection.cid << " has to be moved to cube " << to.number
            << ", where there is no room "
            << "for its " << slot_bytes << " bytes" << dendl;
    *lacking_bytes = std::max(slot_bytes, uint64_t{kBlockBytes});  // without data, too: log and tree have no room
    return -ENOSPC;
  }
  int r = check_nobody_is_there(to, collection);
  if (r == 0) {
    r = mark_unowned(to, collection);
  }
  if (r == 0) {
    r = copier.copy([&room](uint64_t bytes) { room.used(bytes); });
  }
  dout(5) << "copied " << copier.objects() << " objects of " << collection.cid << ", " << copier.bytes() << " bytes"
          << dendl;
  return r;
}

// Marked as nobody's, it would be removed: objects that no collection has, which fsck tells of and keeps.
int CollectionMover::check_nobody_is_there(StoreCube& cube, const Collection& collection) const {
  for (const ObjectRange& range : object_ranges(collection.cid, collection.record.bits)) {
    const auto iterator = cube.database().new_iterator(object_key(range.begin), object_key(range.end));
    iterator->seek_to_first();
    if (iterator->valid()) {
      derr << "collection " << collection.cid << " cannot be moved to cube " << cube.number
           << ": objects of its range lie there, in no collection. ceph-swimstore-tool fsck names them; with the OSD "
           << "stopped, its move command can bring the group that is to be merged with this one here instead" << dendl;
      return -EEXIST;
    }
    if (!iterator->status().ok()) {
      return m_store.metadata_failure.met(cube.number, iterator->status(), "the objects of cube ", cube.number);
    }
  }
  return 0;
}

int CollectionMover::mark_unowned(StoreCube& cube, Collection& collection) {
  if (mutated(Mutation::old_copy_unmarked) || mutated(Mutation::moved_before_copied)) {
    return 0;
  }
  OwnTransaction transaction(m_store, m_pipeline, cube, collection);
  transaction.batch().put(unowned_range_key(collection.cid), encode_unowned_range({collection.record.bits}));
  return transaction.submit();
}

int CollectionMover::put_record(StoreCube& to, Collection& collection) {
  CollectionRecord record = collection.record;
  for (CollectionRecord::HashRange& range : record.hash_ranges) {
    range.cube = to.number;
  }
  record.generation = m_store.collections.new_generation();
  {
    OwnTransaction transaction(m_store, m_pipeline, to, collection);
    transaction.batch().put(collection_key(collection.cid), encode_collection(record));
    transaction.batch().remove(unowned_range_key(collection.cid));
    if (const int r = transaction.submit(); r < 0) {
      return r;
    }
  }
  if (!mutated(Mutation::swept_before_moved) && !collection.sequencer->wait_for_all()) {
    return -ESHUTDOWN;
  }
  collection.record = std::move(record);
  // Before the old record goes: whichever of the two cubes is lost, the other has a record, or the witness names it.
  WitnessWriter witness(m_store, to);
  witness.set_group(collection.cid, collection.record.bits);
  return witness.write() ? 0 : -ESHUTDOWN;
}

int CollectionMover::disown(StoreCube& cube, const UnownedObjects& objects, Collection& collection) {
  OwnTransaction transaction(m_store, m_pipeline, cube, collection);
  transaction.batch().remove(collection_key(objects.cid));
  if (!mutated(Mutation::old_copy_unmarked)) {
    transaction.batch().put(unowned_range_key(objects.cid), encode_unowned_range({objects.bits}));
  }
  return transaction.submit();
}

// Of a move of the collection that failed, in a process that went on.
int CollectionMover::sweep_leftovers(StoreCube& cube, Collection& collection) {
  std::vector<UnownedObjects> leftovers;
  if (const vtkv::Status status = m_sweeper.list(cube, &leftovers); !status.ok()) {
    return m_store.metadata_failure.met(cube.number, status, "the unowned ranges of cube ", cube.number);
  }
  // Of others' moves, which are under way, their threads hold the locks.
  for (const UnownedObjects& objects : leftovers) {
    const int r = objects.cid == collection.cid ? m_sweeper.sweep(cube, objects, collection) : 0;
    if (r < 0) {
      return r;
    }
  }
  return 0;
}

// A damaged store may say so of objects that a collection has.
vtkv::Status CollectionMover::check_nobody_owns(const StoreCube& cube, const UnownedObjects& objects) const {
  for (const CollectionRef& collection : m_store.collections.all()) {
    SharedLock lock(collection->lock);
    if (collection->record.home() != cube.number) {
      continue;
    }
    for (const ObjectRange& owned : object_ranges(collection->cid, collection->record.bits)) {
      for (const ObjectRange& range : object_ranges(objects.cid, objects.bits)) {
        if (overlap(owned, range)) {
          return vtkv::Status::corruption("cube " + std::to_string(cube.number) + " says of objects of collection '" +
                                          collection->cid.to_str() + "', which lies there, that they are nobody's");
        }
      }
    }
  }
  return {};
}

vtkv::Status CollectionMover::finish_interrupted(const std::vector<OutdatedRecord>& outdated) {
  const coll_t none(spg_t(pg_t(0, 0)));
  const auto nobody = ceph::make_ref<Collection>(m_store.cct, none, std::make_shared<OpSequencer>(m_store.env));
  const vtkv::Status status = sweep_all(outdated, *nobody);
  m_pipeline.drain();  // else they would outlive a mount that is refused
  return status;
}

vtkv::Status CollectionMover::sweep_all(const std::vector<OutdatedRecord>& outdated, Collection& nobody) {
  const auto failed = [](const coll_t& cid, unsigned cube) {
    return vtkv::Status::failed("what a move of collection '" + cid.to_str() +
                                "' that was cut short has left in cube " + std::to_string(cube) + " cannot be removed");
  };
  for (const OutdatedRecord& record : outdated) {
    const UnownedObjects objects{record.cid, record.bits};
    VTKV_RETURN_IF_ERROR(check_nobody_owns(m_store.cubes[record.cube], objects));
    if (disown(m_store.cubes[record.cube], objects, nobody) < 0) {
      return failed(record.cid, record.cube);
    }
  }
  for (const auto& cube : m_store.cubes) {
    std::vector<UnownedObjects> leftovers;
    VTKV_RETURN_IF_ERROR(m_sweeper.list(*cube, &leftovers));
    for (const UnownedObjects& objects : leftovers) {
      VTKV_RETURN_IF_ERROR(check_nobody_owns(*cube, objects));
      const uint64_t before = m_sweeper.objects();
      if (m_sweeper.sweep(*cube, objects, nobody) < 0) {
        return failed(objects.cid, cube->number);
      }
      dout(0) << "a move of collection " << objects.cid << " was cut short: " << m_sweeper.objects() - before
              << " objects that it left in cube " << cube->number << " are removed" << dendl;
    }
  }
  return nobody.sequencer->wait_for_all() ? vtkv::Status()
                                          : vtkv::Status::failed("nothing can be made durable any more");
}

}  // namespace swimstore
