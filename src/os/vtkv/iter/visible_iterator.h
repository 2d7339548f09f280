// SPDX-License-Identifier: LGPL-2.1-or-later
// What of a read state is visible at one sequence: the newest version of each key, tombstones applied. Values that
// stayed in the log are pointers here; DbIterator follows them.
//
// A range tombstone in one source hides everything it covers in older sources, so those jump over it; the
// source itself, and newer ones, may hold entries put after the tombstone and are looked at one by one.
//
// Entries out of order, under a good checksum, end it with corruption: on its way it does not come to a key again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vtkv/iter/merging_iterator.h"
#include "vtkv/iter/read_state.h"

namespace vtkv {

class VisibleIterator {
 public:
  VisibleIterator(std::shared_ptr<const ReadState> state, std::string_view lower, std::string_view upper,
                  SequenceNumber sequence);

  bool valid() const { return m_valid; }
  void seek_to_first() { seek(m_lower); }
  void seek_to_last();
  void seek(std::string_view target);
  void seek_for_previous(std::string_view target);
  void next();
  void previous();
  std::string_view key() const { return m_key; }
  std::string_view value() const { return m_forward ? m_entries->entry().value : m_value; }
  // value, or value_pointer: then value() is an encoded ValuePointer.
  EntryType type() const { return m_forward ? m_entries->entry().type : m_type; }
  Status status() const { return m_entries->status(); }

 private:
  // The source of the newest tombstone that hides `entry`; false when it is visible.
  bool hidden(const Entry& entry, size_t* source) const;
  // What a key is at m_sequence.
  struct Newest {
    bool exists = false;
    bool is_hidden = false;
    size_t removed_by = 0;  // the source of the range tombstone that hides it
  };

  void find_forward();
  void pass_key_backward(Newest* newest);
  void find_backward();
  void skip_newer_versions();
  void skip_key_forward();
  bool in_bounds() const;
  bool on_key();
  void fail_order();

  const std::shared_ptr<const ReadState> m_state;
  const std::string m_lower;
  const std::string m_upper;
  const SequenceNumber m_sequence;
  std::vector<std::shared_ptr<const RangeTombstones>> m_tombstones;  // by source; null: none
  bool m_any_tombstones = false;
  std::vector<std::string> m_starts;  // scratch
  std::unique_ptr<MergingIterator> m_entries;
  // Forward: m_entries stands on the current entry. Backward: before every version of m_key.
  bool m_forward = true;
  bool m_valid = false;
  std::string m_key;
  std::string m_value;  // backward only, and so is the type
  EntryType m_type = EntryType::value;
};

}  // namespace vtkv
