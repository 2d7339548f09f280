// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides which versions of a key a flush or a compaction keeps.
//
// The snapshots cut the sequence numbers into stripes: (0, s1], (s1, s2], …, (sn, ∞). No reader can tell
// two states apart that lie in one stripe, so of a key only its newest entry in each stripe matters, and
// none that a range tombstone of the same stripe hides. A tombstone (of a key or of a range) in the lowest
// stripe may go as well when nothing older, outside this compaction, can hold what it removes: in the lowest
// stripe everything older inside the compaction has just been dropped. The tombstone of a key in another stripe may
// go when, besides, the snapshot below that stripe sees no value of the key inside.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/range_tombstones.h"
#include "vtkv/span/block_range.h"

namespace vtkv {

class CompactionIterator {
 public:
  // What lies below the sources that are compacted.
  class Older {
   public:
    virtual ~Older() = default;
    virtual bool may_hold(std::string_view key) const = 0;
    virtual bool may_hold_any(std::string_view begin, std::string_view end) const = 0;
    // May the inputs themselves hold a value of the key that a reader at `snapshot` sees?
    virtual bool may_show(std::string_view key, SequenceNumber snapshot) const { return true; }
    virtual bool empty() const = 0;  // nothing lies below
  };

  // Where runs are only rearranged: every tombstone stays.
  class AnythingOlder final : public Older {
   public:
    bool may_hold(std::string_view) const override { return true; }
    bool may_hold_any(std::string_view, std::string_view) const override { return true; }
    bool empty() const override { return false; }
  };

  // What becomes of blocks that no other source shares keys with.
  enum class Fate {
    kept,     // no range tombstone touches them
    dropped,  // one hides every entry, for every snapshot
    mixed,
  };

  // All outlive it. `snapshots` ascending; `tombstones` of all sources; `observer` may be null.
  CompactionIterator(const std::vector<SequenceNumber>* snapshots, const RangeTombstones* tombstones,
                     const Older* older, EntryObserver* observer = nullptr)
      : m_snapshots(*snapshots), m_tombstones(*tombstones), m_older(*older), m_observer(observer) {}

  // Entries of all sources, in order; of equal key and sequence the one that counts first.
  bool keep(const Entry& entry);

  Fate fate_of(const BlockRange& blocks) const;
  // Are there range tombstones, so that blocks may be dropped unread?
  bool drops_unread() const { return !m_tombstones.empty(); }
  // Would reading the blocks, though no other source shares their keys, get rid of so much in them that it is
  // worth it? Below this compaction nothing: of any tombstone; else of a quarter.
  bool is_worth_reading(const BlockRange& blocks) const;
  // Do all entries that keep() saw have keys before `key`?
  bool has_passed_before(std::string_view key) const { return !m_any || m_key < key; }
  // Blocks were kept as they are, up to this key.
  void pass(std::string_view last_key);

  // What is left of the range tombstones.
  std::shared_ptr<RangeTombstones> tombstones_left() const;

 private:
  bool decide(const Entry& entry);
  size_t stripe_of(SequenceNumber sequence) const;
  SequenceNumber stripe_end(size_t stripe) const;

  const std::vector<SequenceNumber>& m_snapshots;
  const RangeTombstones& m_tombstones;
  const Older& m_older;
  EntryObserver* const m_observer;
  bool m_any = false;
  std::string m_key;     // of the last entry seen
  size_t m_stripe = 0;   // of the last entry seen
};

}  // namespace vtkv
