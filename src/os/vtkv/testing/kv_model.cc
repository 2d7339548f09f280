// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/kv_model.h"

namespace vtkv {

void apply(const KvOperations& operations, KvEntries* entries) {
  for (const KvOperation& operation : operations) {
    switch (operation.kind) {
      case KvOperation::Kind::put:
        (*entries)[operation.key] = operation.value;
        break;
      case KvOperation::Kind::remove:
        entries->erase(operation.key);
        break;
      case KvOperation::Kind::remove_range:
        if (operation.key < operation.value) {
          entries->erase(entries->lower_bound(operation.key), entries->lower_bound(operation.value));
        }
        break;
    }
  }
}

void apply(const KvOperations& operations, WriteBatch* batch) {
  for (const KvOperation& operation : operations) {
    switch (operation.kind) {
      case KvOperation::Kind::put:
        batch->put(operation.key, operation.value);
        break;
      case KvOperation::Kind::remove:
        batch->remove(operation.key);
        break;
      case KvOperation::Kind::remove_range:
        batch->remove_range(operation.key, operation.value);
        break;
    }
  }
}

Status read_entries(DB& db, const std::string& lower, const std::string& upper, const Snapshot* snapshot,
                    KvEntries* entries, bool* backward_agrees) {
  entries->clear();
  *backward_agrees = true;
  auto it = db.new_iterator(lower, upper, snapshot);
  for (it->seek_to_first(); it->valid(); it->next()) {
    const bool ascending = entries->empty() || entries->rbegin()->first < it->key();
    entries->emplace(it->key(), it->value());
    *backward_agrees = *backward_agrees && ascending;
  }
  VTKV_RETURN_IF_ERROR(it->status());
  auto expected = entries->rbegin();
  for (it->seek_to_last(); it->valid(); it->previous()) {
    if (expected == entries->rend() || expected->first != it->key() || expected->second != it->value()) {
      *backward_agrees = false;
      return Status();
    }
    ++expected;
  }
  *backward_agrees = *backward_agrees && expected == entries->rend();
  return it->status();
}

std::string difference(const KvEntries& expected, const KvEntries& found) {
  for (const auto& [key, value] : expected) {
    const auto other = found.find(key);
    if (other == found.end()) {
      return "key " + key + " is missing; expected " + value.substr(0, 40);
    }
    if (other->second != value) {
      return "key " + key + " holds " + other->second.substr(0, 40) + "; expected " + value.substr(0, 40);
    }
  }
  for (const auto& [key, value] : found) {
    if (!expected.contains(key)) {
      return "key " + key + " should not exist; it holds " + value.substr(0, 40);
    }
  }
  return {};
}

void KvHistory::append(const KvOperations& operations) {
  auto next = std::make_shared<KvEntries>(*m_states.back());
  apply(operations, next.get());
  m_states.push_back(std::move(next));
}

}  // namespace vtkv
