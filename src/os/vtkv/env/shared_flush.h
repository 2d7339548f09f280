// SPDX-License-Identifier: LGPL-2.1-or-later
// One flush of the device for several workers that wait for one (IoRequest::any_file).
//
// One at a time is under way. Who asks meanwhile waits for the next one, which begins after he asked: what he wrote was
// complete by then, so it is covered. It is held back, a quarter of a flush at most, for workers whose writes are under
// way (util/group_pacer.h, which also keeps their records together).
//
// Gain: four cubes take a third to a half of the flushes that they take with flushes of their own (doc/benchmarks.md,
// Cubes).
//
// Not thread-safe: a shared thread's (env/shared_threads.h). Never waits, and holds no lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/util/group_pacer.h"

namespace vtkv {

class SharedFlush {
 public:
  explicit SharedFlush(Env* env) : m_env(env) { m_flush.op = IoRequest::Op::sync; }

  GroupPacer& pacer() { return m_pacer; }
  void add(IoRequest* request);
  // Begins one by way of `io` if somebody waits for one and none is under way. It is held back for records that are
  // being written: for so long; 0: it is not.
  std::chrono::microseconds begin(IoQueue& io);
  bool is(const IoRequest* request) const { return request == &m_flush; }
  // It was reaped. Those that it served, each with its result; good until the next begin().
  const std::vector<IoRequest*>& end();

 private:
  Env* const m_env;
  GroupPacer m_pacer;
  IoRequest m_flush;
  uint64_t m_asked_us = 0;  // when the first of these came
  std::vector<IoRequest*> m_waiting;  // for the next one
  std::vector<IoRequest*> m_served;  // by the one under way
};

}  // namespace vtkv
