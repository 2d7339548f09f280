#include "vtkv/testing/kv_subject.h"

namespace vtkv {

namespace {

constexpr size_t kBatchesAfterRecovery = 4;
constexpr unsigned kShallow = 8;

// Each way of the collector (db/value_gc.h) in turn.
KvWorldSettings with_way_of(uint64_t seed, KvWorldSettings settings) {
  if (seed % 2 == 0) {
    settings.io_depth = kShallow;
    settings.gc_lookup_cost_bytes = seed % 4 == 2 ? 0 : settings.gc_lookup_cost_bytes;
  }
  return settings;
}

}  // namespace

KvSubject::KvSubject(const CrashRun& run, const KvWorldSettings& settings)
    : m_run(run), m_settings(with_way_of(run.seed, settings)) {}

std::string KvSubject::record(SimEnv* env) {
  if (const Status status = KvWorld::create(env, m_settings); !status.ok()) {
    return status.to_string();
  }
  env->restart_trace();
  KvWorld world(env, m_settings, {});
  if (std::string text = world.open(0); !text.empty()) {
    return text;
  }
  world.run(m_run.steps, m_run.seed);
  m_history = world.history();
  return world.wrong();
}

std::string KvSubject::check(SimEnv* env, std::span<const SimMark> marks, uint64_t seed,
                             std::unique_ptr<CrashSubject>* next) {
  size_t at_least = m_at_least;
  size_t at_most = m_at_most;
  promised(marks, &at_least, &at_most);
  const KvCollected collected_at_least = collected(marks, m_collected_at_least);
  KvWorld world(env, m_settings, m_history);
  if (std::string text = world.open(at_least, collected_at_least); !text.empty()) {
    return text;
  }
  const size_t found = world.history().size();
  if (found > at_most) {
    return "batch " + std::to_string(found) + " is there; only " + std::to_string(at_most) + " were submitted";
  }
  if (next) {
    world.run(kBatchesAfterRecovery, seed);
    if (!world.wrong().empty()) {
      return world.wrong();
    }
    auto subject = std::make_unique<KvSubject>(m_run, m_settings);
    subject->m_history = world.history();
    subject->m_at_least = at_least;
    subject->m_at_most = found;
    subject->m_collected_at_least = collected_at_least;
    *next = std::move(subject);
  }
  return {};
}

}  // namespace vtkv
