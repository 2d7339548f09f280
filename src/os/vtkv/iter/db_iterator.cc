#include "vtkv/iter/db_iterator.h"

namespace vtkv {

void DbIterator::follow() {
  m_status = Status();
  m_followed = m_visible.valid() && m_visible.type() == EntryType::value_pointer;
  if (m_followed) {
    m_status = m_values->read(m_visible.key(), m_visible.value(), &m_value);
  }
}

void DbIterator::seek_to_first() {
  m_visible.seek_to_first();
  follow();
}

void DbIterator::seek_to_last() {
  m_visible.seek_to_last();
  follow();
}

void DbIterator::seek(std::string_view target) {
  m_visible.seek(target);
  follow();
}

void DbIterator::seek_for_previous(std::string_view target) {
  m_visible.seek_for_previous(target);
  follow();
}

void DbIterator::next() {
  m_visible.next();
  follow();
}

void DbIterator::previous() {
  m_visible.previous();
  follow();
}

}  // namespace vtkv
