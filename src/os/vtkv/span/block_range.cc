// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/block_range.h"

#include <algorithm>

#include "vtkv/span/block_format.h"
#include "vtkv/util/coding.h"

namespace vtkv {

void BlockRange::add(const Entry& entry, bool is_older_version) {
  if (entries == 0) {
    first_key.assign(entry.key);
    first_sequence = entry.sequence;
    smallest_sequence = greatest_sequence = entry.sequence;
  }
  last_key.assign(entry.key);
  ++entries;
  doubtful += entry.type == EntryType::tombstone || is_older_version;
  pointers += entry.type == EntryType::value_pointer;
  smallest_sequence = std::min(smallest_sequence, entry.sequence);
  greatest_sequence = std::max(greatest_sequence, entry.sequence);
}

void BlockRange::append(const BlockRange& next) {
  units = next.end_unit() - unit;
  last_key = next.last_key;
  entries += next.entries;
  doubtful += next.doubtful;
  pointers += next.pointers;
  smallest_sequence = std::min(smallest_sequence, next.smallest_sequence);
  greatest_sequence = std::max(greatest_sequence, next.greatest_sequence);
}

void BlockRange::encode(std::string* out) const {
  put_varint32(out, unit);
  put_varint32(out, units);
  put_varint64(out, entries);
  put_varint64(out, doubtful);
  put_varint64(out, pointers);
  put_varint64(out, smallest_sequence);
  put_varint64(out, greatest_sequence - smallest_sequence);
  const size_t limit = std::min(first_key.size(), last_key.size());
  const size_t shared =
      std::mismatch(first_key.begin(), first_key.begin() + limit, last_key.begin()).first - first_key.begin();
  put_varint32(out, static_cast<uint32_t>(shared));
  put_length_prefixed(out, std::string_view(last_key).substr(shared));
}

bool BlockRange::decode(std::string_view* in) {
  uint64_t sequences;
  uint32_t shared;
  std::string_view rest;
  if (!get_varint32(in, &unit) || !get_varint32(in, &units) || !get_varint64(in, &entries) ||
      !get_varint64(in, &doubtful) || !get_varint64(in, &pointers) || !get_varint64(in, &smallest_sequence) ||
      !get_varint64(in, &sequences) || !get_varint32(in, &shared) || !get_length_prefixed(in, &rest) ||
      shared > first_key.size()) {
    return false;
  }
  greatest_sequence = smallest_sequence + sequences;
  last_key.assign(first_key, 0, shared);
  last_key.append(rest);
  return units > 0 && unit + units > unit && entries > 0 && doubtful <= entries && pointers <= entries &&
         greatest_sequence >= smallest_sequence && first_sequence >= smallest_sequence &&
         first_sequence <= greatest_sequence && first_key <= last_key;
}

bool BlockRange::decode_line(const Entry& line) {
  first_key.assign(line.key);
  first_sequence = line.sequence;
  std::string_view in = line.value;
  return decode(&in) && in.empty() && units <= kBlockUnitsMax;
}

bool BlockRange::decode_address(std::string_view in, uint32_t* unit, uint32_t* units) {
  return get_varint32(&in, unit) && get_varint32(&in, units) && *units <= kBlockUnitsMax;
}

}  // namespace vtkv
