// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/kv_crash_target.h"

namespace vtkv {

namespace {

constexpr size_t kBatchesAfterRecovery = 4;
constexpr unsigned kShallow = 8;
constexpr uint64_t kMisreadMost = 24;

// Each way of the collector (gc/value_gc.h) in turn, and databases that are upgraded, with a crash in between, too.
KvWorkloadSettings with_way_of(uint64_t seed, KvWorkloadSettings settings) {
  if (seed % 2 == 0) {
    settings.io_depth = kShallow;
    settings.gc_lookup_cost_bytes = seed % 4 == 2 ? 0 : settings.gc_lookup_cost_bytes;
  }
  if (seed / 4 % 4 == 1) {
    settings.upgraded = true;
    settings.value_separation_bytes = 0;  // all in the tree, so that there is something to compress
    settings.memtable_bytes = 16 << 10;
  }
  return settings;
}

}  // namespace

KvCrashTarget::KvCrashTarget(const CrashRun& run, const KvWorkloadSettings& settings)
    : m_run(run), m_settings(with_way_of(run.seed, settings)) {}

std::string KvCrashTarget::record(SimEnv* env) {
  if (const Status status = KvWorkload::create(env, m_settings); !status.ok()) {
    return status.to_string();
  }
  env->restart_trace();
  if (const Status status = KvWorkload::upgrade(env, m_settings); !status.ok()) {
    return status.to_string();
  }
  KvWorkload workload(env, m_settings, {});
  if (std::string text = workload.open(0); !text.empty()) {
    return text;
  }
  workload.run(m_run.steps, m_run.seed);
  m_history = workload.history();
  return workload.wrong();
}

std::string KvCrashTarget::check(SimEnv* env, std::span<const SimMark> marks, uint64_t seed,
                                 std::unique_ptr<CrashTarget>* next) {
  size_t at_least = m_at_least;
  size_t at_most = m_at_most;
  promised(marks, &at_least, &at_most);
  const KvCollected collected_at_least = collected(marks, m_collected_at_least);
  KvWorkload workload(env, m_settings, m_history);
  // One of the first reads is wrong, and right when it is tried again. Where values stay in the log, one can still hide
  // an epoch, which comes again then.
  if (m_settings.misreads && m_settings.value_separation_bytes == 0 && !m_run.mutation && seed % 3 == 0) {
    env->misread_nth(1 + seed / 3 % kMisreadMost, seed % 2 == 0 ? SimMisread::zeros : SimMisread::bit_flips);
  }
  if (std::string text = workload.open(at_least, collected_at_least); !text.empty()) {
    return text;
  }
  env->clear_faults();
  const size_t found = workload.history().size();
  if (found > at_most) {
    return "batch " + std::to_string(found) + " is there; only " + std::to_string(at_most) + " were submitted";
  }
  if (next) {
    workload.run(kBatchesAfterRecovery, seed);
    if (!workload.wrong().empty()) {
      return workload.wrong();
    }
    auto target = std::make_unique<KvCrashTarget>(m_run, m_settings);
    target->m_history = workload.history();
    target->m_at_least = at_least;
    target->m_at_most = found;
    target->m_collected_at_least = collected_at_least;
    *next = std::move(target);
  }
  return {};
}

}  // namespace vtkv
