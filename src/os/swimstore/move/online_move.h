// SPDX-License-Identifier: LGPL-2.1-or-later
// One collection goes to another cube while clients use it. The steps are those of collection_mover.h; what is other is
// the second:
//
//   a. A first pass copies all objects, a few MiB or milliseconds under the collection's lock, shared, at a time; in
//      between nothing is locked. Meanwhile the collection notes the hashes of what transactions name
//      (Collection::note_change).
//   b. Further passes copy the objects of these hashes once more. What the copy has of a hash is removed first, for
//      objects of one hash may share blocks.
//   c. When few hashes are left, a last pass holds the lock alone, and the steps 3 and 4 follow under it. It ends early
//      where it takes too long, and the passes go on: so nobody waits for long, and a collection that changes faster
//      than it is copied stays where it is.
//   d. Step 5 needs no lock again.
//
// Who splits, merges, removes or moves the collection meanwhile does not wait: the copy is of no use any more, and is
// removed. Who makes another one in the cube that the copy lies in, or merges others there, whose range it lies in,
// waits until it is removed: its objects would be theirs.
//
// Threads: one runs it; others may call make_way(), and set what `stop` refers to.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "swimstore/maintenance/promised_room.h"
#include "swimstore/move/collection_copier.h"
#include "swimstore/move/collection_mover.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// How far it is. Thread-safe.
struct MoveProgress {
  std::atomic<const char*> phase{"measuring"};  // then copying, switching, sweeping
  std::atomic<uint64_t> slot_bytes{0};  // that the group's blocks take, at most, when it began
  std::atomic<uint64_t> objects{0}, bytes{0};  // copied, those that were copied again counted again
  std::atomic<unsigned> passes{0};  // begun
  std::atomic<uint64_t> hashes_left{0};  // of changed objects, when the last pass began
  std::atomic<uint64_t> blocked_us{0};  // that a pass held the lock alone for, at most
};

// How long clients wait for it.
struct MoveLimits {
  // Of a batch: data and omap, and the time that the collection's lock is held for.
  uint64_t batch_bytes = 4u << 20, batch_us = 10'000;
  // Of the last pass, before what makes it durable; it waits for less load while a commit takes longer than that.
  uint64_t last_bytes = 16u << 20, last_us = 200'000;
  size_t last_hashes = 1000;
  uint64_t commit_us = 500'000;
  unsigned passes = 30;  // then it gives up
};

// Set by others.
struct MoveStop {
  std::atomic<bool> cancel{false};  // it ends soon, and what was copied is removed
  std::atomic<bool> leave{false};  // and what is to be removed is left to the next mount
};

class OnlineMove final : private CopyPace {
 public:
  // `between`: called again and again while nothing is locked, with the microseconds that the lock was held for.
  OnlineMove(StoreContext& store, TransactionPipeline& pipeline, CollectionRef collection, unsigned to,
             std::function<void(uint64_t)> between, const MoveLimits& limits, const MoveStop& stop,
             MoveProgress& progress);
  ~OnlineMove() override;

  // What the group's blocks take of slots, at most. 0, -ECANCELED, -ENOENT or -ESTALE: it is gone or another one, or
  // -EIO.
  int measure(uint64_t* slot_bytes);
  // To its end. Code::no_space: there is no room. Code::busy: the collection changes faster than it is copied.
  // Code::failed: it was stopped, given up for what the collection was changed to, or see the message. Always: the
  // collection lies in one of the two cubes, whole.
  vtkv::Status run();
  // The collection is about to have, in that cube, whatever a group of this name and so many bits can have: what this
  // move has there of it goes first, by the caller's thread. The caller holds its lock.
  void make_way(unsigned cube, const coll_t& cid, uint32_t bits) EXCLUDES(m_busy);

 private:
  bool is_enough(uint64_t bytes) override;
  int pause(uint32_t hash) override;
  bool wants(uint32_t hash) override;
  bool takes_unreadable() const override { return false; }
  void used(uint64_t slot_bytes) override { m_room->used(slot_bytes); }

  bool has_room(uint64_t bytes) const;
  int begin() EXCLUDES(m_busy);
  int copy_all() EXCLUDES(m_busy);
  int copy_changes() EXCLUDES(m_busy);
  // What was changed since it was called last.
  std::vector<uint32_t> take_changes() EXCLUDES(m_busy);
  // A pass that gives the lock up between batches.
  int copy_in_batches(const std::function<int()>& copy) EXCLUDES(m_busy);
  // -EAGAIN: it would take too long.
  int try_to_switch() EXCLUDES(m_busy);
  int copy_last(Collection& collection) REQUIRES(m_busy, collection.lock);
  int switch_over(Collection& collection) REQUIRES(m_busy, collection.lock);
  void clean_up(int r) EXCLUDES(m_busy);
  void sweep() REQUIRES(m_busy);
  // -ECANCELED: it was stopped or given up, or its copies were removed to make way.
  int check() const REQUIRES(m_busy);
  // Before the collection's lock is taken: waits until nothing of the move is under way and it has room. 0 bytes: it
  // copies nothing.
  int before_batch(uint64_t room_bytes) EXCLUDES(m_busy);
  // Behind that.
  void begin_batch(uint64_t bytes, uint64_t us);
  void note_progress();
  vtkv::Status to_status(int r) const;

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  const CollectionRef m_collection;
  const unsigned m_to;
  const std::function<void(uint64_t)> m_between;
  const MoveLimits m_limits;
  const MoveStop& m_stop;
  MoveProgress& m_progress;
  CollectionMover m_steps;
  unsigned m_from = 0;
  uint32_t m_bits = 0;
  std::shared_ptr<CollectionChanges> m_changes;
  std::optional<CollectionCopier> m_copier;
  uint64_t m_lacking_bytes = 0;

  // Of the batch under way.
  std::optional<PromisedRoom> m_room;  // none: it copies nothing
  uint64_t m_batch_bytes = 0, m_batch_bytes_max = 0;
  uint64_t m_batch_began_us = 0, m_batch_ends_us = 0;
  bool m_is_last = false;  // it holds the lock alone, and does not pause

  // Held by who changes what this move has in a cube. Taken behind the collection's lock.
  vtkv::Mutex m_busy;
  struct Leftover {
    unsigned cube = 0;
    UnownedObjects objects;
  };
  std::optional<Leftover> m_leftover GUARDED_BY(m_busy);  // what is there, to be removed at the end
  std::atomic<bool> m_made_way{false};  // changed under m_busy
};

}  // namespace swimstore
