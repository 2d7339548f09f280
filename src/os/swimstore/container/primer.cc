// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/primer.h"

#include <algorithm>

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kUnitBytes = 256u << 10;  // of one step: what a foreground write may have to wait behind
constexpr uint64_t kBatchBytes = 8u << 20;   // of one sync: each is a journal commit of the host
constexpr uint64_t kGrowthChunksMost = 8;
constexpr uint64_t kGrowthUs = 1'000'000;  // between two growths of a class that is written to much
constexpr vtkv::BackgroundWork kPrimeWork{"writing zeros to slots ahead of need",
                                          "small writes take one more flush each, and more time, until it succeeds"};

}  // namespace

Primer::Primer(vtkv::Env* env, const std::string& directory, const ContainerOptions& options,
               const SpaceReserve& reserve, SpacePromises& promises, ContainerArray& containers, Quarantine& quarantine,
               vtkv::BackgroundErrors& errors, bool prime)
    : m_env(env),
      m_directory(directory),
      m_options(options),
      m_reserve(reserve),
      m_promises(promises),
      m_containers(containers),
      m_quarantine(quarantine),
      m_errors(errors),
      m_prime(prime) {}

// Of split slots.
uint64_t Primer::fragment_bytes(unsigned size_class, bool only_primed) const {
  uint64_t bytes = 0;
  for (unsigned larger = size_class + 1; larger < kSizeClasses; larger++) {
    bytes += m_containers[larger]->fragment_bytes(size_class, only_primed);
  }
  return bytes;
}

uint64_t Primer::target_bytes() const { return std::min(m_options.primed_ahead_bytes, m_host_bytes / 64); }

void Primer::step(bool busy, Result* result) {
  if (m_errors.wait(kPrimeWork).count() == 0) {
    m_failed.fill(false);
  }
  for (auto& container : m_containers) {
    step_class(*container, busy, result);
  }
  if (std::none_of(m_failed.begin(), m_failed.end(), [](bool failed) { return failed; })) {
    m_errors.note(kPrimeWork, {});
  }
}

void Primer::step_class(Container& container, bool busy, Result* result) {
  const Container::Counts counts = container.counts();
  if (!counts.used) {
    return;
  }
  bool& failed = m_failed[container.size_class()];
  if (m_prime && container.size_class() <= m_options.primed_class_max && !failed) {
    const Status status = prime_class(container, counts, busy, result);
    failed = !status.ok();
    if (failed) {
      m_errors.note(kPrimeWork, status);
    }
    return;
  }
  const uint64_t ready = (counts.available + counts.waiting) * slot_bytes(container.size_class()) +
                         fragment_bytes(container.size_class(), false);
  Growth& growth = m_growth[container.size_class()];
  const uint64_t now_us = m_env->now_us();
  const bool grew_lately = growth.grown_us > 0 && now_us - growth.grown_us < kGrowthUs;
  growth.chunks = grew_lately ? growth.chunks : 1;
  if (ready < growth.chunks * container.growth_bytes() / 4) {
    uint64_t chunks = grew_lately ? std::min(2 * growth.chunks, kGrowthChunksMost) : 1;
    if (grow_ahead(container, &chunks)) {
      growth = {chunks, now_us};
      result->worked = true;
    }
  }
}

Status Primer::prime_class(Container& container, const Container::Counts& counts, bool busy, Result* result) {
  const uint64_t bytes = slot_bytes(container.size_class());
  const uint64_t ready = (counts.primed_available + counts.waiting) * bytes + container.priming_bytes() +
                         fragment_bytes(container.size_class(), true);
  if (m_host_bytes == 0) {
    vtkv::FileSystemInfo host;
    VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
    m_host_bytes = host.total_bytes;
  }
  bool& active = m_active[container.size_class()];
  const uint64_t enough = busy ? target_bytes() / 4 : target_bytes();
  active = ready < enough / 4 * 3 || (active && ready < enough);
  uint64_t done = 0;
  Status failed;
  if (active) {
    Status status = prime_unit(container, &done);
    uint64_t chunks = 1;
    if (status.ok() && done == 0 && grow_ahead(container, &chunks)) {
      status = prime_unit(container, &done);
    }
    const bool quarantined = status.code() == Status::Code::busy;
    if (quarantined) {
      m_errors.note(kPrimeWork, status);
      result->worked = true;
    } else if (!status.ok() && !status.is_no_space()) {
      failed = status;  // what was written before it is good, and not to wait for it
    }
    m_primed_bytes += done;
  }
  const uint64_t unsynced = container.priming_bytes();
  if (unsynced >= kBatchBytes || (unsynced > 0 && (done == 0 || unsynced + ready >= target_bytes()))) {
    VTKV_RETURN_IF_ERROR(container.sync_primed());
    result->worked = true;
  }
  result->worked |= done > 0;
  result->urgent |= done > 0 && counts.primed_available * bytes < target_bytes() / 8;
  return failed;
}

Status Primer::prime_unit(Container& container, uint64_t* done) {
  const uint64_t unit = std::max<uint64_t>(std::min(kUnitBytes, target_bytes()), slot_bytes(container.size_class()));
  if (!m_promises.take_spare(unit)) {
    return {};
  }
  const Status status = container.prime(unit, m_quarantine, done);
  m_promises.give_back(unit);
  return status;
}

bool Primer::grow_ahead(Container& container, uint64_t* chunks) {
  vtkv::FileSystemInfo host;
  if (!m_env->file_system_info(m_directory, &host).ok()) {
    return false;
  }
  // Where the host is low, more than one would soon be given back (reclaimer.h).
  const uint64_t most = host.available_bytes < host.total_bytes / 8 ? 1 : *chunks;
  *chunks = std::min(most, m_reserve.growable_bytes(host) / 16 / container.growth_bytes());
  if (*chunks == 0) {
    return false;
  }
  Status status = container.grow(false, *chunks);
  if (!status.ok() && *chunks > 1) {  // as where the file is nearly as large as it may be
    *chunks = 1;
    status = container.grow(false, 1);
  }
  m_promises.note_growth(container, status);
  return status.ok();
}

}  // namespace swimstore
