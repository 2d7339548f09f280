// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/store_iterator.h"

namespace vtkv {

namespace {

// The first key behind `after` itself.
std::string behind(std::string after) {
  after.push_back('\0');
  return after;
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

int CheckedIterator::check() const {
  if (const Status status = m_iterator->status(); !status.ok()) {
    m_fatal.end("the keys from '" + m_position + "' on", status);
  }
  return 0;
}

int CheckedIterator::seek_to_first() {
  m_position.clear();
  m_iterator->seek_to_first();
  return check();
}

int CheckedIterator::seek_to_last() {
  m_position.clear();
  m_iterator->seek_to_last();
  return check();
}

int CheckedIterator::seek(std::string_view target) {
  m_position.assign(target);
  m_iterator->seek(target);
  return check();
}

int CheckedIterator::seek_for_previous(std::string_view target) {
  m_position.assign(target);
  m_iterator->seek_for_previous(target);
  return check();
}

// Ceph moves an iterator that has ended, too: it stays where it is.
int CheckedIterator::next() {
  if (m_iterator->valid()) {
    m_position.assign(m_iterator->key());
    m_iterator->next();
  }
  return check();
}

int CheckedIterator::previous() {
  if (m_iterator->valid()) {
    m_position.assign(m_iterator->key());
    m_iterator->previous();
  }
  return check();
}

int WholeSpaceIterator::seek_to_first() { return m_iterator.seek_to_first(); }

int WholeSpaceIterator::seek_to_first(const std::string& prefix) {
  return m_iterator.seek(range_of_prefix(prefix).lower);
}

int WholeSpaceIterator::seek_to_last() { return m_iterator.seek_to_last(); }

int WholeSpaceIterator::seek_to_last(const std::string& prefix) {
  // Nothing is stored under the bound itself: no prefix's encoding ends in its last byte.
  return m_iterator.seek_for_previous(range_of_prefix(prefix).upper);
}

int WholeSpaceIterator::upper_bound(const std::string& prefix, const std::string& after) {
  return m_iterator.seek(behind(encode_key(prefix, after)));
}

int WholeSpaceIterator::lower_bound(const std::string& prefix, const std::string& to) {
  return m_iterator.seek(encode_key(prefix, to));
}

int WholeSpaceIterator::next() { return m_iterator.next(); }
int WholeSpaceIterator::prev() { return m_iterator.previous(); }
std::string WholeSpaceIterator::key() { return std::string(key_part(m_iterator->key())); }

std::pair<std::string, std::string> WholeSpaceIterator::raw_key() {
  std::pair<std::string, std::string> raw;
  // A key that another program put there keeps its bytes, under no prefix.
  if (!decode_key(m_iterator->key(), &raw.first, &raw.second)) {
    raw.second.assign(m_iterator->key());
  }
  return raw;
}

std::string_view WholeSpaceIterator::key_as_sv() { return key_part(m_iterator->key()); }
std::string_view WholeSpaceIterator::value_as_sv() { return m_iterator->value(); }

std::pair<std::string_view, std::string_view> WholeSpaceIterator::raw_key_as_sv() {
  std::string key;
  if (decode_key(m_iterator->key(), &m_prefix, &key)) {
    return {m_prefix, key_as_sv()};
  }
  return {{}, m_iterator->key()};
}

bool WholeSpaceIterator::raw_key_is_prefixed(const std::string& prefix) {
  return m_iterator->key().starts_with(range_of_prefix(prefix).lower);
}

ceph::buffer::list WholeSpaceIterator::value() { return list_of(m_iterator->value()); }
ceph::buffer::ptr WholeSpaceIterator::value_as_ptr() { return pointer_to(m_iterator->value()); }
int WholeSpaceIterator::status() { return m_iterator.check(); }
size_t WholeSpaceIterator::key_size() { return m_iterator->key().size(); }
size_t WholeSpaceIterator::value_size() { return m_iterator->value().size(); }

int PrefixIterator::seek_to_first() { return m_iterator.seek_to_first(); }
int PrefixIterator::seek_to_last() { return m_iterator.seek_to_last(); }

int PrefixIterator::upper_bound(const std::string& after) {
  return m_iterator.seek(behind(encode_key(m_prefix, after)));
}

int PrefixIterator::lower_bound(const std::string& to) { return m_iterator.seek(encode_key(m_prefix, to)); }

int PrefixIterator::next() { return m_iterator.next(); }
int PrefixIterator::prev() { return m_iterator.previous(); }
std::string PrefixIterator::key() { return std::string(key_part(m_iterator->key())); }
std::string_view PrefixIterator::key_as_sv() { return key_part(m_iterator->key()); }
std::string_view PrefixIterator::value_as_sv() { return m_iterator->value(); }
ceph::buffer::list PrefixIterator::value() { return list_of(m_iterator->value()); }
ceph::buffer::ptr PrefixIterator::value_as_ptr() { return pointer_to(m_iterator->value()); }
int PrefixIterator::status() { return m_iterator.check(); }

}  // namespace vtkv
