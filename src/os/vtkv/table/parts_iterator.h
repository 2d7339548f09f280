// SPDX-License-Identifier: LGPL-2.1-or-later
// Walks parts of one sorted run as if they were one run. Opens a part when it comes to it.
//
// Not thread-safe. Errors: those of the part it stands in; it stops there.
#pragma once

#include <memory>

#include "vtkv/table/sorted_run.h"

namespace vtkv {

class PartsIterator final : public EntryIterator {
 public:
  // In key order; without range tombstones in the keys that it is asked for.
  explicit PartsIterator(Runs parts) : m_parts(std::move(parts)) {}

  bool valid() const override { return m_iterator && m_iterator->valid(); }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view key, SequenceNumber at_most) override;
  void next() override;
  void previous() override;
  const Entry& entry() const override { return m_iterator->entry(); }
  Status status() const override { return m_iterator ? m_iterator->status() : Status(); }

 private:
  void open(size_t part);
  bool ended() const { return m_iterator && !m_iterator->valid() && m_iterator->status().ok(); }
  void pass_ends_forward();
  void pass_ends_backward();

  const Runs m_parts;
  size_t m_part = 0;  // that the iterator is of
  std::unique_ptr<EntryIterator> m_iterator;  // null: before the first move
};

}  // namespace vtkv
