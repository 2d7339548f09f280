// SPDX-License-Identifier: LGPL-2.1-or-later
// YCSB's core workloads A to F (Cooper et al., SoCC '10).
#include <atomic>
#include <memory>

#include "vtkv/tool/bench/distribution.h"
#include "vtkv/tool/bench/workload.h"

namespace vtkv::bench {

namespace {

constexpr uint64_t kScanEntriesMax = 100;

// Parts in a hundred; the rest are reads.
struct Mix {
  unsigned update = 0, insert = 0, scan = 0, modify = 0;
  bool latest = false;  // reads prefer what was inserted last
};

// The keys that the clients of a run insert, in ascending order.
struct Inserts {
  explicit Inserts(uint64_t keys) : next(keys), there(keys) {}
  std::atomic<uint64_t> next;
  std::atomic<uint64_t> there;         // every key below it can be read
  std::atomic<bool> gap_stays{false};  // a put has failed: nobody may wait for it
};

class Client {
 public:
  Client(const LoadContext& context, const Mix& mix, std::shared_ptr<const Zipfian> popular,
         std::shared_ptr<Inserts> inserts, unsigned thread)
      : m_context(context),
        m_mix(mix),
        m_popular(std::move(popular)),
        m_inserts(std::move(inserts)),
        m_random(seed_of(context, thread)) {}

  Status step(Outcome* outcome) {
    const uint64_t dice = m_random.below(100);
    if (dice < m_mix.update) {
      return put_key(m_context, choose(), &m_buffer, outcome);
    }
    if (dice < m_mix.insert) {
      return insert(outcome);
    }
    if (dice < m_mix.scan) {
      return scan(outcome);
    }
    const uint64_t number = choose();
    VTKV_RETURN_IF_ERROR(get_key(m_context, number, &m_buffer, outcome));
    return dice < m_mix.modify ? put_key(m_context, number, &m_buffer, outcome) : Status();
  }

 private:
  uint64_t choose() {
    if (!m_mix.latest) {
      return m_popular->scrambled(m_random);
    }
    const uint64_t newest = m_inserts->there.load(std::memory_order_acquire) - 1;
    return newest - std::min(newest, m_popular->rank(m_random));
  }
  Status insert(Outcome* outcome) {
    const uint64_t number = m_inserts->next.fetch_add(1);
    const Status status = put_key(m_context, number, &m_buffer, outcome);
    if (!status.ok()) {
      m_inserts->gap_stays.store(true);
      return status;
    }
    // Readers may choose only what is there, and every key below it.
    for (uint64_t expected = number; !m_inserts->there.compare_exchange_weak(expected, number + 1); expected = number) {
      if (m_inserts->gap_stays.load()) {
        break;
      }
    }
    return {};
  }
  Status scan(Outcome* outcome) {
    const Key first(choose());
    const uint64_t entries = 1 + m_random.below(kScanEntriesMax);
    const auto scan = m_context.engine.new_scan(first, kEndOfKeys, ScanLength::few);
    scan->seek(first);
    for (uint64_t i = 0; i < entries && scan->valid(); ++i, scan->next()) {
      VTKV_RETURN_IF_ERROR(check_scanned(m_context, *scan, outcome));
    }
    return scan->status();
  }

  const LoadContext& m_context;
  const Mix m_mix;
  const std::shared_ptr<const Zipfian> m_popular;
  const std::shared_ptr<Inserts> m_inserts;
  Random m_random;
  std::string m_buffer;
};

Status plan_mix(const LoadContext& context, Mix mix, Plan* plan) {
  // To thresholds of one dice.
  mix.insert += mix.update;
  mix.scan += mix.insert;
  mix.modify += mix.scan;
  plan->operations = UINT64_MAX;
  plan->seconds = context.settings.seconds;
  const auto popular = std::make_shared<const Zipfian>(context.state.keys);
  const auto inserts = std::make_shared<Inserts>(context.state.keys);
  plan->worker = [&context, mix, popular, inserts](unsigned thread) -> Step {
    const auto client = std::make_shared<Client>(context, mix, popular, inserts, thread);
    return [client](uint64_t, Outcome* outcome) { return client->step(outcome); };
  };
  plan->finished = [&context, inserts] { context.state.keys = inserts->there.load(); };
  return {};
}

}  // namespace

void add_ycsb_workloads(std::vector<WorkloadKind>* kinds) {
  const auto add = [kinds](std::string_view name, std::string_view help, bool writes,
                           decltype(WorkloadKind::plan) plan) {
    kinds->push_back({name, help, WorkloadKind::Needs::whole, writes, true, false, true, plan});
  };
  add("ycsb_a", "half reads, half updates, zipfian", true,
      [](const LoadContext& context, Plan* plan) { return plan_mix(context, {.update = 50}, plan); });
  add("ycsb_b", "95 % reads, 5 % updates, zipfian", true,
      [](const LoadContext& context, Plan* plan) { return plan_mix(context, {.update = 5}, plan); });
  add("ycsb_c", "reads, zipfian", false,
      [](const LoadContext& context, Plan* plan) { return plan_mix(context, {}, plan); });
  add("ycsb_d", "95 % reads of the latest, 5 % inserts", true,
      [](const LoadContext& context, Plan* plan) { return plan_mix(context, {.insert = 5, .latest = true}, plan); });
  add("ycsb_e", "95 % scans of 1 to 100 entries, zipfian, 5 % inserts", true,
      [](const LoadContext& context, Plan* plan) { return plan_mix(context, {.insert = 5, .scan = 95}, plan); });
  add("ycsb_f", "half reads, half reads followed by a write of the same key, zipfian", true,
      [](const LoadContext& context, Plan* plan) { return plan_mix(context, {.modify = 50}, plan); });
}

}  // namespace vtkv::bench
