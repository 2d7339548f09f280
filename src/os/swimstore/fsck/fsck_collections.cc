// SPDX-License-Identifier: LGPL-2.1-or-later
// Collections, and what else says where objects may lie.

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "swimstore/format/format_version.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/newer_entry.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/format/witness.h"
#include "swimstore/fsck/fsck.h"

namespace swimstore {

void Fsck::visit_collection(std::string_view key, std::string_view value) {
  coll_t cid;
  CollectionRecord record;
  if (!decode_collection_key(key, &cid) || !decode_collection(value, &record)) {
    if (m_pass > 0) {
      return;  // said in the first
    }
    if (m_options.may_hold_newer && is_newer_entry(value, kCollectionRecordVersion)) {
      m_newer_collections = true;
      found_newer(fmt::format("collection record {}", to_hex(key)));
      return;
    }
    found(FindingClass::collection_undecodable, fmt::format("collection record {} is damaged", to_hex(key)));
    return;
  }
  for (ObjectRange& range : object_ranges(cid, record.bits)) {
    m_ranges.push_back(std::move(range));
  }
}

// What a move that was cut short left: the next mount removes it.
void Fsck::visit_unowned(std::string_view key, std::string_view value) {
  coll_t cid;
  UnownedRange unowned;
  if (decode_unowned_range_key(key, &cid) && decode_unowned_range(value, &unowned)) {
    for (ObjectRange& range : object_ranges(cid, unowned.bits)) {
      m_ranges.push_back(std::move(range));
    }
  } else if (m_pass == 0) {
    found(FindingClass::collection_undecodable, fmt::format("the entry of unowned range {} is damaged", to_hex(key)));
  }
}

void Fsck::visit_witness(std::string_view key, std::string_view value) {
  coll_t cid;
  std::string_view item;
  WitnessedGroup group;
  if (m_pass == 0 &&
      (!decode_witness_key(key, &cid, &item) || (item.empty() && !decode_witnessed_group(value, &group)))) {
    found(FindingClass::collection_undecodable, fmt::format("the witness {} is damaged", to_hex(key)));
  }
}

void Fsck::sort_ranges() {
  std::sort(m_ranges.begin(), m_ranges.end(),
            [](const ObjectRange& a, const ObjectRange& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < m_ranges.size() && m_pass == 0; ++i) {
    if (m_ranges[i].begin < m_ranges[i - 1].end) {
      std::ostringstream at;
      at << m_ranges[i].begin;
      found(FindingClass::collections_overlap, fmt::format("two collections overlap at {}", at.str()));
    }
  }
}

bool Fsck::lies_in_a_collection(const ghobject_t& oid) const {
  const auto after = std::upper_bound(m_ranges.begin(), m_ranges.end(), oid,
                                      [](const ghobject_t& o, const ObjectRange& r) { return o < r.begin; });
  return after != m_ranges.begin() && oid < std::prev(after)->end;
}

}  // namespace swimstore
