// SPDX-License-Identifier: LGPL-2.1-or-later
// Relocates what scans found fragmented over the log, unless the database has more urgent things to write.
//
// Thread-safe, without a lock of its own. Never waits.
#pragma once

#include <atomic>
#include <span>

#include "vtkv/blob/relocator.h"
#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/gc/value_gc.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class ScanRelocator final : public Relocator {
 public:
  ScanRelocator(const Options& options, const CommitPipeline* pipeline, const SegmentPool* pool, const ValueGc* gc,
                Relocator* writes)
      : m_options(options), m_pipeline(pipeline), m_pool(pool), m_gc(gc), m_writes(writes) {}

  Status relocate(std::span<const Relocation> values, SequenceNumber checked, Relocated* relocated) override;
  uint64_t moved_bytes() const { return m_moved_bytes.load(); }

 private:
  const Options& m_options;
  const CommitPipeline* const m_pipeline;
  const SegmentPool* const m_pool;
  const ValueGc* const m_gc;
  Relocator* const m_writes;
  std::atomic<uint64_t> m_moved_bytes{0};
};

}  // namespace vtkv
