// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "vtkv/env/read_only_env.h"
#include "vtkv/tool/notation.h"
#include "vtkv/tree/manifest_format.h"
#include "vtkv/util/read_cache.h"
#include "vtkv/wal/log_recovery.h"
#include "vtkv/wal/log_sweep.h"

namespace vtkv {

namespace {

std::string text_of(const Uuid& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  }
  return text;
}

uint64_t total_units(const std::vector<BlockHandle>& handles) {
  uint64_t units = 0;
  for (const BlockHandle& handle : handles) {
    units += handle.units;
  }
  return units;
}

const char* name_of(EntryType type) {
  switch (type) {
    case EntryType::tombstone:
      return "tombstone";
    case EntryType::value:
      return "value";
    case EntryType::value_pointer:
      return "value_pointer";
    case EntryType::logged_value:
      break;  // in memory only
  }
  return "unknown";
}

}  // namespace

// --- opening ----------------------------------------------------------------------------------------------

Status Inspection::open(Env* env, const std::string& directory, std::unique_ptr<Inspection>* inspection) {
  std::unique_ptr<Inspection> opened(new Inspection(std::make_unique<ReadOnlyEnv>(env)));
  VTKV_RETURN_IF_ERROR(opened->open_files(directory));
  *inspection = std::move(opened);
  return {};
}

Status Inspection::open_files(const std::string& directory) {
  m_directory = directory;
  if (!m_env->exists(directory)) {
    return Status::not_found(directory + ": there is no such directory");
  }
  if (!m_env->exists(directory + "/manifest")) {
    return Status::not_found(directory + ": holds no vtkv database (there is no manifest)");
  }
  VTKV_RETURN_IF_ERROR(m_env->lock_file(directory + "/lock", &m_lock));
  VTKV_RETURN_IF_ERROR(Manifest::open(m_env.get(), directory, &m_manifest, &m_newest, &m_older));
  return {};
}

Status Inspection::check_may_read() const {
  return m_newest.features.check(m_manifest->path(), known_features(), /*to_write=*/false);
}

void Inspection::describe(Report& report) const {
  report.field("uuid", text_of(m_newest.uuid));
  report.field("format_version", uint64_t{kManifestVersion});
  report.field("compat_features", to_text(m_newest.features.compat));
  report.field("ro_compat_features", to_text(m_newest.features.ro_compat));
  report.field("incompat_features", to_text(m_newest.features.incompat));
  report.field("log_segment_bytes", m_newest.geometry.log_segment_bytes);
  report.field("zone_bytes", m_newest.geometry.zone_bytes);
  report.field("block_bytes", uint64_t{m_newest.geometry.block_bytes});
  report.field("checkpoint_epoch", m_newest.epoch);
  report.field("checkpoint_sequence", m_newest.position.sequence);
  report.field("older_checkpoint_epoch", m_older.epoch);
  report.field("older_checkpoint_sequence", m_older.position.sequence);
}

// --- log --------------------------------------------------------------------------------------------------

namespace {

// Prints the operations of a record's batches.
class OperationPrinter final : public BatchVisitor, public WriteBatch::Handler {
 public:
  explicit OperationPrinter(Report* report) : m_report(*report) {}

  Status batch(SequenceNumber first_sequence, uint32_t, std::string_view encoded, const LogAddress&) override {
    m_sequence = first_sequence;
    return WriteBatch::iterate(encoded, *this);
  }
  void put(std::string_view key, std::string_view value) override {
    print("put", to_notation(key), to_notation(value));
    ++m_sequence;
  }
  void remove(std::string_view key) override {
    print("remove", to_notation(key), "");
    ++m_sequence;
  }
  void remove_range(std::string_view begin, std::string_view end) override {
    print("remove_range", to_notation(begin), to_notation(end));
    ++m_sequence;
  }
  void external_write(const ExternalWrite& write) override {
    print("external_write", fmt::format("container {} slot {}", write.container, write.slot),
          fmt::format("offset {} length {} crc32c {:08x}", write.offset, write.length, write.crc32c));
  }
  void note(std::string_view bytes) override { print("note", "", to_notation(bytes)); }

 private:
  void print(const char* operation, std::string key, std::string value) {
    m_report.row({{"sequence", m_sequence},
                  {"operation", std::string(operation)},
                  {"key", std::move(key)},
                  {"value", std::move(value)}});
  }

  Report& m_report;
  SequenceNumber m_sequence = 0;
};

// What the next open makes of the records.
class RecordStates {
 public:
  RecordStates(SegmentPool* pool, const Checkpoint& newest) : m_newest(newest) {
    std::set<uint64_t> listed;
    for (const SegmentValues& values : newest.segments) {
      listed.insert(values.epoch);
    }
    const Options options;
    LogRecovery recovery(pool, newest.uuid, options, newest.position, std::move(listed));
    m_followed = recovery.read_chain().ok() && recovery.report_orphans().ok() &&
                 recovery.recovered_end().sequence >= recovery.watermark();
    add(recovery.chain(), "replay");
    add(recovery.half_batch(), m_followed ? "half" : "replay");
  }
  // "tree": the newest checkpoint has it; "replay": it is read; "half": a fragment of a batch whose last one is not
  // there, dropped; "stale": of an earlier use of the segment, or no part of the log from the checkpoint on. Where the
  // log cannot be followed, or ends before what is known to be durable, the next open refuses it, and whatever may be a
  // part of it is "replay".
  std::string of(const FoundRecord& record) const {
    const auto found = m_states.find({record.segment->id, record.offset});
    if (found != m_states.end()) {
      return found->second;
    }
    const bool is_newer = record.header.last_sequence() > m_newest.position.sequence;
    if (record.header.epoch != record.segment->epoch || (is_newer && m_followed)) {
      return "stale";
    }
    return is_newer && record.header.epoch >= m_newest.position.epoch ? "replay" : "tree";
  }

 private:
  void add(const std::vector<FoundRecord>& records, const char* state) {
    for (const FoundRecord& record : records) {
      m_states[{record.segment->id, record.offset}] = state;
    }
  }

  const Checkpoint& m_newest;
  bool m_followed = false;
  std::map<std::pair<uint64_t, uint64_t>, std::string> m_states;  // by segment and offset
};

ReportFields row_of(const FoundRecord& record, const RecordStates& states) {
  const record_header_t& header = record.header;
  return {{"segment", record.segment->id},
          {"offset", record.offset},
          {"epoch", header.epoch},
          {"first_sequence", header.first_sequence},
          {"last_sequence", header.last_sequence()},
          {"durable_sequence", header.durable_seq},
          {"batches", uint64_t{header.batch_count}},
          {"body_bytes", uint64_t{header.body_bytes}},
          {"recovery", (header.flags & kRecoveryRecord) != 0},
          {"continues", (header.flags & kContinues) != 0},
          {"state", states.of(record)}};
}

Status print_operations(const FoundRecord& record, OperationPrinter& printer) {
  FileWindow window(record.segment->file.get(), record.segment->bytes, kLogBlockBytes);
  std::string_view bytes;
  VTKV_RETURN_IF_ERROR(window.view(record.offset, sizeof(record_header_t) + record.header.body_bytes, &bytes));
  bytes.remove_prefix(sizeof(record_header_t));
  return for_each_batch(record.header, bytes, {}, printer);
}

}  // namespace

Status Inspection::dump_log(bool operations, Report& report) {
  VTKV_RETURN_IF_ERROR(check_may_read());
  m_pool = std::make_unique<SegmentPool>(m_env.get(), m_directory + "/log", m_newest.geometry, m_newest.uuid);
  VTKV_RETURN_IF_ERROR(m_pool->load());
  const uint64_t oldest_epoch = m_older.epoch > 0 ? m_older.position.epoch : m_newest.position.epoch;
  std::map<SequenceNumber, std::vector<FoundRecord>> records;  // by first sequence
  report.begin_table("segments", true);
  for (LogSegment* segment : m_pool->segments()) {
    SegmentRecords found;
    uint64_t greatest_epoch = 0;
    VTKV_RETURN_IF_ERROR(sweep_segment(segment, m_newest.uuid, &found, &greatest_epoch));
    for (const auto& [offset, record] : found) {
      records[record.header.first_sequence].push_back(record);
    }
    report.row({{"segment", segment->id},
                {"epoch", segment->epoch.load()},
                {"bytes", segment->bytes},
                {"records", static_cast<uint64_t>(found.size())},
                {"state", std::string(segment->epoch >= oldest_epoch ? "needed" : "spare")}});
  }
  report.end_table();
  const RecordStates states(m_pool.get(), m_newest);
  report.begin_table("records", true);
  for (const auto& [sequence, same] : records) {
    for (const FoundRecord& record : same) {
      report.row(row_of(record, states));
    }
  }
  report.end_table();
  if (operations) {
    OperationPrinter printer(&report);
    report.begin_table("operations", true);
    for (const auto& [sequence, same] : records) {
      for (const FoundRecord& record : same) {
        VTKV_RETURN_IF_ERROR(print_operations(record, printer));
      }
    }
    report.end_table();
  }
  return {};
}

// --- tree -------------------------------------------------------------------------------------------------

Status Inspection::open_run(const RunLocation& location, std::shared_ptr<const Run>* run) const {
  return Run::open(*m_reader, location, run);
}

template <typename Visit>
Status Inspection::for_each_run(std::optional<uint64_t> run_id, Visit visit) {
  VTKV_RETURN_IF_ERROR(check_may_read());
  if (!m_reader) {
    VTKV_RETURN_IF_ERROR(ZoneFile::open(m_env.get(), m_directory + "/tree", m_newest.geometry.zone_bytes, &m_zones));
    m_reader = std::make_unique<SpanReader>(m_zones, std::make_shared<ReadCache>(0));
  }
  bool found = false;
  for (const RunLocation& location : m_newest.runs) {
    if (run_id && location.run_id != *run_id) {
      continue;
    }
    found = true;
    std::shared_ptr<const Run> run;
    VTKV_RETURN_IF_ERROR(open_run(location, &run));
    VTKV_RETURN_IF_ERROR(visit(*run));
  }
  return found || !run_id
             ? Status()
             : Status::not_found(m_directory + ": has no run " + std::to_string(*run_id) + "; 'dump run' lists them");
}

Status Inspection::dump_zones(Report& report) {
  struct Use {
    uint64_t bytes = 0, spans = 0, runs = 0, last_run = UINT64_MAX;
  };
  const uint64_t zone_bytes = m_newest.geometry.zone_bytes;
  std::map<uint64_t, Use> zones;
  const auto add = [&](uint64_t run, uint64_t begin, uint64_t bytes) {
    for (uint64_t offset = begin; offset < begin + bytes;) {
      const uint64_t end = std::min((offset / zone_bytes + 1) * zone_bytes, begin + bytes);
      Use& use = zones[offset / zone_bytes];
      use.bytes += end - offset;
      ++use.spans;
      use.runs += use.last_run != run;
      use.last_run = run;
      offset = end;
    }
  };
  VTKV_RETURN_IF_ERROR(for_each_run(std::nullopt, [&](const Run& run) {
    run.for_each_extent([&](uint64_t offset, uint64_t bytes, uint64_t) { add(run.location().run_id, offset, bytes); });
    return Status();
  }));
  uint64_t file_bytes = 0;
  VTKV_RETURN_IF_ERROR(m_zones->file()->size(&file_bytes));
  report.begin_table("zones", true);
  for (uint64_t zone = 0; zone * zone_bytes < file_bytes; ++zone) {
    const Use& use = zones[zone];
    report.row({{"zone", zone},
                {"live_bytes", use.bytes},
                {"live_fraction", static_cast<double>(use.bytes) / static_cast<double>(zone_bytes)},
                {"spans", use.spans},
                {"runs", use.runs}});
  }
  report.end_table();
  return {};
}

namespace {

ReportFields row_of(const Run& run) {
  const RunDescriptor& descriptor = run.descriptor();
  return {{"run", run.location().run_id},
          {"level", uint64_t{run.location().level}},
          {"entries", run.entries()},
          {"doubtful", descriptor.doubtful()},
          {"range_tombstones", static_cast<uint64_t>(run.range_tombstones()->count())},
          {"bytes", run.bytes()},
          {"spans", static_cast<uint64_t>(descriptor.spans.size())},
          {"slices", static_cast<uint64_t>(descriptor.slices.size())},
          {"smallest_sequence", descriptor.smallest_sequence},
          {"greatest_sequence", descriptor.greatest_sequence},
          {"smallest_key", descriptor.slices.empty() ? "" : to_notation(descriptor.smallest_key())},
          {"greatest_key", descriptor.slices.empty() ? "" : to_notation(descriptor.greatest_key())}};
}

std::string text_of(const Entry& entry) {
  ValuePointer pointer;
  if (entry.type == EntryType::value_pointer && pointer.decode(entry.value)) {
    return fmt::format("segment {} epoch {} offset {} length {} crc32c {:08x}", pointer.segment_id, pointer.epoch,
                       pointer.offset, pointer.length, pointer.crc32c);
  }
  return to_notation(entry.value);
}

Status print_entries(const Run& run, Report& report) {
  const std::unique_ptr<EntryIterator> iterator = run.new_iterator();
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    const Entry& entry = iterator->entry();
    report.row({{"run", run.location().run_id},
                {"key", to_notation(entry.key)},
                {"sequence", entry.sequence},
                {"type", std::string(name_of(entry.type))},
                {"value", text_of(entry)}});
  }
  run.range_tombstones()->for_each([&](const RangeTombstone& tombstone) {
    report.row({{"run", run.location().run_id},
                {"key", to_notation(tombstone.begin)},
                {"sequence", tombstone.sequence},
                {"type", std::string("range_tombstone")},
                {"value", to_notation(tombstone.end)}});
  });
  return iterator->status();
}

}  // namespace

Status Inspection::dump_runs(std::optional<uint64_t> run_id, bool entries, Report& report) {
  report.begin_table("runs", true);
  VTKV_RETURN_IF_ERROR(for_each_run(run_id, [&](const Run& run) {
    report.row(row_of(run));
    return Status();
  }));
  report.end_table();
  if (entries) {
    report.begin_table("entries", true);
    VTKV_RETURN_IF_ERROR(for_each_run(run_id, [&](const Run& run) { return print_entries(run, report); }));
    report.end_table();
  }
  return {};
}

Status Inspection::dump_filters(std::optional<uint64_t> run_id, Report& report) {
  report.begin_table("filters", true);
  VTKV_RETURN_IF_ERROR(for_each_run(run_id, [&](const Run& run) {
    const QuotientFilter& filter = run.filter();
    const auto keys = static_cast<double>(filter.entries());
    report.row({{"run", run.location().run_id},
                {"entries", filter.entries()},
                {"quotient_bits", uint64_t(filter.active() ? filter.quotient_bits() : 0)},
                {"remainder_bits", uint64_t(filter.active() ? filter.bits() - filter.quotient_bits() : 0)},
                {"load", filter.active() ? filter.load() : 0.0},
                {"memory_bytes", static_cast<uint64_t>(filter.memory_bytes())},
                {"memory_bytes_per_entry", keys > 0 ? static_cast<double>(filter.memory_bytes()) / keys : 0.0},
                {"disk_bytes", total_units(run.descriptor().filter_blocks) * kUnitBytes},
                // Of n fingerprints of p bits; a run without a filter says "may" to every key.
                {"false_positive_rate", filter.active() ? std::ldexp(keys, -filter.bits()) : 1.0}});
    return Status();
  }));
  report.end_table();
  return {};
}

}  // namespace vtkv
