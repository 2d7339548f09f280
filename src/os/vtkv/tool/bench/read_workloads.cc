// SPDX-License-Identifier: LGPL-2.1-or-later
// Point reads and scans of a whole database.
#include <fmt/format.h>

#include "vtkv/tool/bench/distribution.h"
#include "vtkv/tool/bench/workload.h"

namespace vtkv::bench {

namespace {

constexpr unsigned kSeekNexts = 10;
constexpr uint64_t kHotShare = 100;

void until_the_time_is_over(const LoadContext& context, Plan* plan) {
  plan->operations = UINT64_MAX;
  plan->seconds = context.settings.seconds;
}

Status readrandom(const LoadContext& context, Plan* plan) {
  until_the_time_is_over(context, plan);
  plan->worker = [&context](unsigned thread) -> Step {
    return [&context, random = Random(seed_of(context, thread)), buffer = std::string()](uint64_t,
                                                                                         Outcome* outcome) mutable {
      return get_key(context, random.below(context.state.keys), &buffer, outcome);
    };
  };
  return {};
}

Status readhot(const LoadContext& context, Plan* plan) {
  until_the_time_is_over(context, plan);
  plan->worker = [&context](unsigned thread) -> Step {
    return [&context, random = Random(seed_of(context, thread)), buffer = std::string()](uint64_t,
                                                                                         Outcome* outcome) mutable {
      return get_key(context, random.below(context.state.keys / kHotShare + 1), &buffer, outcome);
    };
  };
  return {};
}

Status readmissing(const LoadContext& context, Plan* plan) {
  until_the_time_is_over(context, plan);
  plan->worker = [&context](unsigned thread) -> Step {
    return [&context, random = Random(seed_of(context, thread)), buffer = std::string()](uint64_t,
                                                                                         Outcome*) mutable -> Status {
      const Key key = Key::missing(random.below(context.state.keys));
      const Status status = context.engine.get(key, &buffer);
      if (status.ok()) {
        return Status::corruption(fmt::format("key {} is found and was never written", key.view()));
      }
      return status.is_not_found() ? Status() : status;
    };
  };
  return {};
}

Status readwhilewriting(const LoadContext& context, Plan* plan) {
  VTKV_RETURN_IF_ERROR(readrandom(context, plan));
  plan->companion = [&context](const std::atomic<bool>& stop) -> Status {
    Random random(seed_of(context, context.settings.threads));
    std::string buffer;
    Outcome ignored;
    while (!stop.load(std::memory_order_relaxed)) {
      VTKV_RETURN_IF_ERROR(put_key(context, random.below(context.state.keys), &buffer, &ignored));
    }
    return {};
  };
  return {};
}

// Entry by entry over everything, as often as the time allows; every pass has to find every key.
Step whole_scan(const LoadContext& context, bool forward) {
  struct Pass {
    std::unique_ptr<Scan> scan;
    uint64_t seen = 0;
  };
  const auto pass = std::make_shared<Pass>();
  return [&context, forward, pass](uint64_t, Outcome* outcome) -> Status {
    if (!pass->scan) {
      pass->scan = context.engine.new_scan("", kEndOfKeys, ScanLength::whole);
      pass->seen = 0;
      forward ? pass->scan->seek_to_first() : pass->scan->seek_to_last();
    } else {
      forward ? pass->scan->next() : pass->scan->previous();
    }
    if (pass->scan->valid()) {
      ++pass->seen;
      return check_scanned(context, *pass->scan, outcome);
    }
    VTKV_RETURN_IF_ERROR(pass->scan->status());
    if (pass->seen != context.state.keys) {
      return Status::corruption(fmt::format("a scan found {} of {} keys", pass->seen, context.state.keys));
    }
    pass->scan.reset();
    outcome->operations = 0;
    return {};
  };
}

Status readseq(const LoadContext& context, Plan* plan) {
  until_the_time_is_over(context, plan);
  plan->worker = [&context](unsigned) { return whole_scan(context, true); };
  return {};
}

Status readreverse(const LoadContext& context, Plan* plan) {
  until_the_time_is_over(context, plan);
  plan->worker = [&context](unsigned) { return whole_scan(context, false); };
  return {};
}

Status seekrandom(const LoadContext& context, Plan* plan) {
  until_the_time_is_over(context, plan);
  plan->worker = [&context](unsigned thread) -> Step {
    return [&context, random = Random(seed_of(context, thread))](uint64_t, Outcome* outcome) mutable -> Status {
      const Key first(random.below(context.state.keys));
      const auto scan = context.engine.new_scan(first, kEndOfKeys, ScanLength::few);
      unsigned entries = 0;
      for (scan->seek(first); scan->valid() && entries < kSeekNexts; scan->next(), ++entries) {
        VTKV_RETURN_IF_ERROR(check_scanned(context, *scan, outcome));
      }
      VTKV_RETURN_IF_ERROR(scan->status());
      return entries > 0 ? Status() : Status::corruption(fmt::format("key {} is not found by a seek", first.view()));
    };
  };
  return {};
}

}  // namespace

void add_read_workloads(std::vector<WorkloadKind>* kinds) {
  const auto add = [kinds](std::string_view name, std::string_view help, bool writes,
                           decltype(WorkloadKind::plan) plan) {
    kinds->push_back({name, help, WorkloadKind::Needs::whole, writes, true, false, true, plan});
  };
  add("readrandom", "random existing keys", false, readrandom);
  add("readhot", "random ones of the first hundredth of the keys", false, readhot);
  add("readmissing", "keys between the existing ones", false, readmissing);
  add("readseq", "every entry, ascending; an operation is an entry", false, readseq);
  add("readreverse", "every entry, descending", false, readreverse);
  add("seekrandom", "a new scan at a random key, 10 entries", false, seekrandom);
  add("readwhilewriting", "readrandom beside one thread that overwrites", true, readwhilewriting);
}

}  // namespace vtkv::bench
