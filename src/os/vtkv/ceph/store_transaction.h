// SPDX-License-Identifier: LGPL-2.1-or-later
// A KeyValueDB transaction: a batch of the engine, and which of its puts are merges.
//
// Not thread-safe. Submitting it leaves it as it was.
#pragma once

#include <string>
#include <vector>

#include "kv/KeyValueDB.h"
#include "vtkv/ceph/merge_operators.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class StoreTransaction final : public KeyValueDB::TransactionImpl {
 public:
  // `operators` outlives it.
  explicit StoreTransaction(const MergeOperators& operators) : m_operators(operators) {}

  using KeyValueDB::TransactionImpl::rmkey;
  using KeyValueDB::TransactionImpl::set;
  void set(const std::string& prefix, const std::string& key, const ceph::buffer::list& value) override;
  void rmkey(const std::string& prefix, const std::string& key) override;
  void rmkeys_by_prefix(const std::string& prefix) override;
  // [start, end); nothing when start >= end.
  void rm_range_keys(const std::string& prefix, const std::string& start, const std::string& end) override;
  // Of a prefix without operator: submitting the transaction fails, as a whole.
  void merge(const std::string& prefix, const std::string& key, const ceph::buffer::list& operand) override;

  // Both override since Tentacle. Operations, each merge and removal of a range one; bytes of the encoded batch.
  size_t get_count() const { return m_batch.empty() ? 0 : m_batch.sequence_count(); }
  size_t get_size_bytes() const { return m_batch.encoded_bytes(); }

  const WriteBatch& batch() const { return m_batch; }
  // Positions among the batch's puts.
  const std::vector<uint32_t>& merges() const { return m_merges; }
  // Does it touch keys that have a merge operator?
  bool needs_merge_lock() const { return m_needs_merge_lock; }
  // invalid_argument when it can never be submitted.
  const Status& status() const { return m_status; }

 private:
  void remove_range(const std::string& lower, const std::string& upper);

  const MergeOperators& m_operators;
  WriteBatch m_batch;
  uint32_t m_puts = 0;
  std::vector<uint32_t> m_merges;
  bool m_needs_merge_lock = false;
  Status m_status;
};

}  // namespace vtkv
