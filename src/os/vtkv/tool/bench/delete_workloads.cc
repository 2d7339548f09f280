// SPDX-License-Identifier: LGPL-2.1-or-later
// Deletes by key and by range, logs that are trimmed, and scans of what was deleted.
#include <algorithm>

#include <fmt/format.h>

#include "vtkv/tool/bench/distribution.h"
#include "vtkv/tool/bench/workload.h"

namespace vtkv::bench {

namespace {

constexpr uint64_t kRanges = 10000;
constexpr uint64_t kRangeKeys = 10;
constexpr uint64_t kDeletedKeysMax = 1000000;
constexpr unsigned kLogs = 64;           // placement groups of an OSD
constexpr uint64_t kLogEntries = 500;    // that each keeps
constexpr uint64_t kTrimAtOnce = 10;

Status deleterandom(const LoadContext& context, Plan* plan) {
  plan->operations = std::min(kRanges, context.state.keys);
  plan->seconds = context.settings.seconds;
  const Permutation order(context.state.keys, context.settings.seed + 1);
  plan->worker = [&context, order](unsigned) -> Step {
    return [&context, order](uint64_t ticket, Outcome* outcome) {
      outcome->written_bytes += kKeyBytes;
      return context.engine.remove(Key(order(ticket)));
    };
  };
  return {};
}

Status delete_range(const LoadContext& context, Plan* plan) {
  const uint64_t ranges = std::max<uint64_t>(context.state.keys / kRangeKeys, 1);
  plan->operations = std::min(kRanges, ranges);
  plan->seconds = context.settings.seconds;  // where an engine has to read what it deletes
  const Permutation order(ranges, context.settings.seed + 1);
  plan->worker = [&context, order](unsigned) -> Step {
    return [&context, order](uint64_t ticket, Outcome* outcome) {
      const uint64_t first = order(ticket) * kRangeKeys;
      outcome->written_bytes += 2 * kKeyBytes;
      return context.engine.remove_range(Key(first), Key(first + kRangeKeys));
    };
  };
  return {};
}

Status pglog(const LoadContext& context, Plan* plan) {
  plan->operations = UINT64_MAX;
  plan->seconds = context.settings.seconds;
  plan->worker = [&context](unsigned thread) -> Step {
    // Each thread has logs of its own.
    std::vector<uint64_t> heads(kLogs), tails(kLogs);
    return [&context, thread, random = Random(seed_of(context, thread)), buffer = std::string(), heads, tails](
               uint64_t, Outcome* outcome) mutable -> Status {
      const uint32_t log = static_cast<uint32_t>(random.below(kLogs));
      const uint64_t entry = heads[log]++;
      const uint32_t name = thread * kLogs + log;
      const std::string_view value = context.values.make(entry, name, &buffer);
      outcome->written_bytes += kKeyBytes + value.size();
      VTKV_RETURN_IF_ERROR(context.engine.put(Key::in_log(name, entry), value));
      if (heads[log] - tails[log] < kLogEntries + kTrimAtOnce) {
        return {};
      }
      for (uint64_t i = 0; i < kTrimAtOnce; ++i) {
        outcome->written_bytes += kKeyBytes;
        VTKV_RETURN_IF_ERROR(context.engine.remove(Key::in_log(name, tails[log]++)));
      }
      return {};
    };
  };
  context.state.extra = context.settings.threads * kLogs * (kLogEntries + kTrimAtOnce / 2);
  return {};
}

// A scan of [begin, end) that finds nothing.
void plan_empty_scans(const LoadContext& context, const Key& begin, const Key& end, Plan* plan) {
  plan->operations = UINT64_MAX;
  plan->seconds = context.settings.seconds;
  plan->worker = [&context, begin, end](unsigned) -> Step {
    return [&context, begin, end](uint64_t, Outcome*) -> Status {
      const auto scan = context.engine.new_scan(begin, end, ScanLength::few);
      scan->seek_to_first();
      if (scan->valid()) {
        return Status::corruption(fmt::format("key {} is found and was deleted", scan->key()));
      }
      return scan->status();
    };
  };
}

// The middle of the database: at most half of it.
void choose_deleted(const LoadContext& context, uint64_t* first, uint64_t* count) {
  *count = std::clamp<uint64_t>(context.state.keys / 2, 1, kDeletedKeysMax);
  *first = (context.state.keys - *count) / 2;
}

Status scan_empty(const LoadContext& context, Plan* plan) {
  // Between two neighbours in the middle: every run has to be asked, as for the others.
  const uint64_t ten = context.state.keys / 20;
  plan_empty_scans(context, Key::missing(ten * 10), Key(ten * 10 + 10), plan);
  return {};
}

Status scan_range_deleted(const LoadContext& context, Plan* plan) {
  uint64_t first = 0, count = 0;
  choose_deleted(context, &first, &count);
  VTKV_RETURN_IF_ERROR(context.engine.remove_range(Key(first), Key(first + count)));
  plan_empty_scans(context, Key(first), Key(first + count), plan);
  return {};
}

Status scan_point_deleted(const LoadContext& context, Plan* plan) {
  uint64_t first = 0, count = 0;
  choose_deleted(context, &first, &count);
  for (uint64_t number = first; number < first + count; ++number) {
    VTKV_RETURN_IF_ERROR(context.engine.remove(Key(number)));
  }
  VTKV_RETURN_IF_ERROR(context.engine.settle());
  plan_empty_scans(context, Key(first), Key(first + count), plan);
  return {};
}

}  // namespace

void add_delete_workloads(std::vector<WorkloadKind>* kinds) {
  const auto add = [kinds](std::string_view name, std::string_view help, bool writes, bool whole_after,
                           decltype(WorkloadKind::plan) plan) {
    kinds->push_back({name, help, WorkloadKind::Needs::whole, writes, whole_after, false, false, plan});
  };
  add("deleterandom", "10,000 random keys, one by one", true, false, deleterandom);
  add("delete_range", "10,000 random ranges of 10 keys", true, false, delete_range);
  add("pglog", "64 logs per thread: each operation appends an entry, and trims the oldest in order past 500", true,
      false, pglog);
  add("scan_empty", "a scan between two neighbouring keys", false, true, scan_empty);
  add("scan_range_deleted", "the same over a million keys (half of all, if fewer), deleted as one range", false, false,
      scan_range_deleted);
  add("scan_point_deleted", "the same over as many keys, deleted one by one; after the engine has settled", false,
      false, scan_point_deleted);
}

}  // namespace vtkv::bench
