// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/reclaimer.h"

#include <algorithm>

namespace swimstore {

using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

constexpr uint64_t kBatchChunks = 8;
constexpr unsigned kBatchFragments = 32;
constexpr uint64_t kFragmentsMost = 1024;  // withheld by one container: it goes through them under its lock
// Of what is free: so much more of it is worth another search for fragments.
constexpr uint64_t kSearchAgainDivisor = 16;
// Who waits for room of log and tree asks several times in this time.
constexpr uint64_t kWantedUs = 1'000'000;
constexpr uint64_t kSearchAgainUs = 10'000'000;

}  // namespace

Reclaimer::Reclaimer(vtkv::Env* env, const std::string& directory, const ContainerOptions& options,
                     const SpaceReserve& reserve, SpacePromises& promises, ContainerArray& containers)
    : m_env(env),
      m_directory(directory),
      m_options(options),
      m_reserve(reserve),
      m_promises(promises),
      m_containers(containers) {}

void Reclaimer::short_of_space(uint64_t metadata_bytes) {
  uint64_t before = m_metadata_bytes.load();
  while (before < metadata_bytes && !m_metadata_bytes.compare_exchange_weak(before, metadata_bytes)) {
  }
  m_short.store(true, std::memory_order_relaxed);
}

void Reclaimer::checkpoint_durable(SequenceNumber as_of) {
  SequenceNumber before = m_durable.load();
  while (before < as_of && !m_durable.compare_exchange_weak(before, as_of)) {
  }
  m_checkpoint_requested = false;
}

uint64_t Reclaimer::surplus_chunks(const Container& container, const Container::Counts& counts, bool is_short) {
  const uint64_t chunk_slots = container.growth_bytes() / slot_bytes(container.size_class());
  uint64_t keep = counts.used ? chunk_slots : 0;  // slots
  uint64_t slack = 0;                               // more than `keep` that start no reclaim
  if (!is_short) {
    keep += m_options.primed_ahead_bytes / slot_bytes(container.size_class());
    slack = 2 * chunk_slots;
  }
  if (!is_short && !m_low) {
    keep += counts.owned / 4;
    slack = counts.owned / 4 + 8 * chunk_slots;
  }
  bool& shrinking = m_shrinking[container.size_class()];
  shrinking = counts.available >= keep + (shrinking ? 0 : slack) + chunk_slots;
  if (!shrinking) {
    return 0;
  }
  return std::min({counts.whole_free_chunks, (counts.available - keep) / chunk_slots, kBatchChunks});
}

bool Reclaimer::withhold_one(Container& container) {
  if (!m_promises.take_spare(container.growth_bytes())) {
    return false;
  }
  const bool withheld = container.withhold_one(m_durable.load());
  m_promises.give_back(container.growth_bytes());
  return withheld;
}

bool Reclaimer::withhold_fragment(Container& container, uint64_t* withheld) {
  const uint64_t bytes = slot_bytes(m_fragment_class);
  if (!m_promises.take_spare(bytes)) {
    m_refused = true;
    return false;
  }
  const bool more = container.withhold_fragment(m_fragment_class, m_durable.load(), withheld);
  m_promises.give_back(bytes);
  return more;
}

// A search goes through all containers, and finds nothing in most of a store whose small objects went at random.
bool Reclaimer::may_search() {
  const uint64_t free_bytes = m_promises.free_bytes();
  m_least_free_bytes = std::min(m_least_free_bytes, free_bytes);
  const uint64_t freed_bytes = free_bytes - m_least_free_bytes;
  m_searching |=
      freed_bytes >= std::max(m_options.hole_bytes_min, free_bytes / kSearchAgainDivisor) || (m_urgent && !m_found_all);
  return m_searching;
}

void Reclaimer::search_smaller() {
  const uint64_t least_bytes = m_urgent ? kBlockBytes : m_options.hole_bytes_min;
  if (m_fragment_class > 0 && slot_bytes(m_fragment_class - 1) >= least_bytes) {
    m_fragment_class--;
    m_searched.fill(false);
  } else {
    end_search(m_fragment_class == 0);
  }
}

void Reclaimer::end_search(bool went_through_all) {
  m_found_all = went_through_all && !m_refused;
  m_urgent &= !m_found_all;
  m_refused = false;
  m_searched.fill(false);
  m_fragment_class = kSizeClasses - 1;
  m_searching = false;
  m_search_again_us = m_env->now_us() + kSearchAgainUs;
  m_least_free_bytes = m_promises.free_bytes();
}

void Reclaimer::withhold_fragments(const vtkv::FileSystemInfo& host, uint64_t punched_bytes, bool* worked) {
  const uint64_t missing_bytes = m_reserve.missing_bytes(host, m_wanted_bytes);
  if (!m_urgent && slot_bytes(m_fragment_class) < m_options.hole_bytes_min) {
    end_search(false);
    return;
  }
  uint64_t under_way = punched_bytes;
  for (const auto& container : m_containers) {
    const Container::Counts counts = container->counts();
    under_way += counts.withheld_fragments_bytes + counts.withheld_chunks * container->growth_bytes();
    under_way -= counts.failed_punch_bytes;
  }
  uint64_t wanted = missing_bytes - std::min(missing_bytes, under_way);
  if (wanted == 0 || !may_search()) {
    return;
  }
  bool all_searched = true, held_up = false;
  for (auto& container : m_containers) {
    const Container::Counts counts = container->counts();
    if (counts.failed_punches >= kBatchChunks) {
      m_refused = true;
      continue;
    }
    if (counts.withheld_fragments >= kFragmentsMost) {
      all_searched = false;
      held_up = true;
      continue;
    }
    bool& searched = m_searched[container->size_class()];
    searched |= !container->knows_holes();
    for (unsigned i = 0; !searched && wanted > 0 && i < kBatchFragments; i++) {
      uint64_t withheld = 0;
      searched = !withhold_fragment(*container, &withheld);
      wanted -= std::min(wanted, withheld);
      *worked |= withheld > 0;
    }
    all_searched &= searched;
  }
  if (all_searched) {
    search_smaller();
  }
  *worked |= m_searching && !held_up;
}

void Reclaimer::begin_search() {
  m_searched.fill(false);
  m_fragment_class = kSizeClasses - 1;
  m_searching = true;
}

// Who begins to wait has all containers gone through, and again some time after the end. More that is wanted meanwhile
// is no reason to begin anew: it may rise with each write. Small fragments are for a store that is full.
void Reclaimer::note_wanted() {
  const uint64_t now_us = m_env->now_us();
  if (now_us >= m_wanted_until_us) {  // this step may be the first one in hours
    m_wanted_bytes = 0;
  }
  const uint64_t bytes = m_metadata_bytes.exchange(0);
  if (bytes == 0) {
    return;
  }
  if (m_wanted_bytes == 0 || (!m_searching && now_us >= m_search_again_us)) {
    begin_search();
  }
  m_wanted_bytes = std::max(m_wanted_bytes, bytes);
  m_wanted_until_us = now_us + kWantedUs;
}

Status Reclaimer::step(bool* worked) {
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
  m_low = host.available_bytes < host.total_bytes / (m_low ? 8 : 16);
  const bool reserve_is_low = m_reserve.is_low(host);
  note_wanted();
  m_urgent = reserve_is_low || (m_urgent && m_reserve.missing_bytes(host) > 0);
  m_found_all &= reserve_is_low;
  const bool is_short = m_short.load(std::memory_order_relaxed);
  bool waiting = false;
  Container::Punched punched;
  Status status;  // the first error; it holds up no other container
  for (auto& container : m_containers) {
    Container::Counts counts = container->counts();
    // Where punches fail, what is withheld is of no use to anybody: no more of it then, but for a few bad ones.
    const bool punches_fail = counts.failed_punches >= kBatchChunks;
    for (uint64_t i = punches_fail ? 0 : surplus_chunks(*container, counts, is_short); i > 0; i--) {
      *worked |= withhold_one(*container);
    }
    if (counts.withheld_chunks > 0 || counts.withheld_fragments_bytes > 0 || *worked) {
      const Status of_this = container->punch(m_durable.load(), kBatchChunks, &punched);
      status = status.ok() ? of_this : status;
    }
    counts = container->counts();
    waiting |= counts.punches > counts.failed_punches;  // a failed one waits for no checkpoint
  }
  if (is_short) {
    withhold_fragments(host, punched.bytes, worked);
  }
  m_punched_bytes += punched.bytes;
  m_punched_fragments_bytes += punched.fragments_bytes;
  *worked |= punched.bytes > 0;
  if (is_short && !*worked && !waiting) {
    m_short = false;  // everything that could be spared is back; the next failure asks again
  }
  if (is_short && waiting && m_request_checkpoint && !m_checkpoint_requested.exchange(true)) {
    m_request_checkpoint();
  }
  return status;
}

}  // namespace swimstore
