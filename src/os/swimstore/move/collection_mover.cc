// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/collection_mover.h"

#include <algorithm>

#include "common/debug.h"
#include "common/errno.h"

#include "swimstore/format/key_codec.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/maintenance/own_transaction.h"
#include "swimstore/maintenance/promised_room.h"
#include "swimstore/move/collection_copier.h"
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

// How often it is looked whether log and tree still have room, which nobody promised.
constexpr uint64_t kUnlookedBytes = 4u << 20;
constexpr unsigned kDoubledMost = 20;

// In one go, unless log and tree get short of room.
class InOneGo final : public CopyPace {
 public:
  // `kept_bytes`: what log and tree are to have left of it.
  InOneGo(const ContainerSet& containers, PromisedRoom& room, uint64_t kept_bytes)
      : m_containers(containers), m_room(room), m_kept_bytes(kept_bytes) {}
  void used(uint64_t bytes) override { m_room.used(bytes); }
  bool is_enough(uint64_t bytes) override {
    m_unlooked_bytes += bytes;
    if (m_unlooked_bytes > kUnlookedBytes) {
      m_unlooked_bytes = 0;
      m_is_short = !m_containers.has_metadata_room(m_kept_bytes, Urgency::late);
    }
    return m_is_short;
  }
  int pause(uint32_t) override { return -ENOSPC; }
  bool is_short() const { return m_is_short; }

 private:
  const ContainerSet& m_containers;
  PromisedRoom& m_room;
  const uint64_t m_kept_bytes;
  uint64_t m_unlooked_bytes = 0;
  bool m_is_short = false;
};

// Before it is looked again so much more may be on its way to the log, which takes a whole segment for it.
uint64_t kept_bytes(const Cube& cube) {
  return CollectionCopier::kUnderWayBytesMax + 2 * kUnlookedBytes + cube.log_segment_bytes();
}

}  // namespace

CollectionMover::CollectionMover(StoreContext& store, TransactionPipeline& pipeline)
    : m_store(store), m_pipeline(pipeline), m_account(OwnTransaction::new_account(store)), m_sweeper(store, pipeline) {}

int CollectionMover::move(Collection& collection, unsigned to, LackingRoom* lacking) {
  StoreCube& from = m_store.home(collection);
  const int r = try_move(collection, from, m_store.cubes[to], lacking);
  if (r < 0 && lacking->need.is_none() && r != -ESHUTDOWN) {
    derr
        << "collection " << collection.cid << " cannot be moved from cube " << from.number << " to cube " << to << ": "
        << cpp_strerror(r) << ". It lies in cube " << collection.record.home()
        << ", whole; the next mount removes what the other holds of it. Check the store with ceph-swimstore-tool fsck, "
        << "and repair it" << dendl;
  }
  return r;
}

int CollectionMover::try_move(Collection& collection, StoreCube& from, StoreCube& to, LackingRoom* lacking) {
  const uint64_t began_us = m_store.env->now_us();
  const UnownedObjects old_copy{collection.cid, collection.record.bits};
  int r = collection.sequencer->wait_for_all() ? 0 : -ESHUTDOWN;
  if (r == 0 && mutated(Mutation::moved_before_copied)) {
    r = put_record(to, collection);
  }
  if (r == 0) {
    r = copy(collection, from, to, lacking);
  }
  if (r == 0) {
    r = put_record(to, collection);
  }
  if (r == 0) {
    r = disown(from, old_copy);
  }
  if (r == 0) {
    r = sweep(from, old_copy);
  }
  if (r == 0) {
    dout(1) << "collection " << collection.cid << " was moved from cube " << from.number << " to cube " << to.number
            << " in " << (m_store.env->now_us() - began_us) / 1000 << " ms" << dendl;
  }
  return r;
}

int CollectionMover::copy(Collection& collection, StoreCube& from, StoreCube& to, LackingRoom* lacking) {
  const vtkv::MutexLock one_at_a_time(m_store.copy_in_one_go);  // nobody promises the room of log and tree
  SpaceNeed need{.may_wait = true, .is_much = true};
  CopyPace pace;
  int r = sweep_leftovers(to, collection);
  if (r == 0) {
    r = CollectionCopier(m_store, m_pipeline, collection, *m_account, from, to, pace)
            .measure(&need.slot_bytes, &need.metadata_bytes);
  }
  if (r < 0) {
    return r;
  }
  const uint64_t kept = kept_bytes(to.cube);
  need.metadata_bytes = (need.metadata_bytes << std::min(lacking->cut_short, kDoubledMost)) + kept;
  PromisedRoom room(to.containers(), need.slot_bytes, Urgency::late, need.metadata_bytes);
  if (!room) {
    derr << "collection " << collection.cid << " has to be moved to cube " << to.number
         << ", where there is no room for its " << need.slot_bytes << " bytes and " << need.metadata_bytes
         << " of log and tree" << dendl;
    lacking->need = need;
    return -ENOSPC;
  }
  InOneGo in_one_go(to.containers(), room, kept);
  CollectionCopier copier(m_store, m_pipeline, collection, *m_account, from, to, in_one_go);
  r = check_nobody_is_there(to, collection);
  if (r == 0) {
    r = mark_unowned(to, collection);
  }
  if (r == 0) {
    r = copier.copy();
  }
  dout(5) << "copied " << copier.objects() << " objects of " << collection.cid << ", " << copier.bytes() << " bytes"
          << dendl;
  if (r == -ENOSPC && in_one_go.is_short()) {
    derr << "collection " << collection.cid << " cannot be moved to cube " << to.number
         << " now: log and tree are to have " << kept << " bytes left beside a quarter of their reserve. Its copy is "
         << "removed; before the next attempt there has to be twice as much as was thought" << dendl;
    r = take_back_copy(collection, to);
    if (r == -ENOSPC) {
      ++lacking->cut_short;
      need.metadata_bytes += need.metadata_bytes - kept;
      lacking->need = need;
    }
  }
  return r;
}

// -ENOSPC: it is done. What it took of the tree is free when that was compacted.
int CollectionMover::take_back_copy(const Collection& collection, StoreCube& to) {
  const int r = sweep(to, {collection.cid, collection.record.bits});
  if (r < 0) {
    return r;
  }
  if (!m_account->sequencer->wait_for_all()) {
    return -ESHUTDOWN;
  }
  to.database().request_checkpoint();  // its log goes
  return -ENOSPC;
}

// Objects that no collection has, fsck tells of and keeps.
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

int CollectionMover::mark_unowned(StoreCube& cube, const Collection& collection) {
  if (mutated(Mutation::old_copy_unmarked) || mutated(Mutation::moved_before_copied)) {
    return 0;
  }
  OwnTransaction transaction(m_store, m_pipeline, cube, *m_account);
  transaction.batch().put(unowned_range_key(collection.cid), encode_unowned_range({collection.record.bits}));
  return transaction.submit();
}

int CollectionMover::put_record(StoreCube& to, Collection& collection) {
  CollectionRecord record = collection.record;
  for (CollectionRecord::HashRange& range : record.hash_ranges) {
    range.cube = to.number;
  }
  {
    OwnTransaction transaction(m_store, m_pipeline, to, *m_account);
    TxnPlan& plan = transaction.planner().plan();
    record.generation = m_store.collections.new_generation([&plan] { return plan.new_object_id(); });
    transaction.batch().put(collection_key(collection.cid), encode_collection(record));
    transaction.batch().remove(unowned_range_key(collection.cid));
    if (const int r = transaction.submit(); r < 0) {
      return r;
    }
  }
  if (!mutated(Mutation::swept_before_moved) && !m_account->sequencer->wait_for_all()) {
    return -ESHUTDOWN;
  }
  collection.record = std::move(record);
  // Before the old record goes: whichever of the two cubes is lost, the other has a record, or the witness names it.
  WitnessWriter witness(m_store, to);
  witness.set_group(collection.cid, collection.record.bits);
  return witness.write() ? 0 : -ESHUTDOWN;
}

// Durable before a later transaction in the new cube is, which may end the collection: the old cube's record would be
// the only one.
int CollectionMover::disown(StoreCube& cube, const UnownedObjects& objects) {
  const int r = submit_disowning(cube, objects);
  return r < 0 || m_account->sequencer->wait_for_all() ? r : -ESHUTDOWN;
}

int CollectionMover::submit_disowning(StoreCube& cube, const UnownedObjects& objects) {
  OwnTransaction transaction(m_store, m_pipeline, cube, *m_account);
  transaction.batch().remove(collection_key(objects.cid));
  if (!mutated(Mutation::old_copy_unmarked)) {
    transaction.batch().put(unowned_range_key(objects.cid), encode_unowned_range({objects.bits}));
  }
  return transaction.submit();
}

int CollectionMover::sweep(StoreCube& cube, const UnownedObjects& objects, const std::atomic<bool>* stop) {
  return m_sweeper.sweep(cube, objects, *m_account, stop);
}

// Of a move of the collection that failed, in a process that went on.
int CollectionMover::sweep_leftovers(StoreCube& cube, const Collection& collection) {
  std::vector<UnownedObjects> leftovers;
  if (const vtkv::Status status = RangeSweeper::list(cube, &leftovers); !status.ok()) {
    return m_store.metadata_failure.met(cube.number, status, "the unowned ranges of cube ", cube.number);
  }
  // Of others' moves, which are under way, their threads hold the locks.
  for (const UnownedObjects& objects : leftovers) {
    if (objects.cid == collection.cid) {
      if (const int r = sweep(cube, objects); r < 0) {
        return r;
      }
      m_store.unowned.remove(cube.number, objects.cid);
    }
  }
  return 0;
}

// A damaged store may say so of objects that a collection has.
vtkv::Status CollectionMover::check_nobody_owns(const StoreCube& cube, const UnownedObjects& objects) const {
  for (const CollectionRef& collection : m_store.collections.all()) {
    SharedLock lock(collection->lock);
    if (collection->record.home() == cube.number &&
        overlap(collection->cid, collection->record.bits, objects.cid, objects.bits)) {
      return vtkv::Status::corruption("cube " + std::to_string(cube.number) + " says of objects of collection '" +
                                      collection->cid.to_str() + "', which lies there, that they are nobody's");
    }
  }
  return {};
}

vtkv::Status CollectionMover::finish_interrupted(const std::vector<OutdatedRecord>& outdated) {
  const vtkv::Status status = sweep_all(outdated);
  m_pipeline.drain();  // else they would outlive a mount that is refused
  return status;
}

vtkv::Status CollectionMover::sweep_all(const std::vector<OutdatedRecord>& outdated) {
  const auto failed = [](const coll_t& cid, unsigned cube) {
    return vtkv::Status::failed("what a move of collection '" + cid.to_str() +
                                "' that was cut short has left in cube " + std::to_string(cube) + " cannot be removed");
  };
  for (const OutdatedRecord& record : outdated) {
    const UnownedObjects objects{record.cid, record.bits};
    VTKV_RETURN_IF_ERROR(check_nobody_owns(m_store.cubes[record.cube], objects));
    if (submit_disowning(m_store.cubes[record.cube], objects) < 0) {
      return failed(record.cid, record.cube);
    }
  }
  for (const auto& cube : m_store.cubes) {
    std::vector<UnownedObjects> leftovers;
    VTKV_RETURN_IF_ERROR(RangeSweeper::list(*cube, &leftovers));
    for (const UnownedObjects& objects : leftovers) {
      VTKV_RETURN_IF_ERROR(check_nobody_owns(*cube, objects));
      const uint64_t before = m_sweeper.objects();
      if (sweep(*cube, objects) < 0) {
        return failed(objects.cid, cube->number);
      }
      dout(0) << "a move of collection " << objects.cid << " was cut short: " << m_sweeper.objects() - before
              << " objects that it left in cube " << cube->number << " are removed" << dendl;
    }
  }
  return m_account->sequencer->wait_for_all() ? vtkv::Status()
                                              : vtkv::Status::failed("nothing can be made durable any more");
}

}  // namespace swimstore
