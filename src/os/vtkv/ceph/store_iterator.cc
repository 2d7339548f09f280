#include "vtkv/ceph/store_iterator.h"

namespace vtkv {

namespace {

int result(const Iterator& iterator) { return iterator.status().ok() ? 0 : -iterator.status().error_number(); }

// Ceph moves an iterator that has ended, too: it stays where it is.
int step_forward(Iterator& iterator) {
  if (iterator.valid()) {
    iterator.next();
  }
  return result(iterator);
}

int step_backward(Iterator& iterator) {
  if (iterator.valid()) {
    iterator.previous();
  }
  return result(iterator);
}

// The first key behind `after` itself.
int seek_behind(Iterator& iterator, std::string after) {
  after.push_back('\0');
  iterator.seek(after);
  return result(iterator);
}

ceph::buffer::list list_of(std::string_view bytes) {
  ceph::buffer::list list;
  list.append(bytes.data(), bytes.size());
  return list;
}

ceph::buffer::ptr pointer_to(std::string_view bytes) {
  return ceph::buffer::ptr(bytes.data(), static_cast<unsigned>(bytes.size()));
}

}  // namespace

int WholeSpaceIterator::seek_to_first() {
  m_iterator->seek_to_first();
  return result(*m_iterator);
}

int WholeSpaceIterator::seek_to_first(const std::string& prefix) {
  m_iterator->seek(range_of_prefix(prefix).lower);
  return result(*m_iterator);
}

int WholeSpaceIterator::seek_to_last() {
  m_iterator->seek_to_last();
  return result(*m_iterator);
}

int WholeSpaceIterator::seek_to_last(const std::string& prefix) {
  // Nothing is stored under the bound itself: no prefix's encoding ends in its last byte.
  m_iterator->seek_for_previous(range_of_prefix(prefix).upper);
  return result(*m_iterator);
}

int WholeSpaceIterator::upper_bound(const std::string& prefix, const std::string& after) {
  return seek_behind(*m_iterator, encode_key(prefix, after));
}

int WholeSpaceIterator::lower_bound(const std::string& prefix, const std::string& to) {
  m_iterator->seek(encode_key(prefix, to));
  return result(*m_iterator);
}

int WholeSpaceIterator::next() { return step_forward(*m_iterator); }
int WholeSpaceIterator::prev() { return step_backward(*m_iterator); }
std::string WholeSpaceIterator::key() { return std::string(key_part(m_iterator->key())); }

std::pair<std::string, std::string> WholeSpaceIterator::raw_key() {
  std::pair<std::string, std::string> raw;
  // A key that another program put there keeps its bytes, under no prefix.
  if (!decode_key(m_iterator->key(), &raw.first, &raw.second)) {
    raw.second.assign(m_iterator->key());
  }
  return raw;
}

bool WholeSpaceIterator::raw_key_is_prefixed(const std::string& prefix) {
  return m_iterator->key().starts_with(range_of_prefix(prefix).lower);
}

ceph::buffer::list WholeSpaceIterator::value() { return list_of(m_iterator->value()); }
ceph::buffer::ptr WholeSpaceIterator::value_as_ptr() { return pointer_to(m_iterator->value()); }
int WholeSpaceIterator::status() { return result(*m_iterator); }
size_t WholeSpaceIterator::key_size() { return m_iterator->key().size(); }
size_t WholeSpaceIterator::value_size() { return m_iterator->value().size(); }

int PrefixIterator::seek_to_first() {
  m_iterator->seek_to_first();
  return result(*m_iterator);
}

int PrefixIterator::seek_to_last() {
  m_iterator->seek_to_last();
  return result(*m_iterator);
}

int PrefixIterator::upper_bound(const std::string& after) {
  return seek_behind(*m_iterator, encode_key(m_prefix, after));
}

int PrefixIterator::lower_bound(const std::string& to) {
  m_iterator->seek(encode_key(m_prefix, to));
  return result(*m_iterator);
}

int PrefixIterator::next() { return step_forward(*m_iterator); }
int PrefixIterator::prev() { return step_backward(*m_iterator); }
std::string PrefixIterator::key() { return std::string(key_part(m_iterator->key())); }
ceph::buffer::list PrefixIterator::value() { return list_of(m_iterator->value()); }
ceph::buffer::ptr PrefixIterator::value_as_ptr() { return pointer_to(m_iterator->value()); }
int PrefixIterator::status() { return result(*m_iterator); }

}  // namespace vtkv
