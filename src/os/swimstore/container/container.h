// One container: the sparse file of one size class, the slots in it, whole and split, and what waits.
//
// Both allocators, of slots and of pieces, are guarded by m_lock. Growth of the file is serialized by m_growth_lock,
// which is taken first and never while m_lock is held; so the I/O of growing, priming and punching runs outside m_lock.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "swimstore/container/container_set.h"
#include "swimstore/container/quarantine.h"
#include "swimstore/container/slot_allocator.h"
#include "swimstore/container/split_slots.h"
#include "vtkv/env/env.h"

namespace swimstore {

class Container {
 public:
  // "4K" … "4M": the name of the class's file.
  static std::string file_name(unsigned size_class);
  // Bytes by which the file of a class grows.
  static uint64_t growth_bytes(unsigned size_class, uint64_t stretch_bytes);

  Container(unsigned size_class, uint64_t stretch_bytes, std::unique_ptr<vtkv::File> file)
      : m_size_class(size_class),
        m_growth_bytes(growth_bytes(size_class, stretch_bytes)),
        m_slots(size_class, m_growth_bytes / slot_bytes(size_class)),
        m_split(size_class),
        m_file(std::move(file)) {}
  // Learns the file's size, `bytes_max` at most. `primed_slots`: from the header.
  vtkv::Status open(uint64_t primed_slots, uint64_t bytes_max);

  vtkv::File* file() const { return m_file.get(); }
  unsigned size_class() const { return m_size_class; }
  uint64_t growth_bytes() const { return m_growth_bytes; }

  // Of whole slots and pieces: what take() and its like may hand out. Once it fell, it is so for every thread.
  uint64_t free_bytes() const { return m_free_bytes.load(std::memory_order_acquire); }
  // False when nothing is available; does no I/O.
  bool take(AllocatedSlot* slot);
  // A piece of a split slot, for slot->bytes; the smallest that holds them is 2^size_class blocks.
  bool take_piece(unsigned size_class, AllocatedSlot* slot);
  // The same, of a free slot that is split for it.
  bool break_up(unsigned size_class, AllocatedSlot* slot);
  // Free pieces of 2^size_class blocks; their bytes.
  uint64_t piece_bytes(unsigned size_class) const;
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
  uint64_t apply_freed(vtkv::SequenceNumber sequence, const SlotBlocks& blocks, bool reuse_at_once);
  // How much ends to wait.
  uint64_t set_reuse_horizon(vtkv::SequenceNumber horizon);
  void set_primed(uint64_t slot);
  bool is_owned(const SlotBlocks& blocks) const;
  bool is_primed(uint64_t slot) const;

  vtkv::Status load(const AllocationPage& page);
  vtkv::Status load(const SplitSlotRecord& record);  // after the pages
  vtkv::Status replay(const SlotBlocks& blocks, bool owned);
  // Asks the host which free blocks have no space; none of these is primed, whatever the pages say, which would be a
  // broken rule. `trust_pages`: unless it does (a test's mutation, that breaks it).
  vtkv::Status finish_recovery(bool trust_pages);
  // Gives space again to what is owned and has none: after a crash a write may be there and the growth before it not, and
  // a copy may leave zeros out. At most *room_bytes, from which it takes what it gave. What gets none becomes a hole when
  // it is free.
  void fill_owned(uint64_t* room_bytes);
  // Before finish_recovery(), or of a slot that was taken: once nobody has it, nobody gets it.
  void quarantine(uint64_t slot);
  void collect_pages(vtkv::SequenceNumber as_of, std::vector<vtkv::CheckpointEntry>* entries);

  // Space for a stretch's bytes of holes, or for less when there are no more; else one stretch more: the first one
  // without host space, or a new one at the end. But first one whose punch failed. With `only_when_empty`, nothing is
  // done when another thread made slots available meanwhile.
  vtkv::Status grow(bool only_when_empty);
  // Gives back what is withheld and no punch was tried on, one stretch or piece; false when there is none.
  // `also_tried`: any (a test's mutation).
  bool cancel_punch(bool also_tried);
  // Writes zeros to at most `bytes` of unprimed slots; *bytes_done 0: there are none. What was written counts once
  // sync_primed() returned. Code::busy: some of them cannot be written and went into the quarantine; try again.
  vtkv::Status prime(uint64_t bytes, Quarantine& quarantine, uint64_t* bytes_done);
  vtkv::Status sync_primed();
  uint64_t priming_bytes() const;
  // Withholds a wholly free stretch, the last one first; false when there is none. `durable`: as in punch().
  // `punch_at_once`: without waiting for a checkpoint (a test's mutation).
  bool withhold_one(vtkv::SequenceNumber durable, bool punch_at_once);
  // Withholds a free piece of 2^size_class blocks, of a stretch or of a slot that is split; *withheld: its bytes, 0 when
  // none was found. True: there is more to look at, for the next call. With another size it begins anew.
  bool withhold_piece(unsigned size_class, vtkv::SequenceNumber durable, bool punch_at_once, uint64_t* withheld);
  // The host can tell where it has no space: only then a later open knows of holes.
  bool knows_holes() const { return m_knows_holes; }
  // Punches what is durably unprimed, at most `limit` stretches and as many of their pieces as take about as long.
  struct Punched {
    uint64_t bytes = 0;  // given back to the host
    uint64_t pieces_bytes = 0;  // of them
  };
  vtkv::Status punch(vtkv::SequenceNumber durable, uint64_t limit, Punched* punched);

  struct Counts {
    // Slots; one that is split and has an owner counts as owned.
    uint64_t slots = 0, owned = 0, available = 0, primed_available = 0, waiting = 0;
    uint64_t whole_free_stretches = 0, withheld_stretches = 0;
    uint64_t split = 0, split_with_owner = 0;              // slots
    uint64_t split_owned_blocks = 0, split_free_blocks = 0;
    // Pieces: of whole slots, and of split ones. Such slots count as such that are neither available nor waiting.
    uint64_t withheld_slots = 0, hole_slots = 0;
    uint64_t split_hole_blocks = 0;
    uint64_t withheld_pieces = 0, withheld_pieces_bytes = 0, hole_bytes = 0;
    bool used = false;  // a slot was taken since open, or is owned
  };
  Counts counts() const;

 private:
  // Of what could not be primed. Code::busy: what the disk refuses is quarantined; otherwise nothing is, but for the last
  // that the list had room for.
  vtkv::Status quarantine_bad(uint64_t first, uint64_t count, const vtkv::Status& failed, Quarantine& quarantine);
  // Blocks of the container: a whole stretch, or a piece of one, which is a run of whole slots or lies in a split one.
  struct Piece {
    uint64_t first = 0, count = 0;
    bool is_stretch = false;

    uint64_t end() const { return first + count; }
    uint64_t offset() const { return first * kBlockBytes; }
    uint64_t bytes() const { return count * kBlockBytes; }
  };
  // On its way to being punched.
  struct Punch {
    Piece piece;
    bool needs_checkpoint = false;          // a checkpoint may call some of its slots primed
    bool in_page = false;                   // their cleared bits were collected,
    vtkv::SequenceNumber collected_at = 0;  // then
    bool tried = false;                     // it may have holes already
  };

  // Holds m_lock while something becomes free or ceases to be.
  class FreeChange {
   public:
    explicit FreeChange(Container& container) : m_container(container), m_guard(container.m_lock) {}
    ~FreeChange() { m_container.note_free(); }
    FreeChange(const FreeChange&) = delete;
    FreeChange& operator=(const FreeChange&) = delete;

   private:
    Container& m_container;
    std::lock_guard<std::mutex> m_guard;
  };

  Piece stretch_piece(uint64_t stretch) const;
  // Under m_growth_lock alone. Fails when it fills none.
  vtkv::Status fill(const std::vector<Piece>& holes);

  // Freed, not yet free.
  struct Waiting {
    vtkv::SequenceNumber sequence = 0;  // of the transaction that freed it
    uint64_t slot = 0;
    uint32_t first = 0, count = 0;  // blocks; count 0: the whole slot, which is not split
  };

  // The caller holds m_lock, for all of these.
  std::vector<Piece> holes_to_fill() const;
  std::vector<Punch>::iterator find_punch(const Piece& piece);
  std::vector<Piece> due_punches(vtkv::SequenceNumber durable, uint64_t limit);
  // What is withheld has no space any more, and no punch of it waits.
  void dropped(const Piece& piece);
  void withhold(const Piece& piece, bool was_primed, vtkv::SequenceNumber durable, bool punch_at_once);
  void withhold_run(uint64_t slots, vtkv::SequenceNumber durable, bool punch_at_once, uint64_t* withheld);
  bool clear_primed(uint64_t slot);
  // The blocks of a piece become free again, unprimed.
  void give_back(const Piece& piece);
  bool lies_in_split(const Piece& piece) const { return m_split.contains(piece.first / slot_blocks(m_size_class)); }
  bool overlaps(const Piece& piece, uint64_t slot) const;
  std::vector<Piece> holes_of(uint64_t slot) const;
  // What the host says has no space, of what is free, is a hole; of what is owned it goes to m_owned_holes.
  void make_hole(uint64_t first, uint64_t end, bool trust_pages);
  void add_hole(uint64_t first, uint64_t count);
  // Of these blocks, which belong to one slot, those known to have no space: first block, count. They are forgotten.
  std::vector<Piece> take_owned_holes(uint64_t first, uint64_t count);
  // Changes the owner as of the last applied sequence. *splits: the slot was not split before.
  vtkv::Status set_owned(const SlotBlocks& blocks, bool owned, bool* splits);
  vtkv::Status set_pieces_owned(uint64_t slot, const SlotBlocks& blocks, bool owned);
  bool owns(const SlotBlocks& blocks) const;
  void wait(vtkv::SequenceNumber sequence, uint64_t slot, uint32_t first, uint32_t count, bool reuse_at_once);
  void make_free(const Waiting& freed);
  bool take_piece_locked(unsigned size_class, AllocatedSlot* slot);
  void claim_pieces(const SlotBlocks& blocks, std::vector<SlotBlocks>* claimed);
  void note_pieces();
  void note_free();

  const unsigned m_size_class;
  const uint64_t m_growth_bytes;

  std::mutex m_growth_lock;
  mutable std::mutex m_lock;
  SlotAllocator m_slots;
  SplitSlots m_split;
  std::atomic<uint64_t> m_free_bytes{0};
  std::atomic<uint32_t> m_piece_classes{0};  // bit k: there may be a free piece of 2^k blocks
  std::map<uint64_t, uint64_t> m_being_freed;  // runs of blocks of the container: first, end
  std::deque<Waiting> m_waiting;  // ascending sequence
  uint64_t m_waiting_slots = 0;   // of them, whole ones
  std::vector<Punch> m_punches;
  std::map<uint64_t, uint64_t> m_holes;  // pieces that were punched: first block, count
  uint64_t m_hole_blocks = 0, m_split_hole_blocks = 0;  // of them, of which in split slots
  std::map<uint64_t, uint64_t> m_owned_holes;  // without space: first block, count; each in one slot
  unsigned m_piece_class = 0;            // of withhold_piece(),
  uint64_t m_piece_cursor = 0;           // which goes on at this slot
  std::vector<std::pair<uint64_t, uint64_t>> m_priming;  // runs of zeros not synced yet: first slot, count
  uint64_t m_priming_slots = 0;
  size_t m_bad_in_a_row = 0;  // slots that priming could not write; by the one thread that primes
  std::optional<vtkv::SequenceNumber> m_first_collected, m_collected;  // of collect_pages(): the first since
                                                         // clear_primed(), and the last
  bool m_used = false;

  std::atomic<bool> m_knows_holes{false};
  const std::unique_ptr<vtkv::File> m_file;
};

using ContainerArray = std::array<std::unique_ptr<Container>, kSizeClasses>;

}  // namespace swimstore
