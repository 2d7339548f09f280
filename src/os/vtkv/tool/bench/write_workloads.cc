// SPDX-License-Identifier: LGPL-2.1-or-later
// fill*, overwrite, updaterandom, and the two of the VT-tree paper.
#include <algorithm>

#include "vtkv/tool/bench/distribution.h"
#include "vtkv/tool/bench/workload.h"
#include "vtkv/util/mutex.h"

namespace vtkv::bench {

namespace {

constexpr uint64_t kBatchEntries = 1000;
constexpr uint64_t kBatchBytesMax = 4 << 20;
constexpr uint64_t kSyncedShare = 100;  // fillsync writes every hundredth key, as db_bench does with a thousandth
constexpr uint64_t kStreams = 16;
constexpr uint64_t kStreamBurstBytes = 1 << 20;
constexpr uint64_t kAppendedFiles = 1000;

// Puts of the key numbers that `number_of` gives for the tickets.
template <typename NumberOf>
void plan_puts(const LoadContext& context, NumberOf number_of, Plan* plan) {
  plan->worker = [&context, number_of](unsigned) -> Step {
    return [&context, number_of, buffer = std::string()](uint64_t ticket, Outcome* outcome) mutable {
      return put_key(context, number_of(ticket), &buffer, outcome);
    };
  };
}

Status fillseq(const LoadContext& context, Plan* plan) {
  plan->operations = context.settings.keys;
  plan_puts(context, [](uint64_t ticket) { return ticket; }, plan);
  return {};
}

Status fillrandom(const LoadContext& context, Plan* plan) {
  plan->operations = context.settings.keys;
  plan_puts(context, Permutation(context.settings.keys, context.settings.seed), plan);
  return {};
}

Status fillsync(const LoadContext& context, Plan* plan) {
  plan->operations = std::max<uint64_t>(context.settings.keys / kSyncedShare, 1000);
  plan->seconds = context.settings.seconds;
  plan_puts(context, Permutation(plan->operations, context.settings.seed), plan);
  return {};
}

Status fillbatch(const LoadContext& context, Plan* plan) {
  const uint64_t keys = context.settings.keys;
  const uint64_t entry_bytes = kKeyBytes + context.settings.value_bytes;
  const uint64_t entries = std::clamp<uint64_t>(kBatchBytesMax / entry_bytes, 1, kBatchEntries);
  plan->operations = (keys + entries - 1) / entries;
  plan->worker = [&context, keys, entries](unsigned) -> Step {
    return [&context, keys, entries](uint64_t ticket, Outcome* outcome) {
      const uint64_t first = ticket * entries, last = std::min(keys, first + entries);
      std::vector<Key> names;
      std::vector<std::string> values(last - first);
      std::vector<KeyValue> batch;
      names.reserve(last - first);
      for (uint64_t number = first; number < last; ++number) {
        std::string* value = &values[number - first];
        context.values.make(number, context.state.version, value);
        batch.push_back({names.emplace_back(number).view(), *value});
        outcome->written_bytes += kKeyBytes + value->size();
      }
      outcome->operations = last - first;
      return context.engine.put_many(batch);
    };
  };
  return {};
}

Status overwrite(const LoadContext& context, Plan* plan) {
  plan->operations = static_cast<uint64_t>(static_cast<double>(context.state.keys) * context.settings.overwrites);
  if (context.settings.by_time) {
    plan->operations = UINT64_MAX;
    plan->seconds = context.settings.seconds;
  }
  plan->worker = [&context](unsigned thread) -> Step {
    return [&context, random = Random(seed_of(context, thread)), buffer = std::string()](uint64_t,
                                                                                         Outcome* outcome) mutable {
      return put_key(context, random.below(context.state.keys), &buffer, outcome);
    };
  };
  return {};
}

Status overwrite_gc(const LoadContext& context, Plan* plan) {
  VTKV_RETURN_IF_ERROR(overwrite(context, plan));
  plan->companion = [&context](const std::atomic<bool>& stop) -> Status {
    while (!stop.load()) {
      VTKV_RETURN_IF_ERROR(context.engine.collect_garbage());
    }
    return {};
  };
  return {};
}

Status gc(const LoadContext& context, Plan* plan) {
  plan->operations = 1;
  plan->worker = [&context](unsigned) -> Step {
    return [&context](uint64_t, Outcome*) { return context.engine.collect_garbage(); };
  };
  return {};
}

Status defragment(const LoadContext& context, Plan* plan) {
  plan->operations = 1;
  plan->worker = [&context](unsigned) -> Step {
    return [&context](uint64_t, Outcome*) { return context.engine.defragment(); };
  };
  return {};
}

Status updaterandom(const LoadContext& context, Plan* plan) {
  plan->operations = UINT64_MAX;
  plan->seconds = context.settings.seconds;
  plan->worker = [&context](unsigned thread) -> Step {
    return [&context, random = Random(seed_of(context, thread)), buffer = std::string()](uint64_t,
                                                                                         Outcome* outcome) mutable {
      const uint64_t number = random.below(context.state.keys);
      VTKV_RETURN_IF_ERROR(get_key(context, number, &buffer, outcome));
      return put_key(context, number, &buffer, outcome);
    };
  };
  return {};
}

// Regions of equal size over all keys; each is written in ascending order, and bursts of them take turns at random.
// The threads share the burst: one that kept its own could run out of tickets before the burst is written.
class Regions {
 public:
  Regions(uint64_t keys, uint64_t regions, uint64_t burst, uint64_t seed) : m_burst(burst), m_random(seed) {
    for (uint64_t i = 0; i < regions; ++i) {
      m_open.push_back({keys * i / regions, keys * (i + 1) / regions});
    }
  }
  // The next key's number. Every one comes once. REQUIRES: called at most `keys` times.
  uint64_t take() {
    MutexLock lock(m_lock);
    if (m_next == m_end) {
      start_burst();
    }
    return m_next++;
  }

 private:
  struct Region {
    uint64_t next, end;
  };

  void start_burst() REQUIRES(m_lock) {
    const size_t chosen = m_random.below(m_open.size());
    Region& region = m_open[chosen];
    m_next = region.next;
    m_end = region.next = std::min(region.next + m_burst, region.end);
    if (region.next == region.end) {
      m_open[chosen] = m_open.back();
      m_open.pop_back();
    }
  }

  const uint64_t m_burst;
  Mutex m_lock;
  Random m_random GUARDED_BY(m_lock);
  std::vector<Region> m_open GUARDED_BY(m_lock);  // none is empty
  uint64_t m_next GUARDED_BY(m_lock) = 0, m_end GUARDED_BY(m_lock) = 0;
};

void plan_regions(const LoadContext& context, uint64_t regions, uint64_t burst, Plan* plan) {
  const uint64_t keys = context.settings.keys;
  plan->operations = keys;
  const auto shared = std::make_shared<Regions>(keys, std::min(regions, keys), burst, context.settings.seed);
  plan->worker = [&context, shared](unsigned) -> Step {
    return [&context, shared, buffer = std::string()](uint64_t, Outcome* outcome) mutable {
      return put_key(context, shared->take(), &buffer, outcome);
    };
  };
}

Status sequential_insertion(const LoadContext& context, Plan* plan) {
  const uint64_t burst = std::max<uint64_t>(1, kStreamBurstBytes / (kKeyBytes + context.settings.value_bytes));
  plan_regions(context, kStreams, burst, plan);
  return {};
}

Status random_append(const LoadContext& context, Plan* plan) {
  plan_regions(context, kAppendedFiles, 1, plan);
  return {};
}

}  // namespace

void add_write_workloads(std::vector<WorkloadKind>* kinds) {
  using enum WorkloadKind::Needs;
  const auto add = [kinds](std::string_view name, std::string_view help, WorkloadKind::Needs needs, bool synced,
                           bool whole_after, decltype(WorkloadKind::plan) plan) {
    kinds->push_back({name, help, needs, true, whole_after, synced, false, plan});
  };
  add("fillseq", "every key once, ascending", empty, false, true, fillseq);
  add("fillrandom", "every key once, in random order", empty, false, true, fillrandom);
  add("fillsync", "every hundredth of as many keys, in random order, each durable on return", empty, true, false,
      fillsync);
  add("fillbatch", "every key once, ascending, in batches of 1000 (or 4 MiB)", empty, false, true, fillbatch);
  add("overwrite", "random existing keys: --overwrites times as many as there are, or for --seconds", whole, false,
      true, overwrite);
  add("updaterandom", "reads a random key and writes it", whole, false, true, updaterandom);
  add("overwrite_gc", "overwrite while the engine collects garbage without a pause", whole, false, true, overwrite_gc);
  add("gc", "one full garbage collection of what earlier workloads left", whole, false, true, gc);
  add("defragment", "one pass of defragmentation over what earlier workloads left", whole, false, true, defragment);
  add("sequential_insertion",
      "16 regions of the key space, each filled in ascending order, by turns in bursts of 1 MiB", empty, false, true,
      sequential_insertion);
  add("random_append", "1000 regions (files), each filled in ascending order; every write goes to a random one", empty,
      false, true, random_append);
}

}  // namespace vtkv::bench
