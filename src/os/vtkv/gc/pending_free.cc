// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/pending_free.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr uint64_t kWaitingShare = 12;  // of the log: emptied and waiting for a checkpoint

}  // namespace

void PendingFree::add(uint64_t epoch, SequenceNumber gc_seq) {
  VTKV_ASSERT(!contains(epoch));
  m_segments[epoch].gc_seq = gc_seq;
}

uint64_t PendingFree::bytes(const LogFiles& files) const {
  uint64_t bytes = 0;
  for (const auto& [epoch, segment] : m_segments) {
    bytes += files.of_epoch(epoch);
  }
  return bytes;
}

uint64_t PendingFree::held_bytes(SequenceNumber oldest_snapshot, const LogFiles& files) const {
  uint64_t bytes = 0;
  for (const auto& [epoch, segment] : m_segments) {
    bytes += segment.in_reader_epoch || segment.gc_seq > oldest_snapshot ? files.of_epoch(epoch) : 0;
  }
  return bytes;
}

// Without one, what was emptied would wait for the next that comes by itself, and the log be larger by so much.
bool PendingFree::wants_checkpoint(SequenceNumber checkpoint, const LogFiles& files) {
  uint64_t waiting_bytes = 0;
  SequenceNumber newest = 0;
  for (const auto& [epoch, segment] : m_segments) {
    if (segment.gc_seq > checkpoint) {
      waiting_bytes += files.of_epoch(epoch);
      newest = std::max(newest, segment.gc_seq);
    }
  }
  if (waiting_bytes * kWaitingShare < files.used || m_asked > checkpoint || newest == 0) {
    return false;
  }
  m_asked = newest;
  return true;
}

bool PendingFree::any_unneeded(SequenceNumber checkpoint, SequenceNumber oldest_snapshot) const {
  return std::any_of(m_segments.begin(), m_segments.end(),
                     [&](const auto& one) { return one.second.is_unneeded(checkpoint, oldest_snapshot); });
}

void PendingFree::enter_reader_epoch(SequenceNumber checkpoint, SequenceNumber oldest_snapshot, uint64_t reader_epoch) {
  for (auto& [epoch, segment] : m_segments) {
    if (segment.is_unneeded(checkpoint, oldest_snapshot)) {
      segment.in_reader_epoch = true;
      segment.reader_epoch = reader_epoch;
    }
  }
}

bool PendingFree::await_readers() const {
  return std::any_of(m_segments.begin(), m_segments.end(), [](const auto& one) { return one.second.in_reader_epoch; });
}

std::set<uint64_t> PendingFree::unread(const std::function<bool(uint64_t reader_epoch)>& has_ended) const {
  std::set<uint64_t> epochs;
  for (const auto& [epoch, segment] : m_segments) {
    if (segment.in_reader_epoch && has_ended(segment.reader_epoch)) {
      epochs.insert(epoch);
    }
  }
  return epochs;
}

void PendingFree::remove(const std::set<uint64_t>& epochs) {
  for (const uint64_t epoch : epochs) {
    m_segments.erase(epoch);
  }
}

}  // namespace vtkv
