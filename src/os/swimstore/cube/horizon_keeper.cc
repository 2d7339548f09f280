#include "swimstore/cube/horizon_keeper.h"

#include <chrono>

namespace swimstore {

using vtkv::NextStep;
using namespace std::chrono_literals;

namespace {

constexpr auto kPause = 100ms;
constexpr unsigned kAskedMax = 4;

}  // namespace

HorizonKeeper::HorizonKeeper(vtkv::Env* env, ContainerSet& containers, vtkv::DB& database)
    : m_containers(containers), m_database(database) {
  m_worker = env->start_worker("horizon", 0, [this](vtkv::IoQueue&) { return step(); });
}

NextStep HorizonKeeper::step() {
  m_asleep = false;
  const uint64_t activity = m_activity.load();
  const bool moved = activity != m_activity_seen;
  m_activity_seen = activity;
  if (moved) {
    m_asked = 0;
    return NextStep::later(kPause);
  }
  if (m_asked == 0 || (m_containers.has_waiting() && m_asked < kAskedMax)) {
    m_asked++;
    m_database.advance_reuse_horizon();
    return NextStep::later(kPause);
  }
  m_asleep = true;
  // What came between the look at the counter and the line above has not woken anybody.
  return m_activity.load() == activity ? NextStep::on_event() : NextStep::later(kPause);
}

}  // namespace swimstore
