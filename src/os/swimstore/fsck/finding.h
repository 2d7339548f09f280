// SPDX-License-Identifier: LGPL-2.1-or-later
// What a check can find. The table of classes, what each means and how repair fixes it:
// doc/ceph-swimstore-tool.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/size_class.h"

namespace swimstore {

// In the order in which repair goes through them: what says who owns what comes before what follows from it.
enum class FindingClass : uint8_t {
  store_does_not_open,
  repair_unfinished,
  import_unfinished,
  metadata_unreadable,
  database_damaged,
  entry_newer,
  collection_undecodable,
  collections_overlap,
  object_undecodable,
  only_copy_undecodable,
  object_in_no_collection,
  object_id_twice,
  extents_undecodable,
  extents_orphaned,
  extents_past_end,
  omap_orphaned,
  omap_unannounced,
  slot_claimed_twice,
  slot_not_owned,
  slot_count_wrong,
  slot_leaked,
  usage_wrong,
  data_unreadable,
};
inline constexpr unsigned kFindingClasses = static_cast<unsigned>(FindingClass::data_unreadable) + 1;

struct Finding {
  FindingClass kind = FindingClass::metadata_unreadable;
  uint32_t cube = 0;
  std::string object{};              // its name; empty when none is concerned, or it has none
  std::optional<uint64_t> offset{};  // bytes, in the object
  std::string text{};                // one sentence that stands alone
  // What repair changes: an entry of the tree, or who owns blocks of a slot.
  std::string key{};
  SlotBlocks blocks{};
};

// What a check saw.
struct CheckResult {
  std::vector<Finding> findings;  // the first thousand of each class
  uint64_t errors = 0;            // all
  uint64_t objects = 0;
  uint64_t slots = 0;
  // Entries and slots without an owner, which may belong to what cannot be read or is quarantined.
  uint64_t unclear = 0;
  uint64_t quarantined_entries = 0;
  // Of the cube that took most: passes over the tree, and bytes of memory for objects and slots, about.
  unsigned passes = 0;
  uint64_t memory_bytes = 0;
  // Never handed out again, as writes to them failed. No error of the store's; the disk ages.
  std::vector<SlotAddress> quarantined_slots;

  CheckResult& operator+=(const CheckResult& other);  // of another cube
};

// As printed, and as documented: "slot_leaked".
std::string_view to_string(FindingClass kind);
// What repair does about it; empty when it leaves it as it is.
std::string_view repair_of(FindingClass kind);
inline bool is_repairable(FindingClass kind) { return !repair_of(kind).empty(); }

}  // namespace swimstore
