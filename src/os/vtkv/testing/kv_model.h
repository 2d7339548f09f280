// SPDX-License-Identifier: LGPL-2.1-or-later
// What a database should hold, as the simplest thing that can be right: a std::map after every batch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vtkv/db.h"

namespace vtkv {

struct KvOperation {
  enum class Kind { put, remove, remove_range };
  Kind kind = Kind::put;
  std::string key;    // begin of a range
  std::string value;  // end of a range
};
using KvOperations = std::vector<KvOperation>;
using KvEntries = std::map<std::string, std::string>;

void apply(const KvOperations& operations, KvEntries* entries);
void apply(const KvOperations& operations, WriteBatch* batch);

// Everything in [lower, upper) read forward; *backward_agrees says whether reading backward gives the same.
Status read_entries(DB& db, const std::string& lower, const std::string& upper, const Snapshot* snapshot,
                    KvEntries* entries, bool* backward_agrees);
// The first difference, in one sentence; empty when there is none.
std::string difference(const KvEntries& expected, const KvEntries& found);

// The states a database went through, batch by batch. Cheap to copy.
class KvHistory {
 public:
  KvHistory() : m_states{std::make_shared<KvEntries>()} {}
  void append(const KvOperations& operations);
  // Forgets the batches from `count` on.
  void truncate(size_t count) { m_states.resize(count + 1); }
  size_t size() const { return m_states.size() - 1; }
  const KvEntries& after(size_t batches) const { return *m_states.at(batches); }

 private:
  std::vector<std::shared_ptr<const KvEntries>> m_states;
};

}  // namespace vtkv
