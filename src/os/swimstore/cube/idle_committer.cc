// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/cube/idle_committer.h"

#include <chrono>

namespace swimstore {

using vtkv::NextStep;
using namespace std::chrono_literals;

namespace {

constexpr auto kPause = 100ms;
constexpr unsigned kCommitsMax = 4;

}  // namespace

IdleCommitter::IdleCommitter(vtkv::Env* env, ContainerSet& containers, vtkv::DB& database)
    : m_containers(containers), m_database(database) {
  m_worker = env->start_worker("idle_commit", 0, [this](vtkv::IoQueue&) { return step(); });
}

NextStep IdleCommitter::step() {
  if (m_activity.look()) {
    m_commits = 0;
    return NextStep::later(kPause);
  }
  if (m_commits == 0 || (m_containers.has_waiting() && m_commits < kCommitsMax)) {
    // A record that is formed before all is durable does not say that it is: one more follows.
    m_commits += m_database.durable_sequence() < m_database.statistics().last_sequence ? 0 : 1;
    m_database.advance_reuse_horizon();
    return NextStep::later(kPause);
  }
  return m_activity.fall_asleep() ? NextStep::on_event() : NextStep::later(kPause);
}

}  // namespace swimstore
