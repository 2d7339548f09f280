// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/finding.h"

#include <algorithm>
#include <array>

namespace swimstore {

namespace {

struct Description {
  std::string_view name, repair;
};

constexpr std::string_view kQuarantined = "quarantined";

constexpr std::array<Description, kFindingClasses> kDescriptions = {{
    {"store_does_not_open", ""},
    {"repair_unfinished", "goes on where it was cut short"},
    {"import_unfinished", ""},
    {"metadata_unreadable", ""},
    {"database_damaged", ""},
    {"entry_newer", ""},
    {"collection_undecodable", ""},
    {"collections_overlap", ""},
    {"object_undecodable", kQuarantined},
    {"only_copy_undecodable", "with --only-copies: quarantined"},
    {"object_in_no_collection", ""},
    {"object_id_twice", ""},
    {"extents_undecodable", "object quarantined"},
    {"extents_orphaned", kQuarantined},
    {"extents_past_end", ""},
    {"omap_orphaned", kQuarantined},
    {"omap_unannounced", "the object says that it has omap"},
    {"slot_claimed_twice", "shared by all that claim it"},
    {"slot_not_owned", "marked as owned"},
    {"slot_count_wrong", "counted anew"},
    {"slot_leaked", "freed"},
    {"usage_wrong", "counted anew"},
    {"data_unreadable", ""},
}};

}  // namespace

std::string_view to_string(FindingClass kind) { return kDescriptions[static_cast<unsigned>(kind)].name; }
std::string_view repair_of(FindingClass kind) { return kDescriptions[static_cast<unsigned>(kind)].repair; }

CheckResult& CheckResult::operator+=(const CheckResult& other) {
  findings.insert(findings.end(), other.findings.begin(), other.findings.end());
  errors += other.errors;
  objects += other.objects;
  slots += other.slots;
  unclear += other.unclear;
  quarantined_entries += other.quarantined_entries;
  passes = std::max(passes, other.passes);
  memory_bytes = std::max(memory_bytes, other.memory_bytes);
  quarantined_slots.insert(quarantined_slots.end(), other.quarantined_slots.begin(), other.quarantined_slots.end());
  return *this;
}

}  // namespace swimstore
