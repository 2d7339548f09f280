// SPDX-License-Identifier: LGPL-2.1-or-later
// KeyValueDB's merge operators: which prefix has which, and what a batch means that uses them.
//
// vtkv stores no operands. A merge is resolved when its transaction is submitted: the value that it finds,
// merged, becomes an ordinary put of the same batch. So reads, recovery and other programs need no operator,
// and the result is durable with the rest of its transaction or not at all. In return, everything that
// touches a prefix with an operator is submitted under one lock (VtkvStore's), or a value could change
// between being read and being put.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv/KeyValueDB.h"
#include "vtkv/db.h"

namespace vtkv {

// Not thread-safe while operators are added; then thread-safe.
class MergeOperators {
 public:
  using Operator = KeyValueDB::MergeOperator;

  // A later one of the same prefix takes the place of an earlier one.
  void add(const std::string& prefix, std::shared_ptr<Operator> one);
  // nullptr: there is none.
  Operator* of_prefix(std::string_view prefix) const;
  Operator* of_key(std::string_view encoded_key) const;
  // Does [lower, upper) of encoded keys hold keys that have one?
  bool reach_into(std::string_view lower, std::string_view upper) const;

 private:
  struct Entry {
    std::string prefix;
    std::string lower, upper;  // encoded keys of the prefix
    std::shared_ptr<Operator> one;
  };
  std::vector<Entry> m_entries;  // few
};

// The puts of `batch` whose positions among its puts are in `merges` (ascending) hold operands: *resolved is
// the batch with merged values instead, each as found in `db` after the operations before it.
// REQUIRES: their keys have operators; nobody writes keys that have one meanwhile.
Status resolve_merges(DB* db, const MergeOperators& operators, const WriteBatch& batch,
                      const std::vector<uint32_t>& merges, WriteBatch* resolved);

}  // namespace vtkv
