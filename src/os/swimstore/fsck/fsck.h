// SPDX-License-Identifier: LGPL-2.1-or-later
// Checks that everything the store keeps agrees with everything else.
//
//   collections  every record can be read; no object belongs to two, nor to one and to nobody
//   objects      every key and record can be read; each lies in a collection, or in a range that is nobody's while a
//                collection moves between cubes; object ids are unique
//   extents      lie within the object, in the blocks that were written there; each belongs to an object
//   omap         every header and key belongs to an object that says it has omap; every row of an omap in parts can be
//                read, and belongs to an object of cube 0, or to one whose removal left a floor there
//   slots        every block without the shared flag has exactly one owner; the reference counts in the tree equal
//                the references found; a block is owned if and only if somebody refers to it
//   usage        the pools' sums equal what was counted
//   deep         every block of data is read and its checksum verified; so is every block of log and tree
//
// An entry in a version that this program does not know was written by a newer one. It is no damage; it counts as one
// that cannot be read, and nobody repairs it.
//
// What cannot be read may own what nobody else claims. So as long as an object's record is unreadable or undecodable,
// nothing is called orphaned; as long as such a record, extents, or any part of the tree is, nothing is called leaked
// or miscounted; and while entries are quarantined (key_codec.h, 'L') that may own slots, no slot is called leaked and
// no reference count too high.
//
// Online, it looks at a snapshot of the tree while transactions go on. Who owns a slot and the pools' sums
// are not part of the snapshot and are left to the check of an unmounted store. Data is read as a scrub reads it.
// In several passes, each keeps in mind, and judges, its share of the objects (by id) and of the slots; online in a
// snapshot of its own: all that is said of one slot, or of what belongs to one object, is of one moment. At rest they
// find what one pass finds, but for what follows from two objects with one id; a finding about a slot may know the
// object of another pass by its id only.
//
// Reads only. Findings go to the log as well, one sentence each. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "swimstore/fsck/finding.h"
#include "swimstore/fsck/reference_audit.h"
#include "swimstore/object/block_reader.h"
#include "swimstore/object/collection_list.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

struct FsckOptions {
  bool deep = false;
  bool online = false;  // false: nothing is queued while it runs
  // The store has features that this program does not know: an entry in a version that it does not know is not damaged.
  bool may_hold_newer = false;
  std::optional<uint32_t> cube{};  // only this one of the store
  unsigned passes = 1;  // over the tree; the memory that it takes is divided by them
  // So many of each class are counted, and then the next thousand are kept instead of the first.
  std::array<uint64_t, kFindingClasses> passed_over{};
};

inline constexpr uint64_t kCheckedObjectBytes = 200;  // of memory, about, with a key of usual length

inline constexpr uint64_t kReadBlocks = 64;  // what a disk reads in about the time that it takes to get there
inline constexpr uint64_t kFindingsOfClassMax = 1000;  // kept and printed; all are counted

class Fsck {
 public:
  struct Object {
    std::string key;
    uint64_t size = 0;
    uint8_t flags = 0;
    int64_t pool = 0;
  };
  using Objects = std::unordered_map<uint64_t, Object>;  // by nid

  // Of one cube.
  Fsck(StoreContext& store, StoreCube& cube, FsckOptions options);
  ~Fsck();

  // Does about so much: a unit is an entry of the tree, or a block of data; a read counts as kReadBlocks at least.
  // False: the check is over.
  bool step(uint64_t work);
  uint64_t work_done() const { return m_work_done; }  // in the same unit
  // What it keeps of this pass's objects and slots, about. Beside that, at rest and in several passes, some 32 for each
  // object that is larger than a shard.
  uint64_t memory_bytes() const { return m_object_bytes + m_references.bytes(); }

  CheckResult result() const;
  CheckResult counts() const;  // without the findings and what is quarantined
  const char* phase() const;  // what is being looked at: "objects"
  unsigned pass() const { return m_pass; }
  bool reads_data() const { return m_phase == Phase::data; }
  uint64_t objects_read() const { return m_objects_read; }  // data of that many, in a deep check
  const std::vector<Finding>& findings() const { return m_findings; }
  size_t errors() const { return m_errors; }  // findings, those not kept included

  // When it is over, at rest: of the slots that repair is to count anew, what was found.
  const ReferenceAudit::Entries& damaged_references() const { return m_damaged_references; }
  const std::map<int64_t, PoolUsage>& usage() const { return m_usage; }  // counted
  // Quarantined entries may own slots.
  bool has_quarantined_owners() const { return m_quarantined_owners > 0; }
  // Nothing that could not be read can be somebody's owner.
  bool knows_all_owners() const { return m_unknown_owners == 0; }

 private:
  enum class Phase {
    collections,
    unowned,
    witnesses,
    objects,
    extents,
    omap_headers,
    omap,
    omap_rows,
    quarantined,
    slot_counts,
    slots,
    usage,
    data,
    database,
    done
  };
  struct TreePhase;
  static const TreePhase* tree_phase(Phase phase);

  void found(Finding finding);
  void found(FindingClass kind, std::string text) { found({.kind = kind, .text = std::move(text)}); }
  // Of an object's record or extents.
  void found_undecodable(const ghobject_t& oid, Finding finding);
  void found_newer(const std::string& what, std::string object = {});
  // What cannot be read is, or may be, an object's record; it may own anything.
  void add_unknown_object();
  void found_unreadable(std::string text);
  // References are missing. A shard of another pass that cannot be decoded may have them: then it is judged at the end.
  void found_missing_reference(Finding finding);
  void judge_withheld();
  void step_tree(const TreePhase& phase, uint64_t work);
  void end_tree(const TreePhase& phase);
  void next_phase();
  void next_pass();
  // Is this object (by its id), or this slot with all of its fragments, judged in this pass?
  bool is_mine(uint64_t number) const;
  bool is_mine(SlotAddress slot) const { return is_mine(slot.whole().packed()); }
  bool is_last_pass() const { return m_pass + 1 == m_passes; }
  // Does a pass know the pool of each extent shard, and which belong to no object? Online it would cost too much
  // memory.
  bool knows_pools() const { return m_passes > 1 && !m_options.online; }
  void take_snapshots();
  void release_snapshots();

  void visit_collection(std::string_view key, std::string_view value);
  void visit_unowned(std::string_view key, std::string_view value);
  void visit_witness(std::string_view key, std::string_view value);
  void sort_ranges();
  void visit_object(std::string_view key, std::string_view value);
  void visit_extents(std::string_view key, std::string_view value);
  void visit_foreign_extents(uint64_t nid, uint32_t number, const std::string& key, std::string_view value);
  // `object` has no key when it is another pass's and not at hand.
  void check_shard(const Object& object, uint64_t nid, uint32_t number, const std::string& key,
                   const ExtentShard& shard);
  // Counts blocks of the shard that hold data, bit i is block i; they must not lie past the object's end.
  void count_stored(const Object& object, uint32_t number, uint16_t blocks);
  // `block`: of the shard, where the data begins that the extent is a part of.
  void check_slot(const Object& object, uint64_t nid, uint32_t number, const std::string& key, uint32_t block,
                  const Extent& extent);
  void visit_omap_header(std::string_view key, std::string_view value);
  void visit_omap(std::string_view key, std::string_view value);
  void check_omap_owner(const char* what, std::string_view key, uint64_t nid);
  // fsck_parts.cc
  void visit_omap_row(std::string_view key, std::string_view value);
  void load_row_owners();

  void visit_quarantined(std::string_view key, std::string_view value);
  void visit_slot_count(std::string_view key, std::string_view value);
  void check_slots();
  void check_owned_slots();
  void check_owned(const SlotBlocks& owned, bool split);
  void check_usage();
  // Of what is counted of the slots only that stays which repair needs.
  void end_references();
  void check_data(uint64_t work);
  // One slice of the object's data; false when it was the last.
  bool read_slice(const Object& object, uint64_t offset);
  bool read_slice_of(const ghobject_t& oid, const Object& object, uint64_t offset);
  void check_database();

  bool lies_in_a_collection(const ghobject_t& oid) const;

  StoreContext& m_store;
  StoreCube& m_cube;
  const FsckOptions m_options;
  const vtkv::Snapshot* m_snapshot = nullptr;
  const vtkv::Snapshot* m_owner_snapshot = nullptr;  // of cube 0, of the same moment; with another cube
  const uint64_t m_began_us;
  const unsigned m_passes;

  unsigned m_pass = 0;
  uint64_t m_objects_before = 0, m_slots_before = 0;  // of earlier passes
  Phase m_phase = Phase::collections;
  std::unique_ptr<vtkv::Iterator> m_iterator;  // of a phase that goes through the tree
  Objects::const_iterator m_next_object;  // of the deep check
  uint64_t m_next_offset = 0;
  uint64_t m_objects_read = 0;
  uint64_t m_work_done = 0;

  std::vector<Finding> m_findings;
  size_t m_errors = 0;
  std::array<uint64_t, kFindingClasses> m_errors_of_class{};
  uint64_t m_unclear = 0;
  uint64_t m_unknown_objects = 0;
  uint64_t m_unknown_owners = 0;  // of slots: these, and others
  // Extent shards that this pass met and cannot decode, of objects that another pass judges.
  uint64_t m_foreign_undecodable = 0;
  std::vector<Finding> m_withheld;
  bool m_newer_collections = false;
  std::unordered_set<uint64_t> m_newer_counts;  // slots, packed
  std::unordered_set<uint64_t> m_newer_extents;  // object ids
  uint64_t m_quarantined_entries = 0;
  uint64_t m_quarantined_owners = 0;  // of them, those that may own slots

  std::vector<ObjectRange> m_ranges;  // of all collections, and what is nobody's; ascending
  Objects m_objects;
  uint64_t m_object_bytes = 0;  // of memory
  uint64_t m_memory_bytes_max = 0;
  // Of all objects whose extents lie in entries of their own, by id; where knows_pools().
  boost::unordered_flat_map<uint64_t, int64_t> m_pools;
  uint64_t m_last_omap_nid = UINT64_MAX;
  uint64_t m_last_row_nid = UINT64_MAX;
  // Of cube 0, read when the first row is met: ids of objects whose omap is in parts, and of those with a floor.
  struct RowOwners {
    std::unordered_set<uint64_t> nids;
    bool all = true;  // none is among what cannot be read
  };
  std::unique_ptr<RowOwners> m_row_owners;
  ReferenceAudit m_references;  // of this pass
  ReferenceAudit::Entries m_damaged_references;
  std::map<int64_t, PoolUsage> m_usage;
};

// How sentences name an object, and bytes that are no key of one.
std::string describe_object_key(std::string_view key);
std::string to_hex(std::string_view bytes);

}  // namespace swimstore
