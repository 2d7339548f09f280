// SPDX-License-Identifier: LGPL-2.1-or-later
// Bounds the bytes that were accepted and are not durable yet: however slow the device is, memory stays bounded.
//
// Who finds no room waits, behind those who waited before. A transaction larger than the limit goes when nothing
// else is under way. Bytes come back from the commit worker, which waits for no op thread, when the device moves or
// the store fails; so every wait ends as long as those who wait hold nothing that the worker needs: no lock of the
// store.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/HBHandle.h"

#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class CommitThrottle {
 public:
  // limit_bytes 0: none.
  CommitThrottle(vtkv::Env* env, uint64_t limit_bytes)
      : m_env(env), m_limit_bytes(limit_bytes), m_room(env->new_signal()) {}

  // Returns the time waited; `handle` (nullptr: none) is that of the thread.
  uint64_t take_us(uint64_t bytes, HBHandle* handle);
  // What turned out to be needed beside. Never waits: who comes next does.
  void take_more(uint64_t bytes);
  void give_back(uint64_t bytes);

  void set_limit(uint64_t bytes);
  uint64_t limit_bytes() const { return m_limit_bytes.load(std::memory_order_relaxed); }
  uint64_t taken_bytes() const { return m_taken_bytes.load(std::memory_order_relaxed); }
  uint64_t waiting() const;  // threads

 private:
  bool has_room(uint64_t bytes) const REQUIRES(m_mutex);

  vtkv::Env* const m_env;
  mutable vtkv::Mutex m_mutex;
  // Changed under m_mutex.
  std::atomic<uint64_t> m_limit_bytes;
  std::atomic<uint64_t> m_taken_bytes{0};
  // Turns of those who have to wait: given out, and gone.
  uint64_t m_turns GUARDED_BY(m_mutex) = 0;
  uint64_t m_turns_gone GUARDED_BY(m_mutex) = 0;
  std::unique_ptr<vtkv::Signal> m_room;
};

}  // namespace swimstore
