// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes blocks one behind the other into zones, as spans, with few large writes.
//
// Not thread-safe: one writer, one thread. Several writers may work on one zone file at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/span/block_builder.h"
#include "vtkv/span/block_format.h"
#include "vtkv/zone/zone_file.h"

namespace vtkv {

// The spans of one run, in the order that block handles count them in, and the pins of their zones.
struct SpanList {
  explicit SpanList(std::shared_ptr<ZoneFile> file) : pins(std::move(file)) {}
  std::vector<Span> spans;
  ZoneFile::Pins pins;
};

class SpanWriter {
 public:
  SpanWriter(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, SpanList* list);
  ~SpanWriter();
  SpanWriter(const SpanWriter&) = delete;
  SpanWriter& operator=(const SpanWriter&) = delete;

  // Finishes the builder's block and takes it. Its handle holds from now on, its bytes from finish() on.
  // A span that has to be begun for it has room for `room_behind` bytes more.
  Status append(BlockBuilder* builder, BlockHandle* handle, uint64_t room_behind = 0);
  // Would so many bytes still lie in the span that grows?
  bool fits(uint64_t bytes) const { return m_open && m_growing && m_range.bytes - m_used_bytes >= bytes; }
  // The next block begins a span of its own.
  void end_span();
  // Writes what is buffered. Not durable before a sync of the zone file.
  Status finish();
  uint64_t bytes() const { return m_total_bytes; }

 private:
  Status acquire(uint64_t bytes_min);
  void close_range();
  Status write_buffer();

  Env* const m_env;
  const std::shared_ptr<ZoneFile> m_file;
  const ZoneStream m_stream;
  SpanList* const m_list;

  bool m_open = false;     // a range is held
  bool m_growing = false;  // and the span below grows in it
  ZoneRange m_range;
  size_t m_span = 0;            // ordinal of the growing span
  uint64_t m_used_bytes = 0;    // of m_range, buffered ones included
  uint64_t m_total_bytes = 0;

  std::string m_block;
  AlignedBuffer m_buffer;  // the last bytes of what is used of the range, not written yet
};

}  // namespace vtkv
