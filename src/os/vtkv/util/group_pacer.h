// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides how long writers hold their next record back, so that what is in them shares a flush.
//
// Whoever waits for a flush tends to submit again as soon as it is over. A record formed at once would hold only
// what came during the flush, and those just woken would miss it: n submitters would take turns in two or three groups.
// So a record is not formed while a flush is under way, and afterwards waits until as many submissions are there as
// took part in the last flush or were waiting at its end, but no longer than a quarter of the time that a flush takes.
// One submitter alone never waits: he is all that is expected.
//
// A writer is a commit pipeline. Where several share their flushes (env/shared_flush.h), the submissions of all of them
// count, and once one forms its record the others do: then the flush waits for those that are still being written.
//
// Not thread-safe: of the thread whose writers they are.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace vtkv {

// What a writer has told.
struct PacedWriter {
  size_t waiting = 0;  // submissions that wait for a record
  bool is_writing = false;  // a record was formed, and no flush asked for yet
  uint64_t flushes = 0;  // had ended by then
  uint64_t waits_since = 0;  // so many had when the first of these came
  bool is_paced = false;
};

class GroupPacer {
 public:
  // Each writer tells it before it asks how long to hold, and at the end of its step.
  void update(PacedWriter* writer, size_t waiting, bool is_writing) {
    // Those that it has since the flush came while that was under way, and are expected like those it served: so this
    // is told before anybody is told of the flush's end.
    if (m_expected > 0 && writer->flushes != m_flushes && waiting > writer->waiting) {
      m_expected += waiting - writer->waiting;
    }
    m_waiting += waiting - writer->waiting;
    m_writers += writer->is_paced ? 0 : 1;
    m_writing += size_t{is_writing} - size_t{writer->is_writing};
    *writer = {waiting, is_writing, m_flushes, writer->waiting == 0 ? m_flushes : writer->waits_since, true};
  }
  // It is paced by another one from now on.
  void leave(PacedWriter* writer) {
    update(writer, 0, false);
    --m_writers;
    *writer = {};
  }
  // How long the writer's record is held back now; 0: form it. One that two flushes have ended without is not held back
  // again. REQUIRES: !flushing().
  std::chrono::microseconds hold(const PacedWriter& writer, uint64_t now_us) const {
    const bool is_late = m_flushes - writer.waits_since >= 2;
    return left(m_waiting < m_expected && !is_late, m_due_us, now_us);
  }
  // It was: that of no other writer is held back before the next flush.
  void record_formed() {
    m_released |= m_expected > 0;
    m_expected = 0;
  }
  // Since the last call writers that hold theirs back were let go.
  bool take_released() { return std::exchange(m_released, false); }
  // How long a flush that was first asked for at `asked_us` is held back for records that are being written.
  std::chrono::microseconds hold_flush(uint64_t asked_us, uint64_t now_us) const {
    return left(m_writing > 0, asked_us + m_flush_us / kLingerShare, now_us);
  }

  void flush_began(uint64_t now_us) {
    m_flushing = true;
    m_began_us = now_us;
  }
  // It made `ended` submissions durable.
  void flush_ended(size_t ended, uint64_t now_us) {
    m_flushing = false;
    const uint64_t took_us = now_us - m_began_us;
    // Flushes now and then take many times their usual time: those say nothing of the next.
    m_flush_us = m_flush_us == 0 ? took_us : (7 * m_flush_us + std::min(took_us, 2 * m_flush_us)) / 8;
    m_expected = ended + m_waiting;
    ++m_flushes;
    m_due_us = now_us + m_flush_us / kLingerShare;
  }
  bool flushing() const { return m_flushing; }
  // Of the submissions that records wait for, so many have to come to one writer if they come evenly to all.
  size_t missing_of_each() const {
    const size_t missing = m_expected - std::min(m_expected, m_waiting);
    return (missing + m_writers - 1) / std::max<size_t>(1, m_writers);
  }

 private:
  static constexpr uint64_t kLingerShare = 4;

  static std::chrono::microseconds left(bool waits, uint64_t until_us, uint64_t now_us) {
    return std::chrono::microseconds(waits && now_us < until_us ? until_us - now_us : 0);
  }

  size_t m_writers = 0;
  size_t m_waiting = 0;  // of all writers
  size_t m_writing = 0;  // writers
  bool m_flushing = false;
  uint64_t m_began_us = 0;
  uint64_t m_flush_us = 0;  // smoothed
  uint64_t m_due_us = 0;
  size_t m_expected = 0;
  bool m_released = false;
  uint64_t m_flushes = 0;  // ended
};

}  // namespace vtkv
