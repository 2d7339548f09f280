// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/defragmenter.h"

#include <algorithm>
#include <utility>

namespace vtkv {

namespace {

constexpr uint64_t kMovedShare = 8;  // in a batch, for each byte of descriptors

uint64_t unused_bytes(const ZoneUsage& usage, uint64_t zone_bytes) {
  return zone_bytes - std::min(zone_bytes, usage.live_bytes);
}

uint64_t gain_of(const ZoneUsage& usage, uint64_t zone_bytes) {
  // One fragment remains one, wherever it goes.
  return unused_bytes(usage, zone_bytes) + (usage.fragments - 1) * Defragmenter::fragment_bytes(zone_bytes);
}

}  // namespace

std::vector<uint64_t> Defragmenter::choose(const std::vector<ZoneUsage>& zones, uint64_t zone_bytes, double gain_min) {
  std::vector<std::pair<double, uint64_t>> worth;
  for (uint64_t zone = 0; zone < zones.size(); ++zone) {
    const ZoneUsage& usage = zones[zone];
    // What nothing of this version lies in is kept by somebody who lets go of it in time.
    if (usage.live_bytes == 0 || usage.open) {
      continue;
    }
    const double score = static_cast<double>(gain_of(usage, zone_bytes)) / static_cast<double>(usage.live_bytes);
    if (score >= gain_min) {
      worth.emplace_back(score, zone);
    }
  }
  std::sort(worth.begin(), worth.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::vector<uint64_t> chosen;
  for (const auto& [score, zone] : worth) {
    chosen.push_back(zone);
  }
  return chosen;
}

void Defragmenter::start(const DefragmentOptions& options) {
  m_options = options;
  m_usage = m_tree.zone_usage();
  m_waiting = choose(m_usage, m_tree.geometry().zone_bytes, options.gain_min);
  std::reverse(m_waiting.begin(), m_waiting.end());
  m_descriptor_bytes = m_tree.statistics().descriptor_bytes;
  if (!is_worthwhile()) {
    m_waiting.clear();
  }
  m_batch.clear();
  MutexLock lock(m_lock);
  m_report = {};
  m_report.is_running = !options.only_measure;
  m_report.chosen_zones = m_waiting.size();
  for (const uint64_t zone : m_waiting) {
    m_report.chosen_bytes += m_usage[zone].live_bytes;
    m_report.unused_bytes += unused_bytes(m_usage[zone], m_tree.geometry().zone_bytes);
    m_report.fragments += m_usage[zone].fragments;
  }
}

void Defragmenter::stop() {
  m_waiting.clear();
  m_batch.clear();
  MutexLock lock(m_lock);
  m_report.is_running = false;
}

bool Defragmenter::is_worthwhile() const {
  uint64_t gain = 0;
  uint64_t cost = m_descriptor_bytes;
  for (const uint64_t zone : m_waiting) {
    gain += gain_of(m_usage[zone], m_tree.geometry().zone_bytes);
    cost += m_usage[zone].live_bytes;
  }
  return static_cast<double>(gain) >= m_options.gain_min * static_cast<double>(cost);
}

bool Defragmenter::running() const {
  MutexLock lock(m_lock);
  return m_report.is_running;
}

DefragmentReport Defragmenter::report() const {
  MutexLock lock(m_lock);
  return m_report;
}

uint64_t Defragmenter::moved_in_all() const {
  MutexLock lock(m_lock);
  return m_moved_in_all;
}

void Defragmenter::drop_written_to() {
  const std::vector<ZoneUsage> usage = m_tree.zone_usage();
  std::erase_if(m_waiting,
                [&](uint64_t zone) { return usage[zone].open || usage[zone].live_bytes > m_usage[zone].live_bytes; });
}

void Defragmenter::next_batch() {
  drop_written_to();
  const uint64_t zone_bytes = m_tree.geometry().zone_bytes;
  const uint64_t batch_bytes_wanted = std::max(m_options.bytes_per_step, kMovedShare * m_descriptor_bytes);
  uint64_t batch_bytes = 0;
  const auto take = [&] {
    m_batch.insert(m_waiting.back());
    batch_bytes += m_usage[m_waiting.back()].live_bytes;
    m_waiting.pop_back();
  };
  const auto is_mostly_empty = [&](uint64_t zone) { return 2 * m_usage[zone].live_bytes < zone_bytes; };
  while (!m_waiting.empty() && is_mostly_empty(m_waiting.back()) && batch_bytes < batch_bytes_wanted) {
    take();
  }
  if (m_batch.empty()) {
    while (!m_waiting.empty()) {
      take();
    }
  }
}

// Before anybody else writes there: the older checkpoint still keeps what was moved.
void Defragmenter::drop_emptied() {
  const std::vector<ZoneUsage> usage = m_tree.zone_usage();
  std::erase_if(m_batch, [&usage](uint64_t zone) { return usage[zone].live_bytes == 0; });
}

Status Defragmenter::step(const SnapshotSource& snapshots, std::chrono::microseconds* wait) {
  *wait = {};
  if (m_batch.empty()) {
    next_batch();
  }
  Tree::Moved moved;
  const Status status =
      m_batch.empty() ? Status() : m_tree.move_out_of(m_batch, m_options.bytes_per_step, snapshots, &moved);
  if (status.ok() && moved.any) {  // more of this run, or another one, may be there
    drop_emptied();
    if (m_options.bytes_per_second > 0) {
      *wait = std::chrono::microseconds(moved.written_bytes * 1'000'000 / m_options.bytes_per_second);
    }
    MutexLock lock(m_lock);
    m_report.moved_bytes += moved.moved_bytes;
    m_moved_in_all += moved.moved_bytes;
    m_report.written_bytes += moved.written_bytes;
    return status;
  }
  m_batch.clear();
  MutexLock lock(m_lock);
  m_report.is_running = status.ok() && !m_waiting.empty();
  return status;
}

}  // namespace vtkv
