// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/database_commands.h"

#include "vtkv/db/ownership.h"
#include "vtkv/tool/notation.h"

namespace vtkv {

namespace {

constexpr size_t kLoadBatchBytes = 256 << 10;

}  // namespace

Status report_range(DB* db, const ScanRange& range, bool values, Report& report) {
  const std::unique_ptr<Iterator> iterator = db->new_iterator(range.lower, range.upper.value_or(""));
  uint64_t left = range.limit;
  report.begin_table(values ? "entries" : "keys", false);
  range.reverse ? iterator->seek_to_last() : iterator->seek_to_first();
  for (; iterator->valid() && left > 0; --left) {
    ReportFields fields{{"key", to_notation(iterator->key())}};
    if (values) {
      fields.emplace_back("value", to_notation(iterator->value()));
    }
    report.row(fields);
    range.reverse ? iterator->previous() : iterator->next();
  }
  report.end_table();
  return iterator->status();
}

Status report_value(DB* db, const std::string& key, Report& report) {
  std::string value;
  const Status status = db->get(key, &value);
  if (status.is_not_found()) {
    return Status::not_found("there is no key " + to_notation(key));
  }
  VTKV_RETURN_IF_ERROR(status);
  report.begin_table("entries", false);
  report.row({{"value", to_notation(value)}});
  report.end_table();
  return {};
}

void report_statistics(const DB& db, Report& report) {
  const DBStatistics statistics = db.statistics();
  report.field("last_sequence", statistics.last_sequence);
  report.field("log_file_bytes", statistics.log_file_bytes);
  report.field("log_segments", uint64_t{statistics.log_segments});
  report.field("log_live_bytes", statistics.log_live_bytes);
  report.field("tree_file_bytes", statistics.tree_file_bytes);
  report.field("tree_live_bytes", statistics.tree_live_bytes);
  report.field("runs", uint64_t{statistics.runs});
  report.field("levels", uint64_t{statistics.levels});
  report.field("memtable_bytes", statistics.memtable_bytes);
}

void report_damage(DB* db, Report& report, bool* damaged) {
  std::vector<std::string> findings;
  db->verify(&findings);
  *damaged = !findings.empty();
  report.field("damaged", *damaged);
  report.begin_table("findings", false);
  for (const std::string& finding : findings) {
    report.row({{"finding", finding}});
  }
  report.end_table();
}

namespace {

// A figure before and after what a command did.
void report_both(const char* name, uint64_t before, uint64_t after, Report& report) {
  report.field((std::string(name) + "_before").c_str(), before);
  report.field((std::string(name) + "_after").c_str(), after);
}

}  // namespace

void report_change(const DBStatistics& before, const DBStatistics& after, Report& report) {
  report_both("runs", before.runs, after.runs, report);
  report_both("tree_live_bytes", before.tree_live_bytes, after.tree_live_bytes, report);
  report_both("tree_file_bytes", before.tree_file_bytes, after.tree_file_bytes, report);
  report_both("log_live_bytes", before.log_live_bytes, after.log_live_bytes, report);
  report_both("log_file_bytes", before.log_file_bytes, after.log_file_bytes, report);
}

Status defragment_at_rest(DB* db, const DefragmentOptions& options) {
  VTKV_RETURN_IF_ERROR(db->flush());
  return db->defragment(options);
}

void report_zones(const DBStatistics& before, const DBStatistics& after, Report& report) {
  report.field("moved_bytes", after.defragmented_bytes - before.defragmented_bytes);
  report_both("zones", before.zones, after.zones, report);
  report_both("zones_in_use", before.zones_in_use, after.zones_in_use, report);
  report_both("tree_live_bytes", before.tree_live_bytes, after.tree_live_bytes, report);
  report_both("tree_file_bytes", before.tree_file_bytes, after.tree_file_bytes, report);
}

namespace {

Status parse_line(const std::string& line, std::string* key, std::string* value) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) {
    return Status::invalid_argument("there is no tab between a key and a value");
  }
  VTKV_RETURN_IF_ERROR(from_notation(line.substr(0, tab), key));
  return from_notation(line.substr(tab + 1), value);
}

}  // namespace

Status load_lines(DB* db, std::istream& in, uint64_t* count, bool* malformed) {
  WriteBatch batch;
  uint64_t pending = 0;
  const auto write = [&] {
    Status status = pending > 0 ? db->write(std::move(batch)) : Status();
    *count += status.ok() ? pending : 0;
    batch = WriteBatch();
    pending = 0;
    return status;
  };
  std::string line, key, value;
  for (uint64_t number = 1; std::getline(in, line); ++number) {
    const Status status =
        in.eof() ? Status::invalid_argument("it does not end with a line break, so it may have been cut short")
                 : parse_line(line, &key, &value);
    if (!status.ok()) {
      *malformed = true;
      VTKV_RETURN_IF_ERROR(write());
      return Status::invalid_argument("line " + std::to_string(number) + ": " + std::string(status.message()) +
                                      "; the lines before it were loaded");
    }
    batch.put(key, value);
    ++pending;
    if (batch.encoded_bytes() >= kLoadBatchBytes) {
      VTKV_RETURN_IF_ERROR(write());
    }
  }
  return write();
}

Status check_may_change(Env* env, const std::string& directory) {
  return env->exists(directory + "/manifest") ? check_sole_owner(env, directory) : Status();
}

Status open_to_change(Env* env, const std::string& directory, std::unique_ptr<DB>* db) {
  VTKV_RETURN_IF_ERROR(check_may_change(env, directory));
  return DB::open(env, directory, Options(), db);
}

}  // namespace vtkv
