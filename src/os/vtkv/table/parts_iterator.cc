// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/parts_iterator.h"

#include <algorithm>

namespace vtkv {

void PartsIterator::open(size_t part) {
  if (!m_iterator || m_part != part) {
    m_iterator = m_parts[part]->new_iterator();
    m_part = part;
  }
}

void PartsIterator::pass_ends_forward() {
  while (ended() && m_part + 1 < m_parts.size()) {
    open(m_part + 1);
    m_iterator->seek_to_first();
  }
}

void PartsIterator::pass_ends_backward() {
  while (ended() && m_part > 0) {
    open(m_part - 1);
    m_iterator->seek_to_last();
  }
}

void PartsIterator::seek_to_first() {
  open(0);
  m_iterator->seek_to_first();
  pass_ends_forward();
}

void PartsIterator::seek_to_last() {
  open(m_parts.size() - 1);
  m_iterator->seek_to_last();
  pass_ends_backward();
}

void PartsIterator::seek(std::string_view key, SequenceNumber at_most) {
  const size_t part =
      std::partition_point(m_parts.begin(), m_parts.end(), [&](const auto& each) { return each->end_key() <= key; }) -
      m_parts.begin();
  open(std::min(part, m_parts.size() - 1));
  m_iterator->seek(key, at_most);
  pass_ends_forward();
}

void PartsIterator::next() {
  m_iterator->next();
  pass_ends_forward();
}

void PartsIterator::previous() {
  m_iterator->previous();
  pass_ends_backward();
}

}  // namespace vtkv
