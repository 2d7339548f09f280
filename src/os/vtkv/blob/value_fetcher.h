// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads many values of the log at once, with the depth of an I/O queue instead of a thread for each (WiscKey,
// section 3.3.1, uses threads). Values that lie close together are read with one request.
//
// Thread-safe. One worker serves all iterators of a database.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vtkv/blob/value_reader.h"
#include "vtkv/env.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

// The values of some pointers, on their way.
class ValueFetch {
 public:
  // `keep` holds what the pointers were found in, until the last read has ended. With `remember`, what was read
  // and asked for goes into the cache.
  ValueFetch(const ValueReader* reader, std::shared_ptr<const void> keep, bool remember)
      : m_reader(reader), m_keep(std::move(keep)), m_remember(remember) {}
  // In any order. An error concerns this value only.
  Status add(const ValuePointer& pointer);
  // The value of the n-th one added, checked. REQUIRES: it was waited for. The view lives as long as this does.
  Status value(size_t n, std::string_view key, std::string_view* value) const;
  // The same, for somebody else than who asks for values: it goes into no cache.
  Status look_at(size_t n, std::string_view key, std::string_view* value) const;
  const ValuePointer& pointer(size_t n) const { return m_wanted[n].pointer; }
  // For each one added: are none of the others near enough to be had with the same read?
  std::vector<bool> find_apart() const;
  size_t size() const { return m_wanted.size(); }

 private:
  friend class ValueFetcher;
  struct Read {
    IoRequest io;
    LogSegment* segment = nullptr;
    uint64_t start = 0;
    uint64_t bytes = 0;
    AlignedBuffer buffer;
  };
  struct Wanted {
    ValuePointer pointer;
    std::shared_ptr<const CachedValue> cached;  // then nothing is read
    LogSegment* segment = nullptr;
    ValueExtent extent;
    size_t read = 0;
  };
  void plan();
  uint64_t gap_bytes() const;

  const ValueReader* const m_reader;
  const std::shared_ptr<const void> m_keep;
  const bool m_remember;
  std::vector<Wanted> m_wanted;
  std::vector<std::unique_ptr<Read>> m_reads;
  std::atomic<size_t> m_left{0};  // reads; changed under the fetcher's lock
  std::function<void()> m_done;
};

class ValueFetcher {
 public:
  ValueFetcher(Env* env, unsigned io_depth);
  // REQUIRES: nobody waits.
  ~ValueFetcher() = default;

  // Starts what was added. `done` is called by the worker when it has been read; never, when nothing has to be.
  void start(const std::shared_ptr<ValueFetch>& fetch, std::function<void()> done = nullptr);
  bool ended(const ValueFetch& fetch) const;
  void wait(const ValueFetch& fetch);

 private:
  NextStep step(IoQueue& io);

  mutable Mutex m_lock;
  std::unique_ptr<Signal> m_signal;
  std::vector<std::shared_ptr<ValueFetch>> m_new GUARDED_BY(m_lock);  // not submitted yet
  // The worker's own.
  std::vector<std::shared_ptr<ValueFetch>> m_started;
  std::vector<IoRequest*> m_completed;  // scratch
  std::unique_ptr<Worker> m_worker;
};

}  // namespace vtkv
