// SPDX-License-Identifier: LGPL-2.1-or-later
// What vtkv-tool does with an opened database: reads through DB::open_read_only, changes through DB::open.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "vtkv/db.h"
#include "vtkv/tool/report.h"

namespace vtkv {

struct ScanRange {
  std::string lower;                 // included
  std::optional<std::string> upper;  // excluded; nullopt: to the end
  uint64_t limit = UINT64_MAX;       // keys
  bool reverse = false;              // the greatest first
};

Status report_range(DB* db, const ScanRange& range, bool values, Report& report);
// Code::not_found when absent.
Status report_value(DB* db, const std::string& key, Report& report);
// Sizes and counts as of now; what counts since the opening is left out.
void report_statistics(const DB& db, Report& report);
// *damaged says whether there was a finding.
void report_damage(DB* db, Report& report, bool* damaged);
// The difference that a command made to the files.
void report_change(const DBStatistics& before, const DBStatistics& after, Report& report);

// Of a database that nobody else uses: also of what is in the log only, and the old addresses are given back on return.
Status defragment_at_rest(DB* db, const DefragmentOptions& options);
// What that changed.
void report_zones(const DBStatistics& before, const DBStatistics& after, Report& report);

// Puts what report_range printed: per line a key, a tab and a value. Each write is durable and whole. Stops at the
// first line that is none; *malformed says that it was one. *count: lines put.
Status load_lines(DB* db, std::istream& in, uint64_t* count, bool* malformed);

// For a command that changes something. Code::invalid_argument when the database belongs to a larger store.
Status check_may_change(Env* env, const std::string& directory);
Status open_to_change(Env* env, const std::string& directory, std::unique_ptr<DB>* db);

}  // namespace vtkv
