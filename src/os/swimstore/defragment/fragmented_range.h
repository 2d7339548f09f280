// SPDX-License-Identifier: LGPL-2.1-or-later
// Which parts of an object are worth putting together: what lies in so many pieces that the seeks of reading them cost
// more than half of what it costs to write them once as a whole.
//
//   gain = (pieces - pieces of a new write) * kPieceBytes       cost = bytes of the range
//
// A piece counts as much as the bytes that a device reads in the time of one seek. A range is worth it from a gain of
// half its cost on: VT-tree, FAST '13, section 3.4, has this rule for the tree's blocks, and vtkv/tree/defragmenter.h
// has it for those of vtkv. Pieces are told by offsets in containers' files; what the host makes of these is not seen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "swimstore/format/extent_record.h"

namespace swimstore {

inline constexpr uint64_t kPieceBytes = 64u << 10;

// Neighbouring blocks of an object that may be moved.
struct FragmentedRange {
  uint64_t first = 0;        // block of the object
  uint64_t count = 0;        // blocks
  uint64_t pieces = 0;       // of neighbours in a container's file
  uint64_t best_pieces = 0;  // of a new write

  uint64_t bytes() const { return count * kBlockBytes; }
  // In how many pieces it would have to lie.
  bool would_gain(uint64_t new_pieces) const {
    return new_pieces < pieces && (pieces - new_pieces) * kPieceBytes >= bytes() / 2;
  }
  bool is_worth_it() const { return would_gain(best_pieces); }
  bool operator==(const FragmentedRange&) const = default;
};

// Cuts a part of an object, of kSlotBytesMax at most, into ranges, at whatever is left out.
class RangeFinder {
 public:
  // Ascending. `block`: of the object.
  void add(uint64_t block, const Extent& extent);
  // All ranges.
  std::vector<FragmentedRange> finish();

 private:
  void end_range();

  std::vector<FragmentedRange> m_ranges;
  FragmentedRange m_range;                  // under way; of no block: none
  std::optional<uint64_t> m_next_position;  // in the file, behind the last block
  unsigned m_container = 0;                 // that it lies in
};

}  // namespace swimstore
