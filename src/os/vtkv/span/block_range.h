// SPDX-License-Identifier: LGPL-2.1-or-later
// What contiguous blocks of entries of one span hold, from one block up to all of the span's. It is a line
// of a span's index (one block) and of a run's descriptor (many): enough to decide in a compaction whether they
// can be taken over, or dropped, without reading them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vtkv/mem/entry.h"

namespace vtkv {

struct BlockRange {
  uint32_t unit = 0;  // of the span
  uint32_t units = 0;
  std::string first_key;
  SequenceNumber first_sequence = 0;
  std::string last_key;
  uint64_t entries = 0;
  // Of them, those that a later compaction may find superfluous: tombstones, and versions behind a newer one of
  // the same key.
  uint64_t doubtful = 0;
  uint64_t pointers = 0;  // of them, values in the log
  SequenceNumber smallest_sequence = 0;
  SequenceNumber greatest_sequence = 0;

  uint32_t end_unit() const { return unit + units; }
  bool operator==(const BlockRange&) const = default;

  // Takes one more entry in. `is_older_version`: the entry before it has the same key.
  void add(const Entry& entry, bool is_older_version);
  // Takes the blocks directly behind these in.
  void append(const BlockRange& next);

  // Everything but first_key and first_sequence, which stand before it wherever it is: doc/on_disk_format.md, "Block
  // range".
  void encode(std::string* out) const;
  // REQUIRES: first_key and first_sequence are set. False when malformed or contradictory.
  bool decode(std::string_view* in);
  // A line of a span's index, which is of one block: no larger than any may be.
  bool decode_line(const Entry& line);
  // Of the value of such a line only where the block lies.
  static bool decode_address(std::string_view in, uint32_t* unit, uint32_t* units);
};

}  // namespace vtkv
