#include "swimstore/testing/cube_subject.h"

#include <algorithm>

namespace swimstore {

using vtkv::SimEnv;
using vtkv::SimMark;
using vtkv::SimProfile;

namespace {

constexpr uint64_t kHostBytes = 64 << 20;
constexpr uint64_t kContainerBytes = 4 << 20;  // more than a container has
constexpr unsigned kTransactionsAfterRecovery = 6;
constexpr unsigned kClasses = 3;  // that the load uses most

// Somebody else's file takes all but this much of the host, for good.
std::string leave_free(SimEnv& env, const std::string& name, uint64_t bytes) {
  std::unique_ptr<vtkv::File> file;
  vtkv::Status status = env.open_file(name, {.create = true}, &file);
  if (status.ok() && kHostBytes > env.allocated_bytes() + bytes) {
    status = file->allocate(0, kHostBytes - env.allocated_bytes() - bytes);
  }
  if (status.ok()) {
    status = file->sync();
  }
  if (status.ok()) {
    status = env.sync_directory("/");
  }
  return status.ok() ? "" : status.to_string();
}

// Punching a stretch fails half-way.
void spoil_punches(SimEnv& env) {
  for (unsigned size_class = 0; size_class < kClasses; size_class++) {
    const uint64_t stretch = CubeWorld::small_options(false).containers.stretch_bytes;
    for (uint64_t at = 0; at < kContainerBytes; at += stretch) {
      env.set_bad(vtkv::SimBad::punches, CubeWorld::container_path(size_class), at + stretch / 2, at + stretch);
    }
  }
}

// Of the container's file, from its start: some slots, or all of them.
uint64_t bad_bytes(uint64_t seed) { return seed / 9 % 2 == 0 ? kContainerBytes : (1 + seed / 18 % 32) * 4 * kBlockBytes; }

}  // namespace

CubeSubject::CubeSubject(const vtkv::CrashRun& run, CubeOptions options, CubeEvents* events)
    : m_run(run), m_options(std::move(options)), m_events(events) {}

CubeOptions CubeSubject::options_for(SimProfile profile) {
  return CubeWorld::small_options(profile == SimProfile::ext4 || profile == SimProfile::xfs);
}

void CubeSubject::spoil_slot(SimEnv& env) const {
  const uint64_t first = m_run.seed % 8 * kBlockBytes;
  env.set_bad(vtkv::SimBad::writes, CubeWorld::container_path(0), first, first + kBlockBytes);
}

// The second half is explored, on a cube that has reused and flushed already.
std::string CubeSubject::record(SimEnv* env) {
  env->set_capacity(kHostBytes);
  const uint64_t seed = m_run.seed;
  if (std::string wrong = CubeWorld::create(*env, m_options); !wrong.empty()) {
    return wrong;
  }
  if (std::string wrong = leave_free(*env, "/somebody_else", seed % 3 == 0 ? 2 << 20 : 560 << 10); !wrong.empty()) {
    return wrong;
  }
  CubeWorld world;
  if (std::string wrong = world.open(*env, m_options); !wrong.empty()) {
    return wrong;
  }
  env->run_until_idle();
  world.run(m_history, seed, m_run.steps / 2, 1 + seed % 4);
  if (std::string wrong = world.wait_for_all(); !wrong.empty()) {
    return wrong;
  }
  env->run_until_idle();
  if (seed % 3 != 1) {  // less than the margin: what data can spare is wanted, down to pieces of stretches
    if (std::string wrong = leave_free(*env, "/more_of_it", 64 << 10); !wrong.empty()) {
      return wrong;
    }
  }
  env->restart_trace();
  m_acknowledged = m_history.states.size() - 1;
  if (seed % 2 == 0) {
    spoil_punches(*env);
  }
  const bool has_bad_slot = seed % 3 == 1;
  if (has_bad_slot) {
    spoil_slot(*env);
  }
  world.run(m_history, seed + 1, m_run.steps - m_run.steps / 2, 1 + seed % 4);
  if (!has_bad_slot) {
    env->clear_faults();
  }
  std::string wrong = world.wait_for_all();
  env->clear_faults();
  if (!wrong.empty()) {
    const bool met_bad_slot = has_bad_slot && wrong.find("quarantined: not used again") != std::string::npos;
    if (m_events) {
      m_events->quarantined += met_bad_slot;
    }
    return met_bad_slot ? "" : wrong;  // it ended the cube
  }
  uint64_t found = 0;
  if (wrong = world.check(m_history, &found); !wrong.empty()) {
    return wrong;
  }
  if (m_events) {
    const ContainerStatistics containers = world.cube().containers().statistics();
    m_events->flushes += world.cube().database().statistics().memtable_flushes;
    m_events->punched_bytes += containers.punched_bytes_total;
    m_events->punched_pieces_bytes += containers.punched_pieces_bytes_total;
    m_events->primed_bytes += containers.primed_bytes_total;
    m_events->refused += m_history.refused;
  }
  return found == m_history.states.size() - 1 ? "" : "the last transaction is not there";
}

std::string CubeSubject::check(SimEnv* env, std::span<const SimMark> marks, uint64_t seed,
                               std::unique_ptr<vtkv::CrashSubject>* next) {
  uint64_t acknowledged = m_acknowledged;
  bool quarantined = m_quarantined;
  for (const SimMark& mark : marks) {
    if (mark.id == CubeWorld::kFailedMark) {
      quarantined = true;
    } else {
      acknowledged = std::max(acknowledged, mark.id);
    }
  }
  CubeWorld world;
  // What recovery could not read is damaged as long as the cube is open, and a second crash would not know of it; nor
  // does a second recovery, when it cannot read, drop what the first one dropped without having come to its end.
  const bool unreadable = !next && !m_is_second && seed % 3 == 0;
  if (unreadable) {
    env->set_bad(vtkv::SimBad::reads, CubeWorld::container_path(seed / 3 % kClasses), 0, bad_bytes(seed));
    world.expect_damage_up_to(m_history.states.size());
  }
  if (std::string wrong = world.open(*env, m_options); !wrong.empty()) {
    return wrong;
  }
  env->clear_faults();
  if (quarantined) {
    spoil_slot(*env);  // it stays so, and nobody meets it again
  }
  uint64_t found = 0;
  if (std::string wrong = world.check(m_history, &found); !wrong.empty()) {
    return wrong;
  }
  world.expect_damage_up_to(unreadable ? found : 0);
  if (found < acknowledged) {
    return "acknowledged " + std::to_string(acknowledged) + ", found " + std::to_string(found);
  }
  // Life goes on: whatever was lost is written over.
  History history = m_history;
  history.states.resize(found + 1);
  env->mark(found);
  world.run(history, seed, kTransactionsAfterRecovery, 2);
  if (std::string wrong = world.wait_for_all(); !wrong.empty()) {
    return wrong;
  }
  if (std::string wrong = world.check(history, &found); !wrong.empty()) {
    return "afterwards: " + wrong;
  }
  if (next) {
    auto subject = std::make_unique<CubeSubject>(m_run, m_options);
    subject->m_history = std::move(history);
    // Of the first crash only what was acknowledged before it is promised, until recovery has completed.
    subject->m_acknowledged = acknowledged;
    subject->m_is_second = true;
    subject->m_quarantined = quarantined;
    *next = std::move(subject);
  }
  return "";
}

}  // namespace swimstore
