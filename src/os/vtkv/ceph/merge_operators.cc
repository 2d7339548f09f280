// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/merge_operators.h"

#include <algorithm>
#include <map>
#include <optional>

#include "vtkv/ceph/key_space.h"

namespace vtkv {

void MergeOperators::add(const std::string& prefix, std::shared_ptr<Operator> one) {
  std::erase_if(m_entries, [&](const Entry& entry) { return entry.prefix == prefix; });
  EncodedRange range = range_of_prefix(prefix);
  m_entries.push_back({prefix, std::move(range.lower), std::move(range.upper), std::move(one)});
}

MergeOperators::Operator* MergeOperators::of_prefix(std::string_view prefix) const {
  const auto found =
      std::find_if(m_entries.begin(), m_entries.end(), [&](const Entry& entry) { return entry.prefix == prefix; });
  return found == m_entries.end() ? nullptr : found->one.get();
}

MergeOperators::Operator* MergeOperators::of_key(std::string_view encoded_key) const {
  const auto found = std::find_if(m_entries.begin(), m_entries.end(), [&](const Entry& entry) {
    return entry.lower <= encoded_key && encoded_key < entry.upper;
  });
  return found == m_entries.end() ? nullptr : found->one.get();
}

bool MergeOperators::reach_into(std::string_view lower, std::string_view upper) const {
  return std::any_of(m_entries.begin(), m_entries.end(),
                     [&](const Entry& entry) { return entry.lower < upper && lower < entry.upper; });
}

namespace {

// Copies a batch, operation by operation, and knows what each key with an operator holds after it.
class Resolver final : public WriteBatch::Handler {
 public:
  Resolver(DB* db, const MergeOperators& operators, const std::vector<uint32_t>& merges, WriteBatch* resolved)
      : m_db(db),
        m_operators(operators),
        m_next_merge(merges.begin()),
        m_merges_end(merges.end()),
        m_resolved(resolved) {}

  const Status& status() const { return m_status; }

  void put(std::string_view key, std::string_view value) override {
    const bool is_merge = m_next_merge != m_merges_end && *m_next_merge == m_puts;
    ++m_puts;
    if (is_merge) {
      ++m_next_merge;
      merge(key, value);
      return;
    }
    m_resolved->put(key, value);
    note_value(key, std::string(value));
  }

  void remove(std::string_view key) override {
    m_resolved->remove(key);
    note_value(key, std::nullopt);
  }

  void remove_range(std::string_view begin, std::string_view end) override {
    m_resolved->remove_range(begin, end);
    if (begin < end && m_operators.reach_into(begin, end)) {
      m_values.erase(m_values.lower_bound(begin), m_values.lower_bound(end));
      m_removed.push_back({std::string(begin), std::string(end)});
    }
  }

  void external_write(const ExternalWrite& write) override { m_resolved->external_write(write); }
  void note(std::string_view bytes) override { m_resolved->note(bytes); }

 private:
  using Value = std::optional<std::string>;

  void note_value(std::string_view key, Value value) {
    if (m_operators.of_key(key)) {
      m_values.insert_or_assign(std::string(key), std::move(value));
    }
  }

  void merge(std::string_view key, std::string_view operand) {
    Value value;
    if (Status status = current(key, &value); !status.ok()) {
      m_status = std::move(status);
      return;
    }
    std::string merged;
    MergeOperators::Operator* const one = m_operators.of_key(key);
    if (value) {
      one->merge(value->data(), value->size(), operand.data(), operand.size(), &merged);
    } else {
      one->merge_nonexistent(operand.data(), operand.size(), &merged);
    }
    m_resolved->put(key, merged);
    m_values.insert_or_assign(std::string(key), std::move(merged));
  }

  Status current(std::string_view key, Value* value) {
    if (const auto known = m_values.find(key); known != m_values.end()) {
      *value = known->second;
      return {};
    }
    const bool removed = std::any_of(m_removed.begin(), m_removed.end(), [&](const EncodedRange& range) {
      return range.lower <= key && key < range.upper;
    });
    if (removed) {
      return {};
    }
    std::string found;
    const Status status = m_db->get(key, &found);
    if (status.ok()) {
      *value = std::move(found);
    }
    return status.is_not_found() ? Status() : status;
  }

  DB* const m_db;
  const MergeOperators& m_operators;
  std::vector<uint32_t>::const_iterator m_next_merge;
  const std::vector<uint32_t>::const_iterator m_merges_end;
  WriteBatch* const m_resolved;
  uint32_t m_puts = 0;
  std::map<std::string, Value, std::less<>> m_values;  // what this batch made of keys; nullopt: removed
  std::vector<EncodedRange> m_removed;                     // by this batch; m_values is newer
  Status m_status;
};

}  // namespace

Status resolve_merges(DB* db, const MergeOperators& operators, const WriteBatch& batch,
                      const std::vector<uint32_t>& merges, WriteBatch* resolved) {
  Resolver resolver(db, operators, merges, resolved);
  VTKV_RETURN_IF_ERROR(batch.iterate(resolver));
  return resolver.status();
}

}  // namespace vtkv
