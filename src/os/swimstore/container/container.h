// SPDX-License-Identifier: LGPL-2.1-or-later
// One container: the sparse file of one size class, the slots in it, whole and split, and what waits.
//
// m_lock guards both allocators, of slots and of fragments, and all that waits. m_growth_lock is held while the file's
// space changes, which is I/O: growing, priming and punching do theirs without m_lock.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "swimstore/container/container_set.h"
#include "swimstore/container/quarantine.h"
#include "swimstore/container/slot_allocator.h"
#include "swimstore/container/slot_bitmap.h"
#include "swimstore/container/split_slots.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class Container {
 public:
  // "4K" … "4M": the name of the class's file.
  static std::string file_name(unsigned size_class);
  // Bytes by which the file of a class grows.
  static uint64_t growth_bytes(unsigned size_class, uint64_t chunk_bytes);
  // Of what the host gives a container when it is made: its first chunk, if its class is primed there and the host is
  // large, else nothing.
  static uint64_t created_bytes(unsigned size_class, const ContainerOptions& options, const vtkv::FileSystemInfo& host);

  Container(unsigned size_class, uint64_t chunk_bytes, std::unique_ptr<vtkv::File> file)
      : m_size_class(size_class),
        m_growth_bytes(growth_bytes(size_class, chunk_bytes)),
        m_slots(size_class, m_growth_bytes / slot_bytes(size_class)),
        m_split(size_class),
        m_file(std::move(file)) {}
  // Learns the file's size, `bytes_max` at most. `primed_slots`: from the header.
  vtkv::Status open(uint64_t primed_slots, uint64_t bytes_max);

  vtkv::File* file() const { return m_file.get(); }
  unsigned size_class() const { return m_size_class; }
  uint64_t growth_bytes() const { return m_growth_bytes; }

  // Of whole slots and fragments: what take() and its like may hand out. Once it fell, it is so for every thread.
  uint64_t free_bytes() const { return m_free_bytes.load(std::memory_order_acquire); }
  // What is primed comes first; with `only_primed` nothing else does. False when nothing is available; does no I/O.
  bool take(bool only_primed, AllocatedSlot* slot);
  // A fragment of a split slot, for slot->bytes; the smallest that holds them is 2^size_class blocks.
  bool take_fragment(unsigned size_class, bool only_primed, AllocatedSlot* slot);
  // The same, of a free slot that is split for it.
  bool break_up(unsigned size_class, AllocatedSlot* slot);
  // Free fragments of 2^size_class blocks, or those that are primed; their bytes.
  uint64_t fragment_bytes(unsigned size_class, bool only_primed) const;
  void put_back(const AllocatedSlot& slot);
  // See ContainerSet.
  vtkv::Status claim(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed);
  bool next_owned(uint64_t from, std::vector<SlotBlocks>* owned, bool* split) const;
  // The blocks become owned. REQUIRES: they are reserved.
  void apply_allocated(const SlotBlocks& blocks);
  // See ContainerSet.
  bool begin_free(const SlotBlocks& blocks);
  void end_free(const SlotBlocks& blocks);
  // Returns how much more waits, in units of set_reuse_horizon()'s.
  uint64_t apply_freed(vtkv::SequenceNumber sequence, const SlotBlocks& blocks);
  // How much ends to wait.
  uint64_t set_reuse_horizon(vtkv::SequenceNumber horizon);
  void set_primed(uint64_t slot);
  bool is_owned(const SlotBlocks& blocks) const;
  bool is_primed(uint64_t slot) const;

  vtkv::Status load(const AllocationPage& page);
  vtkv::Status load(const SplitSlotRecord& record);  // after the pages
  vtkv::Status replay(const SlotBlocks& blocks, bool owned);
  // Asks the host which blocks have no space, or none that was written; none of these is primed, whatever the pages
  // say.
  vtkv::Status finish_recovery();
  // Gives space again to what is owned and has none: after a crash a write may be there and the growth before it not,
  // and a copy may leave zeros out. At most *room_bytes, from which it takes what it gave. What gets none becomes a
  // hole when it is free.
  void fill_owned(uint64_t* room_bytes);
  // Before finish_recovery(), or of a slot that was taken: once nobody has it, nobody gets it.
  void quarantine(uint64_t slot);
  void collect_pages(vtkv::SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries);

  // Space for a chunk's bytes of holes, or for less when there are no more; else one chunk more: the first one
  // without host space, or new ones at the end, chunks_most of them: it is one call of the host, for which all direct
  // writes to the file have to end. But first one whose punch failed. With `only_when_empty`, whole slots are wanted:
  // what gives none is left, and nothing is done when another thread made some available meanwhile.
  vtkv::Status grow(bool only_when_empty, uint64_t chunks_most = 1);
  // Gives back what is withheld and no punch was tried on, one chunk or fragment; false when there is none.
  // `only_whole`: of whole slots.
  bool cancel_punch(bool only_whole = false);
  // Writes zeros to at most `bytes` of unprimed slots; *bytes_done 0: there are none. What was written counts once
  // sync_primed() returned. Code::busy: some of them cannot be written and went into the quarantine; try again.
  vtkv::Status prime(uint64_t bytes, Quarantine& quarantine, uint64_t* bytes_done);
  vtkv::Status sync_primed();
  uint64_t priming_bytes() const;
  // Withholds a wholly free chunk, the last one first; false when there is none. `durable`: as in punch().
  bool withhold_one(vtkv::SequenceNumber durable);
  // Withholds a free fragment of 2^size_class blocks, of a chunk or of a slot that is split; *withheld: its bytes, 0
  // when none was found. True: there is more to look at, for the next call. With another size it begins anew.
  bool withhold_fragment(unsigned size_class, vtkv::SequenceNumber durable, uint64_t* withheld);
  // The host can tell where it has no space: only then a later open knows of holes.
  bool knows_holes() const { return m_knows_holes; }
  // Punches what is durably unprimed, at most `limit` chunks and as many of their fragments as take about as long.
  struct Punched {
    uint64_t bytes = 0;  // given back to the host
    uint64_t fragments_bytes = 0;  // of them
  };
  vtkv::Status punch(vtkv::SequenceNumber durable, uint64_t limit, Punched* punched);

  struct Counts {
    // Slots; one that is split and has an owner counts as owned.
    uint64_t slots = 0, owned = 0, available = 0, primed_available = 0, waiting = 0;
    uint64_t whole_free_chunks = 0, withheld_chunks = 0;
    uint64_t split = 0, split_with_owner = 0;  // slots
    uint64_t split_owned_blocks = 0, split_free_blocks = 0;
    // Fragments: of whole slots, and of split ones. Such slots count as such that are neither available nor waiting.
    uint64_t withheld_slots = 0, hole_slots = 0;
    uint64_t split_hole_blocks = 0;
    uint64_t withheld_fragments = 0, withheld_fragments_bytes = 0, hole_bytes = 0;
    uint64_t punches = 0, failed_punches = 0;  // that what is withheld waits for; tried in vain among them
    uint64_t failed_punch_bytes = 0;
    bool used = false;  // a slot was taken since open, or is owned
  };
  Counts counts() const;
  // See ContainerSet::free_pieces().
  void add_free_pieces(FreePieces* pieces) const;

 private:
  // Of what could not be primed. Code::busy: what the disk refuses is quarantined; otherwise nothing is, but for the
  // last that the list had room for.
  vtkv::Status quarantine_bad(uint64_t first, uint64_t count, const vtkv::Status& failed, Quarantine& quarantine)
      EXCLUDES(m_lock);
  // Blocks of the container: a whole chunk, or a fragment of one, which is a run of whole slots or lies in a split one.
  struct Range {
    uint64_t first = 0, count = 0;
    bool is_chunk = false;

    uint64_t end() const { return first + count; }
    uint64_t offset() const { return first * kBlockBytes; }
    uint64_t bytes() const { return count * kBlockBytes; }
  };
  // On its way to being punched.
  struct Punch {
    Range range;
    bool needs_checkpoint = false;  // a checkpoint may call some of its slots primed
    bool in_page = false;  // their cleared bits were collected,
    vtkv::SequenceNumber collected_at = 0;  // then
    bool tried = false;  // it may have holes already
  };

  // Holds m_lock while something becomes free or ceases to be.
  class SCOPED_CAPABILITY FreeChange {
   public:
    explicit FreeChange(Container& container) ACQUIRE(container.m_lock)
        : m_container(container), m_guard(container.m_lock) {}
    ~FreeChange() RELEASE() { m_container.note_free(); }
    FreeChange(const FreeChange&) = delete;
    FreeChange& operator=(const FreeChange&) = delete;

   private:
    Container& m_container;
    vtkv::MutexLock m_guard;
  };

  // What of it needs the lock. Of split slots only what they are: to encode them takes longer.
  SplitSlots::Changed collect_changed(vtkv::SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* pages)
      EXCLUDES(m_lock);

  Range chunk_range(uint64_t chunk) const;
  // Fails when it fills none.
  vtkv::Status fill(const std::vector<Range>& holes) REQUIRES(m_growth_lock) EXCLUDES(m_lock);

  // Freed, not yet free.
  struct Waiting {
    vtkv::SequenceNumber sequence = 0;  // of the transaction that freed it
    uint64_t slot = 0;
    uint32_t first = 0, count = 0;  // blocks; count 0: the whole slot, which is not split
  };

  std::vector<Range> holes_to_fill(bool only_whole) const REQUIRES(m_lock);
  std::vector<Punch>::iterator find_punch(const Range& range) REQUIRES(m_lock);
  std::vector<Range> due_punches(vtkv::SequenceNumber durable, uint64_t limit) EXCLUDES(m_lock);
  // What is withheld has no space any more, and no punch of it waits.
  void dropped(const Range& range) REQUIRES(m_lock);
  void withhold(const Range& range, bool was_primed, vtkv::SequenceNumber durable) REQUIRES(m_lock);
  void withhold_run(uint64_t slots, vtkv::SequenceNumber durable, uint64_t* withheld) REQUIRES(m_lock);
  bool clear_primed(uint64_t slot) REQUIRES(m_lock);
  // The blocks of a fragment become free again, unprimed.
  void give_back(const Range& range) REQUIRES(m_lock);
  bool lies_in_split(const Range& range) const REQUIRES(m_lock) {
    return m_split.contains(range.first / slot_blocks(m_size_class));
  }
  bool overlaps(const Range& range, uint64_t slot) const;
  std::vector<Range> holes_of(uint64_t slot) const REQUIRES(m_lock);
  // What the host says has no space, of what is free, is a hole; of what is owned it goes to m_owned_holes.
  void make_hole(uint64_t first, uint64_t end) REQUIRES(m_lock);
  // What the host says was never written is not primed.
  void make_unprimed(uint64_t first, uint64_t end) REQUIRES(m_lock);
  std::vector<bool> chunks_with_space(const std::vector<vtkv::FileRange>& holes) const REQUIRES(m_lock);
  void add_hole(uint64_t first, uint64_t count) REQUIRES(m_lock);
  // What is owned and has no space, neighbours in one.
  std::vector<Range> owned_holes() const REQUIRES(m_lock);
  // Of these blocks, those that are owned and known to have no space: first block, count. They are forgotten.
  std::vector<Range> take_owned_holes(uint64_t first, uint64_t count) REQUIRES(m_lock);
  // Changes the owner as of the last applied sequence. *splits: the slot was not split before.
  vtkv::Status set_owned(const SlotBlocks& blocks, bool owned, bool* splits) REQUIRES(m_lock);
  vtkv::Status set_blocks_owned(uint64_t slot, const SlotBlocks& blocks, bool owned) REQUIRES(m_lock);
  bool owns(const SlotBlocks& blocks) const REQUIRES(m_lock);
  void wait(vtkv::SequenceNumber sequence, uint64_t slot, uint32_t first, uint32_t count) REQUIRES(m_lock);
  void make_free(const Waiting& freed) REQUIRES(m_lock);
  bool take_fragment_locked(unsigned size_class, SplitSlots::Wanted wanted, AllocatedSlot* slot) REQUIRES(m_lock);
  // How many of the first blocks of a slot that is about to split are primed.
  uint32_t primed_blocks(uint64_t slot, uint32_t written) const REQUIRES(m_lock);
  void claim_blocks(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed) REQUIRES(m_lock);
  void note_fragments() REQUIRES(m_lock);
  void note_free() REQUIRES(m_lock);

  const unsigned m_size_class;
  const uint64_t m_growth_bytes;

  vtkv::Mutex m_growth_lock ACQUIRED_BEFORE(m_lock);
  mutable vtkv::Mutex m_lock;
  SlotAllocator m_slots GUARDED_BY(m_lock);
  SplitSlots m_split GUARDED_BY(m_lock);
  // Written under m_lock.
  std::atomic<uint64_t> m_free_bytes{0};
  std::atomic<uint32_t> m_fragment_classes{0};  // bit k: there may be a free fragment of 2^k blocks,
  std::atomic<uint32_t> m_primed_fragment_classes{0};  // one that is primed
  std::map<uint64_t, uint64_t> m_being_freed GUARDED_BY(m_lock);  // runs of blocks of the container: first, end
  std::deque<Waiting> m_waiting GUARDED_BY(m_lock);  // ascending sequence
  uint64_t m_waiting_slots GUARDED_BY(m_lock) = 0;  // of them, whole ones
  std::vector<Punch> m_punches GUARDED_BY(m_lock);
  std::map<uint64_t, uint64_t> m_holes GUARDED_BY(m_lock);  // fragments that were punched: first block, count
  uint64_t m_hole_blocks GUARDED_BY(m_lock) = 0;  // of them,
  uint64_t m_split_hole_blocks GUARDED_BY(m_lock) = 0;  // of which in split slots
  // Whole slots whose last owner has written them since open; m_written_unknown: owners may come that do not.
  SlotBitmap m_written GUARDED_BY(m_lock);
  bool m_written_unknown GUARDED_BY(m_lock) = false;
  // Without space: first block, count; each in one slot.
  std::map<uint64_t, uint64_t> m_owned_holes GUARDED_BY(m_lock);
  unsigned m_fragment_class GUARDED_BY(m_lock) = 0;  // of withhold_fragment(),
  uint64_t m_fragment_cursor GUARDED_BY(m_lock) = 0;  // which goes on at this slot
  // Runs of zeros not synced yet: first slot, count.
  std::vector<std::pair<uint64_t, uint64_t>> m_priming GUARDED_BY(m_lock);
  uint64_t m_priming_slots GUARDED_BY(m_lock) = 0;
  size_t m_bad_in_a_row = 0;  // slots that priming could not write; of the one thread that primes
  // Of collect_pages(): the first since clear_primed(), and the last.
  std::optional<vtkv::SequenceNumber> m_first_collected GUARDED_BY(m_lock), m_collected GUARDED_BY(m_lock);
  bool m_used GUARDED_BY(m_lock) = false;

  std::atomic<bool> m_knows_holes{false};
  const std::unique_ptr<vtkv::File> m_file;
};

}  // namespace swimstore
