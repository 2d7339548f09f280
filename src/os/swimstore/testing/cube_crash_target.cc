// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/cube_crash_target.h"

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
constexpr uint64_t kMisreadMost = 32;

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

// Punching a chunk fails half-way.
void spoil_punches(SimEnv& env) {
  for (unsigned size_class = 0; size_class < kClasses; size_class++) {
    const uint64_t chunk = CubeWorkload::small_options(false).containers.chunk_bytes;
    for (uint64_t at = 0; at < kContainerBytes; at += chunk) {
      env.set_bad(vtkv::SimBad::punches, CubeWorkload::container_path(size_class), at + chunk / 2, at + chunk);
    }
  }
}

// Of the container's file, from its start: some slots, or all of them.
uint64_t bad_bytes(uint64_t seed) {
  return seed / 9 % 2 == 0 ? kContainerBytes : (1 + seed / 18 % 32) * 4 * kBlockBytes;
}

}  // namespace

CubeCrashTarget::CubeCrashTarget(const vtkv::CrashRun& run, CubeOptions options, CubeEvents* events)
    : m_run(run), m_options(std::move(options)), m_events(events) {}

CubeOptions CubeCrashTarget::options_for(SimProfile profile) {
  return CubeWorkload::small_options(profile == SimProfile::ext4 || profile == SimProfile::xfs);
}

void CubeCrashTarget::spoil_slot(SimEnv& env) const {
  const uint64_t first = m_run.seed % 8 * kBlockBytes;
  env.set_bad(vtkv::SimBad::writes, CubeWorkload::container_path(0), first, first + kBlockBytes);
}

// The second half is explored, on a cube that has reused and flushed already.
std::string CubeCrashTarget::record(SimEnv* env) {
  env->set_capacity(kHostBytes);
  const uint64_t seed = m_run.seed;
  if (std::string wrong = CubeWorkload::create(*env, m_options); !wrong.empty()) {
    return wrong;
  }
  if (std::string wrong = leave_free(*env, "/somebody_else", seed % 3 == 0 ? 2 << 20 : 560 << 10); !wrong.empty()) {
    return wrong;
  }
  CubeWorkload workload;
  if (std::string wrong = workload.open(*env, m_options); !wrong.empty()) {
    return wrong;
  }
  env->run_until_idle();
  workload.run(m_history, seed, m_run.steps / 2, 1 + seed % 4);
  if (std::string wrong = workload.wait_for_all(); !wrong.empty()) {
    return wrong;
  }
  env->run_until_idle();
  if (seed % 3 != 1) {  // less than the margin: what data can spare is wanted, down to fragments of chunks
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
  workload.run(m_history, seed + 1, m_run.steps - m_run.steps / 2, 1 + seed % 4);
  if (!has_bad_slot) {
    env->clear_faults();
  }
  std::string wrong = workload.wait_for_all();
  env->clear_faults();
  if (!wrong.empty()) {
    const bool met_bad_slot = has_bad_slot && wrong.find("quarantined: not used again") != std::string::npos;
    if (m_events) {
      m_events->quarantined += met_bad_slot;
    }
    return met_bad_slot ? "" : wrong;  // it ended the cube
  }
  uint64_t found = 0;
  if (wrong = workload.check(m_history, &found); !wrong.empty()) {
    return wrong;
  }
  if (m_events) {
    const ContainerStatistics containers = workload.cube().containers().statistics();
    m_events->flushes += workload.cube().database().statistics().memtable_flushes;
    m_events->punched_bytes += containers.punched_bytes_total;
    m_events->punched_fragments_bytes += containers.punched_fragments_bytes_total;
    m_events->primed_bytes += containers.primed_bytes_total;
    m_events->refused += m_history.refused;
  }
  return found == m_history.states.size() - 1 ? "" : "the last transaction is not there";
}

std::string CubeCrashTarget::check(SimEnv* env, std::span<const SimMark> marks, uint64_t seed,
                                   std::unique_ptr<vtkv::CrashTarget>* next) {
  uint64_t acknowledged = m_acknowledged;
  bool quarantined = m_quarantined;
  for (const SimMark& mark : marks) {
    if (mark.id == CubeWorkload::kFailedMark) {
      quarantined = true;
    } else {
      acknowledged = std::max(acknowledged, mark.id);
    }
  }
  CubeWorkload workload;
  // What recovery could not read is damaged as long as the cube is open, and a second crash would not know of it; nor
  // does a second recovery, when it cannot read, drop what the first one dropped without having come to its end.
  const bool unreadable = !next && !m_is_second && seed % 3 == 0;
  if (unreadable) {
    env->set_bad(vtkv::SimBad::reads, CubeWorkload::container_path(seed / 3 % kClasses), 0, bad_bytes(seed));
    workload.expect_damage_up_to(m_history.states.size());
  } else if (seed % 3 == 1) {  // one of the first reads is wrong, and right when it is tried again
    env->misread_nth(1 + seed / 3 % kMisreadMost,
                     seed % 2 == 0 ? vtkv::SimMisread::zeros : vtkv::SimMisread::bit_flips);
  }
  if (std::string wrong = workload.open(*env, m_options); !wrong.empty()) {
    return wrong;
  }
  env->clear_faults();
  if (quarantined) {
    spoil_slot(*env);  // it stays so, and nobody meets it again
  }
  uint64_t found = 0;
  if (std::string wrong = workload.check(m_history, &found); !wrong.empty()) {
    return wrong;
  }
  workload.expect_damage_up_to(unreadable ? found : 0);
  if (found < acknowledged) {
    return "acknowledged " + std::to_string(acknowledged) + ", found " + std::to_string(found);
  }
  // Life goes on: whatever was lost is written over.
  History history = m_history;
  history.states.resize(found + 1);
  env->mark(found);
  workload.run(history, seed, kTransactionsAfterRecovery, 2);
  if (std::string wrong = workload.wait_for_all(); !wrong.empty()) {
    return wrong;
  }
  if (std::string wrong = workload.check(history, &found); !wrong.empty()) {
    return "afterwards: " + wrong;
  }
  if (next) {
    auto target = std::make_unique<CubeCrashTarget>(m_run, m_options);
    target->m_history = std::move(history);
    // Of the first crash only what was acknowledged before it is promised, until recovery has completed.
    target->m_acknowledged = acknowledged;
    target->m_is_second = true;
    target->m_quarantined = quarantined;
    *next = std::move(target);
  }
  return "";
}

}  // namespace swimstore
