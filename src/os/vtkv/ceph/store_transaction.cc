// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/store_transaction.h"

#include "vtkv/ceph/key_space.h"

namespace vtkv {

namespace {

// The bytes of a buffer list in one piece: its own when it has but one, otherwise a copy.
class Contiguous {
 public:
  explicit Contiguous(const ceph::buffer::list& list) {
    if (list.get_num_buffers() == 1) {
      m_bytes = {list.front().c_str(), list.length()};
    } else {
      m_copy.reserve(list.length());
      for (const auto& piece : list.buffers()) {
        m_copy.append(piece.c_str(), piece.length());
      }
      m_bytes = m_copy;
    }
  }
  std::string_view bytes() const { return m_bytes; }

 private:
  std::string m_copy;
  std::string_view m_bytes;
};

}  // namespace

void StoreTransaction::set(const std::string& prefix, const std::string& key, const ceph::buffer::list& value) {
  m_batch.put(encode_key(prefix, key), Contiguous(value).bytes());
  ++m_puts;
  m_needs_merge_lock |= m_operators.of_prefix(prefix) != nullptr;
}

void StoreTransaction::rmkey(const std::string& prefix, const std::string& key) {
  m_batch.remove(encode_key(prefix, key));
  m_needs_merge_lock |= m_operators.of_prefix(prefix) != nullptr;
}

void StoreTransaction::remove_range(const std::string& lower, const std::string& upper) {
  if (lower < upper) {
    m_batch.remove_range(lower, upper);
    m_needs_merge_lock |= m_operators.reach_into(lower, upper);
  }
}

void StoreTransaction::rmkeys_by_prefix(const std::string& prefix) {
  const EncodedRange range = range_of_prefix(prefix);
  remove_range(range.lower, range.upper);
}

void StoreTransaction::rm_range_keys(const std::string& prefix, const std::string& start, const std::string& end) {
  remove_range(encode_key(prefix, start), encode_key(prefix, end));
}

void StoreTransaction::merge(const std::string& prefix, const std::string& key, const ceph::buffer::list& operand) {
  if (!m_operators.of_prefix(prefix)) {
    m_status = Status::invalid_argument("a transaction merges into prefix '" + prefix +
                                        "', which has no merge operator; set one before the store is opened");
    return;
  }
  m_merges.push_back(m_puts);
  set(prefix, key, operand);
}

}  // namespace vtkv
