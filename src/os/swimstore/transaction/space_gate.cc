// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_gate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/ceph_context.h"
#include "common/debug.h"

#include "swimstore/ops/space_report.h"
#include "swimstore/ops/suspended_timeout.h"

#define dout_context m_cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.space "

namespace swimstore {

namespace {

constexpr uint64_t kSayInterval_us = 60 * 1000 * 1000;
constexpr auto kLookInterval = std::chrono::milliseconds(20);

}  // namespace

SpaceGate::SpaceGate(CephContext* cct, vtkv::Env* env, std::function<ContainerStatistics()> statistics,
                     std::function<void(uint64_t bytes)> give_up)
    : m_cct(cct),
      m_env(env),
      m_throttle(env, std::move(statistics), cct->_conf.get_val<double>("swimstore_space_throttle_time"),
                 SpaceLimits::read(cct->_conf).on_its_way_bytes),
      m_give_up(std::move(give_up)),
      m_patience_us(static_cast<uint64_t>(1e6 * cct->_conf.get_val<double>("swimstore_space_wait_time"))),
      m_look(env->new_signal()) {
  m_worker = env->start_worker("space", 0, [this](vtkv::IoQueue&) { return look_again(); });
}

bool SpaceGate::promise(ContainerSet& containers, const SpaceNeed& need, uint64_t waited_us) {
  const Urgency of_waiting = waited_us > 0 && waited_us >= m_patience_us ? Urgency::late : Urgency::usual;
  const Urgency urgency = need.may_wait ? of_waiting : Urgency::privileged;
  return need.is_much ? containers.promise_much(need.slot_bytes, urgency, need.metadata_bytes)
                      : containers.promise(need.slot_bytes, urgency);
}

uint64_t SpaceGate::throttle_us(const SpaceNeed& need, uint64_t bytes, HBHandle* handle) {
  return !need.is_none() && need.may_wait ? m_throttle.before_write_us(bytes, handle) : 0;
}

uint64_t SpaceGate::enter_us(ContainerSet& containers, const SpaceNeed& need, uint64_t throttled_us, HBHandle* handle) {
  if (need.is_none() || promise(containers, need, 0)) {
    return 0;
  }
  const SuspendedTimeout suspended(handle);
  return wait_us(containers, need, throttled_us);
}

uint64_t SpaceGate::wait_us(ContainerSet& containers, const SpaceNeed& need, uint64_t throttled_us) {
  vtkv::MutexLock lock(m_mutex);
  const uint64_t began_us = m_env->now_us();
  const auto began = m_began_us.insert(began_us);
  ++m_waiting;
  if (m_said_us == 0 || began_us - m_said_us > kSayInterval_us) {
    m_said_us = began_us;
    derr << "no room for " << need.slot_bytes << " bytes and what they need of log and tree"
         << (need.metadata_bytes > 0 ? ", " + std::to_string(need.metadata_bytes) + " bytes" : "")
         << ": they wait. Remove objects, "
         << "free space on the host file system (on that of log and tree, where they lie elsewhere and it is full) or "
         << "enlarge it" << dendl;
  }
  m_worker->wake();
  bool gave_up = false;
  for (bool promised = false; !promised;) {
    m_look->wait(lock, [this, looks = m_looks]() REQUIRES(m_mutex) { return m_looks != looks; });
    lock.unlock();
    const uint64_t waited_us = throttled_us + m_env->now_us() - began_us;
    promised = promise(containers, need, waited_us);
    if (!promised && !gave_up && waited_us > m_patience_us + kGiveUp_us) {
      gave_up = true;
      m_give_up(need.slot_bytes + need.metadata_bytes);
    }
    lock.lock();
  }
  m_began_us.erase(began);
  --m_waiting;
  return std::max<uint64_t>(m_env->now_us() - began_us, 1);
}

vtkv::NextStep SpaceGate::look_again() {
  if (m_waiting == 0) {
    return vtkv::NextStep::on_event();
  }
  vtkv::MutexLock lock(m_mutex);
  ++m_looks;
  m_look->notify_all();
  return vtkv::NextStep::later(kLookInterval);
}

void SpaceGate::leave(ContainerSet& containers, const SpaceNeed& need) {
  if (need.slot_bytes > 0) {
    containers.give_back(need.slot_bytes);
  }
}

uint64_t SpaceGate::oldest_us() const {
  vtkv::MutexLock lock(m_mutex);
  return m_began_us.empty() ? 0 : *m_began_us.begin();
}

}  // namespace swimstore
