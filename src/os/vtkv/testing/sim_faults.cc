// SPDX-License-Identifier: LGPL-2.1-or-later
// The faults of a simulated host: calls that fail, ranges of files that are bad, writes that are damaged.

#include <algorithm>
#include <utility>

#include "vtkv/testing/sim_env.h"

namespace vtkv {

Status SimEnv::strike(SimCall call) {
  const uint64_t count = ++m_calls[call];
  for (const Fault& fault : m_faults) {
    if (fault.call == call && (fault.at == count || (fault.persistent && fault.at < count))) {
      return fault.status;
    }
  }
  return {};
}

void SimEnv::fail_nth(SimCall call, uint64_t n, Status status, bool persistent) {
  m_faults.push_back({call, m_calls[call] + n, std::move(status), persistent});
}

void SimEnv::damage_nth_write(uint64_t n, SimDamage damage) { m_damages[m_calls[SimCall::write] + n] = damage; }

uint64_t SimEnv::first_bad(SimBad what, uint64_t inode, uint64_t offset, uint64_t length) const {
  uint64_t first = kSimNever;
  for (const Bad& bad : m_bad) {
    if (bad.what == what && bad.inode == inode && bad.begin < offset + length && offset < bad.end) {
      first = std::min(first, std::max(offset, bad.begin));
    }
  }
  return first;
}

Status SimEnv::strike_bad(SimBad what, uint64_t inode, uint64_t offset, uint64_t length) const {
  const uint64_t first = first_bad(what, inode, offset, length);
  return first == kSimNever ? Status()
                            : Status::from_errno(EIO, path_of(inode) + " is bad at " + std::to_string(first));
}

void SimEnv::clear_faults() {
  m_faults.clear();
  m_bad.clear();
  m_damages.clear();
  m_misreads.clear();
}

uint64_t SimEnv::calls(SimCall call) const {
  const auto found = m_calls.find(call);
  return found == m_calls.end() ? 0 : found->second;
}

}  // namespace vtkv
