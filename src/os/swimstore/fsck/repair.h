// SPDX-License-Identifier: LGPL-2.1-or-later
// Repairs what a check found, one class of findings at a time; a new check tells what is left.
//
// Rules
//   * No last copy is destroyed. An entry that is in the way is quarantined: it keeps its key and value behind the
//     prefix 'L' (key_codec.h), where no object finds it, until forget_quarantined().
//   * What can only be told when all owners are known (counts, leaks, sums) waits until they are: an
//     unreadable part of the tree stops these repairs, and quarantined entries that may own slots keep every slot
//     owned.
//   * Data is not touched: what does not match its checksum stays, and reads of it fail, so that Ceph repairs it
//     from a replica.
//   * What no other OSD has a copy of is quarantined only when that is asked for.
//   * Each change is one transaction or several, each durable as a whole: a crash leaves a store that the next
//     repair continues with.
//
// REQUIRES: nothing else is queued; the containers do no maintenance. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "swimstore/fsck/fsck.h"

namespace swimstore {

struct RepairOptions {
  bool deep = false;         // the check that ends it
  bool only_copies = false;  // quarantines, too, what no other OSD has a copy of
  std::optional<uint32_t> cube{};  // only this one
};

struct Repaired {
  FindingClass kind;
  std::string text;  // one sentence: what was changed
};

class Repair {
 public:
  // What `fsck` of this cube, which is over, found.
  Repair(StoreContext& store, StoreCube& cube, const Fsck& fsck);
  ~Repair();

  // The class to be repaired next, of those that the check kept findings of; false: there is none left.
  bool next(FindingClass* kind) const;
  // Appends what was changed. Nothing appended: nothing could be done about the findings that were kept.
  vtkv::Status apply(FindingClass kind, std::vector<Repaired>* changes);

  // Puts quarantined entries back where they were, the newest of each key, where nothing else is now. *entries grows
  // by how many were put back, *left by how many stay in quarantine. The next repair counts again what they own.
  static vtkv::Status put_back(StoreContext& store, StoreCube& cube, uint64_t* entries, uint64_t* left);
  // Removes all quarantined entries for good. *entries grows by their number. What they owned is found leaked by the
  // next check.
  static vtkv::Status forget_quarantined(StoreContext& store, StoreCube& cube, uint64_t* entries);

 private:
  class Transaction;

  void repair_one(const Finding& finding);
  void move_to_quarantine(std::string_view key, std::string_view value);
  void quarantine(const std::string& key);
  void quarantine_omap(const Finding& finding);
  void announce_omap(const Finding& finding);
  // By packed address of whole slots: the references to each block.
  using SharedSlots = std::unordered_map<uint64_t, SlotReferences::Counts>;
  void share_conflicts();
  // Those with conflicting extents, nothing counted yet; removes what is counted of them and their fragments.
  SharedSlots conflicting_slots();
  // Makes the extents of one entry that lie in such slots shared, and counts them; false when it has none.
  static bool share(ExtentShard* shard, SharedSlots* slots);
  // However many are in quarantine, they free nothing: one reference keeps a block.
  uint32_t quarantined_references() const { return m_fsck.has_quarantined_owners() ? 1 : 0; }
  void put_count(SlotAddress slot, const ReferenceAudit::Entry& entry);
  void put_counts(SlotAddress slot, SlotReferences::Counts counts);
  void claim(const SlotBlocks& blocks);
  void recount_usage();

  bool get(const std::string& key, std::string* value);
  void changed(std::string text);
  // Makes what was collected durable once it is large; `all`: whatever its size.
  void flush(bool all);

  StoreContext& m_store;
  StoreCube& m_cube;
  const Fsck& m_fsck;
  FindingClass m_kind = FindingClass::usage_wrong;
  std::unique_ptr<Transaction> m_transaction;
  std::vector<Repaired>* m_changes = nullptr;
  vtkv::Status m_status;
};

}  // namespace swimstore
