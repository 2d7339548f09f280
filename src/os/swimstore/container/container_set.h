// SPDX-License-Identifier: LGPL-2.1-or-later
// The containers of one cube: one sparse file per size class, its slots, and who owns which.
//
// Life of a slot, and of each fragment of one that is split (split_slots.h):
//   free --allocate--> reserved --apply(allocated)--> owned --apply(freed)--> waiting
//   waiting --set_reuse_horizon(h >= sequence that freed it)--> free
//   reserved --abandon--> free
// A slot splits when some of its blocks are freed.
// Two states are kept. The allocator's (above) answers allocate(). The logical one, "owned as of the last
// applied sequence", is what allocation pages hold: it changes only in apply(), which the database calls in
// sequence order, so a page collected at a checkpoint is exact.
//
// A slot is primed when all its blocks were written and synced since they were last punched. On disk the
// primed bit may be stale only towards 0: it is durably cleared before a hole is punched. What others punched, or left
// out of a copy, is found at open, by the host's map.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "swimstore/container/activity.h"
#include "swimstore/format/note_record.h"
#include "swimstore/format/size_class.h"
#include "vtkv/background_error.h"
#include "vtkv/env.h"
#include "vtkv/options.h"
#include "vtkv/util/mutex.h"
#include "vtkv/write_batch.h"

namespace vtkv {
class BackgroundErrors;
}  // namespace vtkv

namespace swimstore {

class SpaceReserve;

struct ContainerOptions {
  // Fixed at creation, kept in the container headers or the superblock.
  uint64_t chunk_bytes = 32u << 20;  // unit of growth; at least one slot of each class
  // May differ at every open.
  unsigned primed_class_max = 3;          // classes up to this one are primed ahead of demand
  uint64_t primed_ahead_bytes = 64u << 20;  // free primed bytes kept ready per such class
  uint64_t reserve_bytes = 128u << 20;      // host space that only privileged allocations may take
  std::shared_ptr<SpaceReserve> reserve;    // shared with other sets, and open; null: one of its own, of that size
  // Of the log and the tree that belong to this set, on another file system, and open: it is kept full. Null: they lie
  // on that of the containers.
  std::shared_ptr<SpaceReserve> metadata_reserve;
  uint64_t hole_bytes_min = 64u << 10;  // least run of free blocks that is punched by itself
  // False: nothing is grown, primed or punched, so that what nobody owns stays as it is. For checks and repair.
  bool maintenance = true;
  bool read_only = false;  // recovery makes nothing that is missing, and gives back nothing
  // When maintenance begins to fail, fails in another way, and when that is over. Called on its thread.
  std::function<void(const vtkv::BackgroundError&)> on_background_error;
  // The host has no room for what a transaction wants to store, or for so much of log and tree. Called on its thread.
  std::function<void(uint64_t metadata_bytes)> on_short_of_space;
};

// One slot of a reservation. `bytes` is a multiple of kBlockBytes, at most the slot's size.
struct AllocatedSlot {
  SlotAddress address;
  uint32_t bytes = 0;
  bool primed = false;  // false: the container needs a sync of its own for this write

  SlotBlocks blocks() const { return SlotBlocks::all(address, bytes / kBlockBytes); }
};

struct ContainerStatistics {
  struct Class {
    // slots = owned + free + waiting + reserved: those backed by host space. reserved: allocated and not
    // yet applied, being primed, or quarantined. primed_free is a part of free.
    // split: those of owned and reserved that are; split_free_blocks: free ones in these.
    uint64_t slots = 0, owned = 0, free = 0, waiting = 0, reserved = 0, primed_free = 0;
    uint64_t split = 0, split_free_blocks = 0;
  };
  std::array<Class, kSizeClasses> classes;
  uint64_t owned_bytes = 0;  // whole slots, and what is owned of those that are split
  uint64_t file_bytes = 0;  // allocated on the host by the containers
  uint64_t growable_bytes = 0;  // what the host could still give, less the reserve
  uint64_t free_bytes = 0;  // in free and waiting slots and fragments
  uint64_t kept_bytes = 0;  // free ones that usual transactions leave
  uint64_t promised_bytes = 0;  // to transactions that are being planned
  uint64_t reserve_bytes = 0, reserve_target_bytes = 0;  // held, and what it is to be
  uint64_t reserve_lent_bytes = 0;  // what of the rest containers grew with
  uint64_t hole_bytes = 0;  // punched inside chunks, not given space again
  uint64_t primed_bytes_total = 0, punched_bytes_total = 0;  // since open
  uint64_t punched_fragments_bytes_total = 0;  // of these, fragments of chunks
  // Why the host lets containers not grow, but for want of space, and what to do; empty: it does.
  std::string growth_error;

  // Of sets that share one host and one reserve, which are counted once.
  ContainerStatistics& operator+=(const ContainerStatistics& other);
};

// How free space lies: pieces are runs of neighbouring free slots, and fragments of split slots. What waits for the
// reuse horizon, what was punched and what is about to be does not count.
struct FreePieces {
  struct Size {
    uint64_t pieces = 0, bytes = 0;
  };
  std::array<Size, kSizeClasses> sizes;  // [k]: of 2^k blocks, up to twice as many; the last: 4 MiB or more

  void add(uint64_t blocks, uint64_t count = 1);  // pieces of as many blocks each
  FreePieces& operator+=(const FreePieces& other);
  uint64_t bytes() const;
  // 0: all of it lies in pieces of 4 MiB or more; 1: in single blocks. In between each byte counts by the logarithm of
  // its piece's size. 0 where nothing is free.
  double score() const;
};

// Of a transaction that needs room, see SpacePromises.
enum class Urgency { usual, late, privileged };

class Container;
class Primer;
class Quarantine;
class Reclaimer;
class SpacePromises;
struct WriteSlice;
using ContainerArray = std::array<std::unique_ptr<Container>, kSizeClasses>;

class ContainerSet {
 public:
  static vtkv::Status create(vtkv::Env* env, const std::string& directory, const ContainerOptions& options);
  // Changes nothing on disk.
  static vtkv::Status open(vtkv::Env* env, const std::string& directory, const ContainerOptions& options,
                           std::unique_ptr<ContainerSet>* containers);
  ~ContainerSet();
  ContainerSet(const ContainerSet&) = delete;
  ContainerSet& operator=(const ContainerSet&) = delete;

  // Best fit: the smallest slot that holds `bytes` (rounded up to blocks); when that wastes more than a
  // quarter, two smaller ones; above kSlotBytesMax, several of the largest first. Fragments of split slots go first.
  // Falls back to other classes when one is exhausted. Next-fit inside a class, so that slots taken one after another
  // are neighbours on disk. All or nothing; Code::no_space. It succeeds as long as the caller holds a promise of
  // most_slot_bytes(bytes) not yet used up.
  vtkv::Status allocate(uint64_t bytes, std::vector<AllocatedSlot>* slots);
  void abandon(const std::vector<AllocatedSlot>& slots);
  // A transaction that is not applied yet will free these blocks. False: nobody owns them, or another one frees some of
  // them; only a damaged store's extents lead there.
  bool begin_free(const SlotBlocks& blocks);
  // It will not: the transaction is taken back.
  void end_free(const SlotBlocks& blocks);
  // Room for the allocations of a transaction, before it is planned (space_promises.h); give_back() when they were
  // made. False: there is none. Never waits, but for the host. 0 bytes: asks only for room of log and tree.
  bool promise(uint64_t bytes, Urgency urgency);
  // The same where it is of much: a promise grows containers as far as the host lets them, and what they got stays with
  // them though it was not enough. So this one is asked for when there is enough, as far as has_room() can tell.
  // `metadata_bytes`: more than a transaction's own of log and tree, which are not promised to anybody.
  bool promise_much(uint64_t bytes, Urgency urgency, uint64_t metadata_bytes = 0);
  bool has_room(uint64_t bytes, Urgency urgency, uint64_t metadata_bytes = 0) const;
  // Of log and tree alone. Asks the host.
  bool has_metadata_room(uint64_t bytes, Urgency urgency) const;
  // The same for what could be done without: true when much is left. Grows nothing, and asks nobody for space.
  bool promise_spare(uint64_t bytes);
  void give_back(uint64_t bytes);
  void apply(vtkv::SequenceNumber sequence, const AllocationDelta& delta);
  void set_reuse_horizon(vtkv::SequenceNumber horizon);
  bool has_waiting() const { return m_waiting.load(std::memory_order_relaxed) > 0; }
  // The first fill of these slots is durable (own file synced): from now on they count as primed.
  void mark_primed(const std::vector<SlotAddress>& slots);

  // Of the container of that class.
  vtkv::File* file(unsigned container);
  // A write of these bytes to a container failed. Writes them once more, slot by slot, to find out which slots are bad,
  // and makes that durable knowledge: after the next open they are never handed out, whoever has them now. Returns what
  // it found, in words, to go with the error.
  std::string note_failed_write(vtkv::File* file, uint64_t offset, const std::vector<iovec>& buffers);
  // Others on the same host are short of space: whole chunks and large fragments that are free go back to it, soon.
  void give_space_back(uint64_t metadata_bytes);
  // Known to be bad. Owned ones among them are read as ever.
  std::vector<SlotAddress> quarantined() const;
  // The log needs space that the host refuses: gives a slice of the reserve back. False: there is none.
  bool make_room();

  // Recovery. begin_recovery: the store's lock is held, the host may be changed: the reserve makes room.
  // Then pages as of the checkpoint, then split slots, then deltas after it, then finish. Code::corruption when a delta
  // allocates an owned slot or frees a free one, or a page does not fit the container.
  vtkv::Status begin_recovery();
  vtkv::Status load_page(std::string_view key, std::string_view value);
  vtkv::Status load_split_slot(std::string_view key, std::string_view value);
  vtkv::Status replay(const AllocationDelta& delta);
  vtkv::Status finish_recovery();  // starts the workers (growth, priming, reclaim)
  // Pages that changed since the last call, as of the last apply(), which was at `as_of`; see
  // CheckpointParticipant::collect.
  void collect_pages(vtkv::SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries);
  // No recovery starts before a checkpoint that holds the pages collected at `as_of`: holes may be punched.
  void checkpoint_durable(vtkv::SequenceNumber as_of);
  // Space that cannot be given back before a checkpoint is wanted: called on a worker, at most once per
  // checkpoint. Set before finish_recovery().
  void set_checkpoint_request(std::function<void()> request);

  bool is_owned(const SlotBlocks& blocks) const;  // all of them
  bool is_primed(SlotAddress slot) const;
  // What is owned of the first slot of the container with an owner at or above `from`: all of it, or runs of blocks
  // when it is *split. False when there is none.
  bool next_owned(unsigned container, uint64_t from, std::vector<SlotBlocks>* owned, bool* split) const;
  // Reserves those of these blocks that are free, whose bytes stay as they are, for a transaction that makes them
  // owned. *claimed, empty before: what that is to name; all of a whole slot that was free. Code::busy when none of
  // them is; Code::invalid_argument past the container's end; Code::no_space.
  vtkv::Status claim(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed);
  // Ends the workers; no other call but these of the database's callbacks and the destructor may follow.
  void stop();
  vtkv::Status sync_all();
  ContainerStatistics statistics() const;
  // Goes through all slots, 8192 at a time, and holds nobody up meanwhile: about a microsecond for each of these.
  FreePieces free_pieces() const;
  // What maintenance fails at.
  std::vector<vtkv::BackgroundError> background_errors() const;

 private:
  ContainerSet(vtkv::Env* env, std::string directory, const ContainerOptions& options);
  vtkv::Status open_files();
  // A fragment of a split slot, the smallest container's first.
  bool take_fragment(unsigned size_class, uint32_t bytes, bool only_primed, std::vector<AllocatedSlot>* slots);
  // A fragment, or one slot of exactly this class: a free one, or a new one of a new chunk. Of a class that is primed
  // ahead, what is not primed comes last: its sync would cost more than the write.
  bool take(unsigned size_class, uint32_t bytes, bool may_grow, std::vector<AllocatedSlot>* slots);
  // Slots of smaller classes, largest first, at most `limit` of them. All of `bytes` or nothing.
  bool take_smaller(const WriteSlice& slice, size_t limit, bool may_grow, std::vector<AllocatedSlot>* slots);
  bool take_elsewhere(const WriteSlice& slice, std::vector<AllocatedSlot>* slots);
  // Splits a free slot of a larger class.
  bool break_up_larger(unsigned size_class, uint32_t bytes, std::vector<AllocatedSlot>* slots);
  // Whatever is free, in fragments however small, none larger than what it holds.
  bool take_scraps(uint32_t bytes, std::vector<AllocatedSlot>* slots);
  bool grow(Container& container);
  // Of log and tree: what is wanted of this set, and of others on the host.
  void short_of_space(uint64_t own_bytes, uint64_t others_bytes);
  void wake_worker(bool asleep) EXCLUDES(m_worker_lock);
  vtkv::NextStep maintenance_step();

  vtkv::Env* const m_env;
  const std::string m_directory;
  // Set by open_files(), as what those below point to that are not const.
  ContainerOptions m_options;
  ContainerArray m_containers;

  const bool m_shares_reserve;
  const std::shared_ptr<SpaceReserve> m_reserve;
  const std::unique_ptr<Quarantine> m_quarantine;
  const std::unique_ptr<vtkv::BackgroundErrors> m_errors;
  std::unique_ptr<SpacePromises> m_promises;
  std::unique_ptr<Primer> m_primer;
  std::unique_ptr<Reclaimer> m_reclaimer;

  std::atomic<uint64_t> m_waiting{0};
  Activity m_activity;
  vtkv::Mutex m_worker_lock;
  std::unique_ptr<vtkv::Worker> m_worker GUARDED_BY(m_worker_lock);
};

}  // namespace swimstore
