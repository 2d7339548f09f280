// SPDX-License-Identifier: LGPL-2.1-or-later
// Opens what DB::open refuses, to save what can be read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/db.h"

namespace vtkv {

// Entries that cannot be read. They may have been newer than what is found now below them, and may have removed it: so
// both what is missing and what is there can be wrong, and only the keys tell where.
class LostEntries {
 public:
  // Of any keys: between which they lie cannot be told.
  struct Range {
    bool of_any_key = false;
    std::string first_key, last_key;  // both may be among them
    uint64_t entries = 0;             // 0: it cannot be told
    std::string reason;
  };

  virtual ~LostEntries() = default;
  virtual const std::vector<Range>& ranges() const = 0;
  // May one of them say something else of `key` than the database does? "No" is certain: none of them is newer than
  // what is found, or the filter of their run denies it. `in_range`: a tombstone of a range may concern such keys.
  virtual bool may_hold(std::string_view key, bool in_range) const = 0;
  // May any of them be in [lower, upper)?
  virtual bool may_hold_any(std::string_view lower, std::string_view upper) const = 0;
};

struct SalvagedDb {
  std::unique_ptr<DB> db;             // as DB::open_read_only
  std::unique_ptr<LostEntries> lost;  // lives no longer than db
  std::vector<std::string> notes;     // a sentence each: what else was done without

  void close() {
    lost.reset();
    db.reset();
    notes.clear();
  }
};

// Reads the whole tree, and each value in the log. Goes on without what cannot be read: a block, a filter, a run; the
// header of a log segment; the log from where it is broken, and says how much lies behind. Of the manifest's two copies
// it takes the one of which less is lost, if the log leads from there as far: so it may read everything up to three
// times. Changes nothing on disk. Code::corruption when neither copy can be read.
//
// `external_store`: is asked whether the data of the log's last records arrived, as DB::open asks it, and outlives
// salvaged->db. Without one it is taken to have arrived.
Status open_to_salvage(Env* env, const std::string& directory, SalvagedDb* salvaged,
                       ExternalStore* external_store = nullptr);

}  // namespace vtkv
