// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/slow_operations.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "common/ceph_context.h"
#include "common/debug.h"
#include "swimstore/ops/perf_counters.h"
#include "vtkv/util/invariants.h"

#define dout_context m_cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore "

namespace swimstore {

namespace {

constexpr const char* kAgeOption = "swimstore_log_op_age";

// 0: nothing is slow, as with bluestore_log_op_age.
int64_t age_ns(const ConfigProxy& conf) {
  const double seconds = conf.get_val<double>(kAgeOption);
  return seconds > 0 && seconds < 1e9 ? static_cast<int64_t>(seconds * 1e9) : INT64_MAX;
}

uint64_t lifetime_s(CephContext* cct) { return cct->_conf.get_val<uint64_t>("swimstore_slow_ops_warn_lifetime"); }

}  // namespace

SlowOperations::SlowOperations(CephContext* cct, vtkv::Env* env, PerfCounters& counters)
    : m_cct(cct),
      m_env(env),
      m_counters(counters),
      m_age_ns(age_ns(cct->_conf)),
      m_age_option(cct, kAgeOption, [this](const ConfigProxy& conf) { m_age_ns = age_ns(conf); }) {}

void SlowOperations::note(std::string_view operation, const std::string& object, std::chrono::nanoseconds latency) {
  const std::string text =
      fmt::format("{} of {} took {:.3f} s", operation, object, std::chrono::duration<double>(latency).count());
  dout(0) << "slow operation: " << text << dendl;
  m_counters.inc(l_swimstore_slow_operations);
  const uint64_t now = m_env->now_us() / 1000000;
  const uint64_t lifetime = lifetime_s(m_cct);
  vtkv::MutexLock lock(m_mutex);
  forget_before(now - std::min(now, lifetime));
  if (m_seconds.empty() || m_seconds.back().number < now) {
    m_seconds.push_back({now, 0});
  }
  ++m_seconds.back().count;
  ++m_count;
  m_last = text;
}

void SlowOperations::forget_before(uint64_t second) {
  while (!m_seconds.empty() && m_seconds.front().number < second) {
    VTKV_ASSERT(m_count >= m_seconds.front().count);
    m_count -= m_seconds.front().count;
    m_seconds.pop_front();
  }
}

void SlowOperations::add_alert(const std::string& path, const vtkv::FileSystemInfo& host, osd_alert_list_t* alerts) {
  const uint64_t now = m_env->now_us() / 1000000;
  const uint64_t lifetime = lifetime_s(m_cct);
  const uint64_t threshold = m_cct->_conf.get_val<uint64_t>("swimstore_slow_ops_warn_threshold");
  vtkv::MutexLock lock(m_mutex);
  forget_before(now - std::min(now, lifetime));
  if (threshold == 0 || m_count < threshold) {
    return;
  }
  alerts->emplace(
      "SWIMSTORE_SLOW_OPERATIONS",
      fmt::format("store at {}: {} slow operations in the last {} s, the last: {}. Look at the "
                  "load and the health of the disk below {}; the OSD's log has a line 'slow operation' for each",
                  path, m_count, lifetime, m_last, host.mount_point));
}

}  // namespace swimstore
