// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads values that stayed in the log, through the read cache.
//
// Thread-safe. The caller holds what it found the pointer in (a ReadState): that keeps the segment from being
// used again.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vtkv/blob/cached_value.h"
#include "vtkv/mem/value_pointer.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

// Where the slices of one read lie: whole blocks around a value.
struct ValueExtent {
  uint64_t start = 0;  // in the segment's file, aligned
  uint64_t bytes = 0;  // aligned
};

class ValueReader {
 public:
  // `cache` null: every value is read from the disk.
  ValueReader(const SegmentPool* pool, std::shared_ptr<ReadCache> cache) : m_pool(pool), m_cache(std::move(cache)) {}

  // Follows an encoded ValuePointer. Errors: corruption (naming file and offset), io_error.
  Status read(std::string_view key, std::string_view pointer, std::string* value) const;

  // The steps of read(), for whoever reads several at once. From the cache; null when it is not there.
  std::shared_ptr<const CachedValue> find(const ValuePointer& pointer) const;
  // What was read and checked.
  void remember(const ValuePointer& pointer, std::string_view value) const;
  // The segment that the pointer leads into.
  Status locate(const ValuePointer& pointer, LogSegment** segment, ValueExtent* extent) const;
  uint64_t segment_bytes() const { return m_pool->segment_bytes(); }
  // Is `value`, read from where the pointer says, what was written there for this key?
  static Status check(std::string_view key, const ValuePointer& pointer, const LogSegment& segment,
                      std::string_view value);

 private:
  const SegmentPool* const m_pool;
  const std::shared_ptr<ReadCache> m_cache;
};

}  // namespace vtkv
