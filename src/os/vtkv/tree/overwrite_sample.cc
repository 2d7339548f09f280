// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/overwrite_sample.h"

#include <algorithm>
#include <string>

namespace vtkv {

namespace {
// Each may read a block. With so many, the estimate for a fiftieth of a flush is a third off at most, mostly.
constexpr uint64_t kSamplesMost = 512;
}  // namespace

OverwriteSample::OverwriteSample(std::shared_ptr<const Version> below, uint64_t entries, ValueDelta* delta)
    : m_below(std::move(below)), m_step(std::max<uint64_t>(1, entries / kSamplesMost)), m_delta(delta) {}

void OverwriteSample::see(std::string_view key) {
  if (m_seen++ % m_step != 0) {
    return;
  }
  ++m_sampled;
  Lookup result = Lookup::absent;
  std::string value;
  // What cannot be read is not counted; whoever needs it will say so.
  if (!m_below->get(key, UINT64_MAX, &result, &value).ok() || result == Lookup::absent || result == Lookup::removed) {
    return;
  }
  ++m_overwritten;
  ValuePointer pointer;
  if (result == Lookup::pointer && pointer.decode(value)) {
    m_delta->hidden(key, pointer, m_step);
  }
}

double OverwriteSample::overwritten_share() const {
  return m_sampled == 0 ? 0 : static_cast<double>(m_overwritten) / static_cast<double>(m_sampled);
}

}  // namespace vtkv
