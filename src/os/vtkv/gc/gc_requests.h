// SPDX-License-Identifier: LGPL-2.1-or-later
// What is asked of the collector of the value log, and what became of it.
//
// request(), served(), error() are for any thread; the rest is the collector's worker's. Nothing here waits; the lock
// is held for a moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "vtkv/status.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

// Each does what those before it do.
enum class GcRequest {
  settle,  // frees what may be freed by now
  round,   // empties the best candidate
  full,    // empties every segment that is worth it
};

class GcRequests {
 public:
  // Returns the number that served() will have reached when it was done. One that was asked for and not taken up yet is
  // served as well.
  uint64_t request(GcRequest what) {
    GcRequest asked = m_asked.load();
    while (asked < what && !m_asked.compare_exchange_weak(asked, what)) {
    }
    return m_requested.fetch_add(1) + 1;
  }
  uint64_t served() const { return m_served.load(); }
  // Of the last request that failed; ok otherwise.
  Status error() const EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    return m_error;
  }

  // Takes up what was asked for, unless something is under way; false: nothing.
  bool take() {
    if (m_serving > 0 || m_requested.load() <= m_served.load()) {
      return false;
    }
    m_serving = m_requested.load();
    m_serving_what = m_asked.exchange(GcRequest::settle);
    return true;
  }
  // Is one under way, of this kind?
  bool serving() const { return m_serving > 0; }
  bool serving(GcRequest what) const { return m_serving > 0 && m_serving_what == what; }
  // REQUIRES: serving().
  void end() {
    VTKV_ASSERT(m_serving > m_served.load());
    m_served.store(m_serving);
    m_serving = 0;
  }
  void set_error(const Status& status) EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    m_error = status;
  }

 private:
  std::atomic<uint64_t> m_requested{0};
  std::atomic<uint64_t> m_served{0};
  std::atomic<GcRequest> m_asked{GcRequest::settle};
  uint64_t m_serving = 0;  // the request that is under way; 0: none
  GcRequest m_serving_what = GcRequest::settle;
  mutable Mutex m_lock;
  Status m_error GUARDED_BY(m_lock);
};

}  // namespace vtkv
