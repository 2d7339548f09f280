// SPDX-License-Identifier: LGPL-2.1-or-later
// How much of the log a flush makes garbage, estimated: of the keys that it writes, every n-th is looked up in the
// runs below. If its newest version there is a pointer, n values of that length and in that segment are taken to be
// hidden now. Compactions find out in the end; the collector of the log cannot wait for them (gc/value_gc.h). A range
// delete has no entry for what it hides: that is counted in the runs below.
//
// What it is for: overwriting takes 2.0 times the space of what lives with it, and up to 3.6 times without
// (doc/benchmarks.md, "What the collector is told of overwritten values", with the command); it costs a third of the
// speed, which is what collecting costs.
#pragma once

#include <memory>
#include <string_view>

#include "vtkv/blob/value_account.h"
#include "vtkv/tree/version.h"

namespace vtkv {

// Not thread-safe: one flush.
class OverwriteSample {
 public:
  // `entries` that will be seen, at most. `delta` is told what is hidden.
  OverwriteSample(std::shared_ptr<const Version> below, uint64_t entries, ValueDelta* delta);
  void see(std::string_view key);
  // What the newest of these tombstones cover is hidden: goes through the runs there, or a part of them, where there is
  // much; what lies behind it counts when a compaction drops it.
  void see_ranges(const RangeTombstones& tombstones);
  // Of the keys seen, about: how many had a value below.
  double overwritten_share() const;

 private:
  uint64_t hide_range(std::string_view begin, std::string_view end, uint64_t times, uint64_t entries_most);

  const std::shared_ptr<const Version> m_below;
  const uint64_t m_step;
  ValueDelta* const m_delta;
  uint64_t m_seen = 0;
  uint64_t m_sampled = 0;
  uint64_t m_overwritten = 0;
};

}  // namespace vtkv
