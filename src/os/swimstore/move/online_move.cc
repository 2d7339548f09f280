// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/online_move.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/debug.h"
#include "common/errno.h"

#include "swimstore/container/best_fit.h"
#include "swimstore/object/collection_list.h"
#include "swimstore/transaction/transaction_pipeline.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.move "

namespace swimstore {

using vtkv::Status;

namespace {

// Of a batch of so many bytes, and one write that it ends with.
uint64_t room_for(uint64_t bytes) { return bytes + most_slot_bytes(kSlotBytesMax); }

}  // namespace

OnlineMove::OnlineMove(StoreContext& store, TransactionPipeline& pipeline, CollectionRef collection, unsigned to,
                       std::function<void(uint64_t)> between, const MoveLimits& limits, const MoveStop& stop,
                       MoveProgress& progress)
    : m_store(store),
      m_pipeline(pipeline),
      m_collection(std::move(collection)),
      m_to(to),
      m_between(std::move(between)),
      m_limits(limits),
      m_stop(stop),
      m_progress(progress),
      m_steps(store, pipeline) {}

OnlineMove::~OnlineMove() = default;

Status OnlineMove::run() {
  const uint64_t began_us = m_store.env->now_us();
  int r = begin();
  if (r == 0) {
    m_progress.phase = "copying";
    r = copy_all();
  }
  if (r == 0) {
    r = copy_changes();
  }
  clean_up(r);
  if (r == 0) {
    dout(1) << "collection " << m_collection->cid << " was moved from cube " << m_from << " to cube " << m_to
            << " while it was in use, in " << (m_store.env->now_us() - began_us) / 1000 << " ms and "
            << m_progress.passes << " passes; clients waited for " << m_progress.blocked_us / 1000 << " ms" << dendl;
  }
  return to_status(r);
}

int OnlineMove::begin() {
  uint64_t slot_bytes = 0;
  if (const int r = measure(&slot_bytes); r < 0) {
    return r;
  }
  if (!m_store.cubes[m_to].containers().has_room(slot_bytes, Urgency::usual)) {
    m_lacking_bytes = slot_bytes;
    return -ENOSPC;
  }
  Collection& collection = *m_collection;
  {
    // Nobody but moves of this collection puts objects there that no collection has: another one begins with its lock.
    SharedLock lock(collection.lock);
    const bool is_elsewhere = collection.exists && collection.record.home() != m_to;
    if (const int r = is_elsewhere ? m_steps.check_nobody_is_there(m_store.cubes[m_to], collection) : 0; r < 0) {
      return r;
    }
  }
  ExclusiveLock lock(collection.lock);
  vtkv::MutexLock busy(m_busy);
  if (!collection.exists) {
    return -ENOENT;
  }
  m_from = collection.record.home();
  if (m_from == m_to) {
    return -EALREADY;
  }
  if (m_bits != collection.record.bits) {
    return -ESTALE;  // since it was measured; what was looked at then may not be all
  }
  const UnownedObjects copies{collection.cid, m_bits};
  if (const int r = m_steps.mark_unowned(m_store.cubes[m_to], collection); r < 0) {
    return r;
  }
  m_store.unowned.add(m_to, copies.cid, copies.bits);
  m_leftover = Leftover{m_to, copies};
  m_changes = collection.begin_copy();
  CopyPace& pace = *this;
  m_copier.emplace(m_store, m_pipeline, collection, m_steps.account(), m_store.cubes[m_from], m_store.cubes[m_to],
                   pace);
  return 0;
}

int OnlineMove::measure(uint64_t* slot_bytes) {
  if (const int r = before_batch(0); r < 0) {
    return r;
  }
  Collection& collection = *m_collection;
  SharedLock lock(collection.lock);
  vtkv::MutexLock busy(m_busy);
  if (!collection.exists) {
    return -ENOENT;
  }
  StoreCube& home = m_store.home(collection);
  m_from = home.number;
  m_bits = collection.record.bits;
  begin_batch(m_limits.batch_bytes, m_limits.batch_us);
  const int r =
      CollectionCopier(m_store, m_pipeline, collection, m_steps.account(), home, home, *this).measure(slot_bytes);
  m_progress.slot_bytes = *slot_bytes;
  return r;
}

int OnlineMove::copy_all() {
  m_progress.passes = 1;
  return copy_in_batches([this] { return m_copier->copy(); });
}

int OnlineMove::copy_changes() {
  for (unsigned pass = 2; pass <= m_limits.passes; ++pass) {
    m_progress.passes = pass;
    if (const int r = try_to_switch(); r != -EAGAIN) {
      return r;
    }
    const std::vector<uint32_t> hashes = take_changes();
    size_t done = 0;
    if (const int r = copy_in_batches([&] { return m_copier->copy_again(hashes, &done); }); r < 0) {
      return r;
    }
  }
  return -EBUSY;
}

std::vector<uint32_t> OnlineMove::take_changes() {
  std::unordered_set<uint32_t> hashes;
  {
    Collection& collection = *m_collection;
    ExclusiveLock lock(collection.lock);
    hashes.swap(m_changes->hashes);
  }
  m_progress.hashes_left = hashes.size();
  return {hashes.begin(), hashes.end()};
}

int OnlineMove::copy_in_batches(const std::function<int()>& copy) {
  if (const int r = before_batch(room_for(m_limits.batch_bytes)); r < 0) {
    return r;
  }
  Collection& collection = *m_collection;
  SharedLock lock(collection.lock);
  vtkv::MutexLock busy(m_busy);
  begin_batch(m_limits.batch_bytes, m_limits.batch_us);
  const int r = check();
  return r < 0 ? r : copy();
}

int OnlineMove::try_to_switch() {
  Collection& collection = *m_collection;
  {
    SharedLock lock(collection.lock);
    if (m_changes->hashes.size() > m_limits.last_hashes) {
      return -EAGAIN;
    }
  }
  // Who has the lock alone waits as long once more.
  const uint64_t asked_us = m_store.env->now_us();
  vtkv::DB& database = m_store.cubes[m_from].database();
  if (!database.wait_durable(database.statistics().last_sequence).ok()) {
    return -ESHUTDOWN;
  }
  if (m_store.env->now_us() - asked_us > m_limits.commit_us) {
    return -EAGAIN;
  }
  if (const int r = before_batch(room_for(m_limits.last_bytes)); r < 0) {
    return r;
  }
  ExclusiveLock lock(collection.lock);
  vtkv::MutexLock busy(m_busy);
  const uint64_t locked_us = m_store.env->now_us();
  int r = check();
  if (r == 0) {
    r = copy_last(collection);
  }
  if (r == 0) {
    r = switch_over(collection);
  }
  m_progress.blocked_us = std::max(m_progress.blocked_us.load(), m_store.env->now_us() - locked_us);
  return r;
}

int OnlineMove::copy_last(Collection&) {
  begin_batch(m_limits.last_bytes, m_limits.last_us);
  const std::unordered_set<uint32_t> changed = std::exchange(m_changes->hashes, {});
  const std::vector<uint32_t> hashes(changed.begin(), changed.end());
  m_progress.hashes_left = hashes.size();
  m_is_last = true;
  size_t done = 0;
  const int r = m_copier->copy_again(hashes, &done);
  m_is_last = false;
  if (r == -EBUSY) {
    m_changes->hashes.insert(hashes.begin() + static_cast<ptrdiff_t>(done), hashes.end());
    return -EAGAIN;
  }
  return r;
}

// What is under way in the old cube is a part of the copy. It is durable before the copy counts: it may have changed
// more than the collection, rows of the snapshots' map, and lies in the old cube with them or not at all.
int OnlineMove::switch_over(Collection& collection) {
  m_progress.phase = "switching";
  const UnownedObjects old_copy{collection.cid, collection.record.bits};
  vtkv::DB& database = m_store.cubes[m_from].database();  // relaxed transactions are not left to their delay
  if (!database.wait_durable(database.statistics().last_sequence).ok() || !collection.sequencer->wait_for_all()) {
    return -ESHUTDOWN;
  }
  if (const int r = m_steps.put_record(m_store.cubes[m_to], collection); r < 0) {
    return r;
  }
  m_store.unowned.remove(m_to, old_copy.cid);  // first: a new group always has a cube to go to
  m_store.unowned.add(m_from, old_copy.cid, old_copy.bits);
  m_leftover = Leftover{m_from, old_copy};
  collection.give_up_copy("it was moved");
  return m_steps.disown(m_store.cubes[m_from], old_copy);
}

void OnlineMove::clean_up(int r) {
  m_room.reset();
  if (m_changes) {
    Collection& collection = *m_collection;
    ExclusiveLock lock(collection.lock);
    if (m_changes->given_up == nullptr) {
      collection.give_up_copy(m_made_way ? "its copies had to make way for another group"
                                         : "it did not come to its end");
    }
  }
  vtkv::MutexLock busy(m_busy);
  if (m_leftover && r != -ESHUTDOWN && !m_stop.leave) {
    m_progress.phase = "sweeping";
    sweep();
  }
}

// Who has made way for another move has swept already.
void OnlineMove::sweep() {
  const Leftover left = *m_leftover;
  const int r = m_steps.sweep(m_store.cubes[left.cube], left.objects, &m_stop.leave);
  if (r < 0) {
    dout(1) << "what is left of collection " << left.objects.cid << " in cube " << left.cube
            << " is removed by the next mount: " << cpp_strerror(r) << dendl;
    return;
  }
  m_store.unowned.remove(left.cube, left.objects.cid);
  m_leftover.reset();
}

void OnlineMove::make_way(unsigned cube, const coll_t& cid, uint32_t bits) {
  vtkv::MutexLock busy(m_busy);
  if (m_leftover && m_leftover->cube == cube && overlap(m_leftover->objects.cid, m_leftover->objects.bits, cid, bits)) {
    m_made_way = true;
    sweep();
    m_leftover.reset();  // whatever came of it: from now on the caller answers for what is there
  }
}

int OnlineMove::check() const {
  return m_stop.cancel || m_changes->given_up != nullptr || !m_leftover ? -ECANCELED : 0;
}

int OnlineMove::before_batch(uint64_t room_bytes) {
  m_room.reset();
  note_progress();
  if (m_stop.cancel) {
    return -ECANCELED;
  }
  if (!m_steps.account().sequencer->wait_for_all()) {
    return -ESHUTDOWN;
  }
  m_between(m_batch_began_us == 0 ? 0 : m_store.env->now_us() - m_batch_began_us);
  if (room_bytes == 0) {
    return 0;
  }
  m_pipeline.wait_for_turn(std::min(room_bytes, m_limits.batch_bytes));  // in which others wait behind it
  m_room.emplace(m_store.cubes[m_to].containers(), room_bytes, Urgency::usual);
  if (!*m_room) {
    m_room.reset();
    m_lacking_bytes = room_bytes;
    return -ENOSPC;
  }
  return 0;
}

void OnlineMove::begin_batch(uint64_t bytes, uint64_t us) {
  m_batch_bytes = 0;
  m_batch_bytes_max = bytes;
  m_batch_began_us = m_store.env->now_us();
  m_batch_ends_us = m_batch_began_us + us;
}

void OnlineMove::note_progress() {
  if (m_copier) {
    m_progress.objects = m_copier->objects();
    m_progress.bytes = m_copier->bytes();
  }
}

bool OnlineMove::is_enough(uint64_t bytes) {
  m_batch_bytes += bytes;
  return m_store.env->now_us() >= m_batch_ends_us || m_batch_bytes > m_batch_bytes_max || !has_room(bytes);
}

bool OnlineMove::has_room(uint64_t bytes) const {
  return bytes == 0 || !m_room || m_room->left_bytes() >= 2 * kSlotBytesMax ||
         m_room->left_bytes() >= most_slot_bytes(std::min<uint64_t>(bytes, kSlotBytesMax));
}

// Clang does not see that its caller has taken the locks, by way of CollectionCopier.
int OnlineMove::pause(uint32_t hash) NO_THREAD_SAFETY_ANALYSIS {
  if (m_is_last) {
    return -EBUSY;
  }
  Collection& collection = *m_collection;
  const uint64_t room_bytes = m_copier ? room_for(m_limits.batch_bytes) : 0;
  m_busy.unlock();
  collection.lock.unlock_shared();
  int r = before_batch(room_bytes);
  collection.lock.lock_shared();
  m_busy.lock();
  begin_batch(m_limits.batch_bytes, m_limits.batch_us);
  if (r == 0 && !m_copier) {
    const bool is_same = collection.exists && collection.record.home() == m_from && collection.record.bits == m_bits;
    return is_same ? 0 : -ESTALE;
  }
  r = r < 0 ? r : check();
  return r == 0 && m_changes->hashes.contains(hash) ? -EAGAIN : r;
}

bool OnlineMove::wants(uint32_t hash) NO_THREAD_SAFETY_ANALYSIS {
  return !m_changes || !m_changes->hashes.contains(hash);
}

Status OnlineMove::to_status(int r) const {
  const std::string what =
      fmt::format("collection {} was not moved from cube {} to cube {}", m_collection->cid.to_str(), m_from, m_to);
  switch (r) {
    case 0:
    case -EALREADY:
      return {};
    case -ENOSPC:
      return Status::make(
          Status::Code::no_space,
          fmt::format("{}: it needs room for {} bytes there, and for log and tree, which neither that cube nor "
                      "the host has",
                      what, m_lacking_bytes),
          ENOSPC);
    case -EBUSY:
      return Status::make(
          Status::Code::busy,
          fmt::format(
              "{}: clients change it faster than it is copied, or commits take long. Try again when there is less "
              "load, or move it with the OSD stopped",
              what),
          EBUSY);
    case -ENOENT:
    case -ESTALE:
      return Status::make(Status::Code::failed, what + ": it was split, merged, moved or removed meanwhile", -r);
    case -ENODATA:
      return Status::make(Status::Code::failed,
                          what +
                              ": a block of it cannot be read, see the log. Repair the placement group first, or "
                              "move it with the OSD stopped: then the block is unreadable in the copy, too",
                          ENODATA);
    case -ECANCELED: {
      const char* const why = m_stop.cancel || !m_changes ? nullptr : m_changes->given_up.load();
      return Status::make(Status::Code::failed, what + ": " + (why == nullptr ? "it was stopped" : why), ECANCELED);
    }
    case -EEXIST:
      return Status::make(Status::Code::failed,
                          fmt::format("{}: objects of its range lie in cube {} already, in no collection. Stop the OSD "
                                      "and run ceph-swimstore-tool fsck",
                                      what, m_to),
                          EEXIST);
    default:
      return Status::make(Status::Code::failed, what + ": " + cpp_strerror(r), -r);
  }
}

}  // namespace swimstore
