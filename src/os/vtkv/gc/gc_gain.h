// SPDX-License-Identifier: LGPL-2.1-or-later
// Does collecting make the log smaller? When what the collector itself began has gained hardly anything, it rests: the
// segments of then, and those that it has filled itself, stay as they are until a notable part of one has died since.
//
// What a segment would give back is estimated from what lives in it (candidate_choice.h). What the relocated values
// take in their place is known only afterwards: records are padded, and end where a segment ends. A log whose segments
// are badly filled would be moved from one to the next for ever. It is measured where others write little meanwhile:
// who writes much leaves something to collect.
//
// Not thread-safe: the collector's worker's. Reads no file, never waits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "vtkv/blob/value_account.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class GcGain {
 public:
  // At one moment.
  struct Measure {
    uint64_t taken_bytes = 0;   // by the log: without what was emptied, with what was relocated and is not written
    uint64_t log_bytes = 0;     // written ever, by everybody
    uint64_t moved_bytes = 0;   // of these, puts of the collector
    uint64_t others_count = 0;  // operations ever, but for these
  };

  // A segment of so many bytes was emptied.
  void emptied(uint64_t bytes) { m_emptied_bytes += bytes; }
  // Before the next one is chosen, while none is being emptied. Judges when enough was: `visible` is the newest
  // sequence, `segment_bytes` the usual size of a segment.
  void judge(const Measure& now, uint64_t segment_bytes, SequenceNumber visible);
  // The account of the values in everything up to `checkpoint`.
  void see(const std::vector<SegmentValues>& account, SequenceNumber checkpoint);

  // Is nothing to be chosen?
  bool rests() const { return m_rests_until.has_value(); }
  // Was it looked at in vain, and has it lost little since?
  bool passes_over(const SegmentValues& values, uint64_t segment_bytes) const;

 private:
  uint64_t written_by_others(const Measure& now) const;

  uint64_t m_emptied_bytes = 0;  // since m_begin
  std::optional<Measure> m_begin;
  // Nothing is chosen until the checkpoint is there: what was relocated is in the account from then on.
  std::optional<SequenceNumber> m_rests_until;
  std::map<uint64_t, uint64_t> m_live_bytes;  // of segments that stay as they are, at most since then; by epoch
};

}  // namespace vtkv
