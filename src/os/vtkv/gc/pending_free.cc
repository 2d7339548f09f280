// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/pending_free.h"

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

constexpr uint64_t kWaitingShare = 12;  // of the log: emptied and waiting for a checkpoint

}  // namespace

void PendingFree::add(uint64_t epoch, SequenceNumber gc_seq) {
  VTKV_ASSERT(!contains(epoch));
  m_segments.push_back({.epoch = epoch, .gc_seq = gc_seq});
}

bool PendingFree::contains(uint64_t epoch) const {
  return std::any_of(m_segments.begin(), m_segments.end(),
                     [&](const Segment& segment) { return segment.epoch == epoch; });
}

uint64_t PendingFree::bytes(const std::function<uint64_t(uint64_t epoch)>& bytes_of) const {
  uint64_t bytes = 0;
  for (const Segment& segment : m_segments) {
    bytes += bytes_of(segment.epoch);
  }
  return bytes;
}

// Without one, what was emptied would wait for the next that comes by itself, and the log be larger by so much.
bool PendingFree::wants_checkpoint(SequenceNumber checkpoint, uint64_t used_bytes,
                                   const std::function<uint64_t(uint64_t epoch)>& bytes_of) {
  uint64_t waiting_bytes = 0;
  SequenceNumber newest = 0;
  for (const Segment& segment : m_segments) {
    if (segment.gc_seq > checkpoint) {
      waiting_bytes += bytes_of(segment.epoch);
      newest = std::max(newest, segment.gc_seq);
    }
  }
  if (waiting_bytes * kWaitingShare < used_bytes || m_asked > checkpoint || newest == 0) {
    return false;
  }
  m_asked = newest;
  return true;
}

bool PendingFree::any_unneeded(SequenceNumber checkpoint, SequenceNumber oldest_snapshot) const {
  return std::any_of(m_segments.begin(), m_segments.end(),
                     [&](const Segment& segment) { return segment.is_unneeded(checkpoint, oldest_snapshot); });
}

void PendingFree::enter_reader_epoch(SequenceNumber checkpoint, SequenceNumber oldest_snapshot, uint64_t reader_epoch) {
  for (Segment& segment : m_segments) {
    if (segment.is_unneeded(checkpoint, oldest_snapshot)) {
      segment.in_reader_epoch = true;
      segment.reader_epoch = reader_epoch;
    }
  }
}

bool PendingFree::await_readers() const {
  return std::any_of(m_segments.begin(), m_segments.end(),
                     [](const Segment& segment) { return segment.in_reader_epoch; });
}

std::set<uint64_t> PendingFree::unread(const std::function<bool(uint64_t reader_epoch)>& has_ended) const {
  std::set<uint64_t> epochs;
  for (const Segment& segment : m_segments) {
    if (segment.in_reader_epoch && has_ended(segment.reader_epoch)) {
      epochs.insert(segment.epoch);
    }
  }
  return epochs;
}

void PendingFree::remove(const std::set<uint64_t>& epochs) {
  std::erase_if(m_segments, [&](const Segment& segment) { return epochs.contains(segment.epoch); });
}

}  // namespace vtkv
