// Reads blocks of spans, checked, through the cache or ahead of a sequential reader.
//
// Thread-safe, except ReadAhead, which belongs to one iterator.
#pragma once

#include <memory>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/span/block.h"
#include "vtkv/span/block_cache.h"
#include "vtkv/zone/zone_file.h"

namespace vtkv {

class SpanReader {
 public:
  SpanReader(std::shared_ptr<ZoneFile> file, std::shared_ptr<BlockCache> cache)
      : m_file(std::move(file)), m_cache(std::move(cache)) {}

  // Through the cache.
  Status read(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
              std::shared_ptr<const Block>* block) const;
  // From the disk, not remembered. A failed read or checksum is tried again up to three times: the
  // second copy of a mirrored device, or a bad cable, may still give the right bytes.
  Status read_uncached(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
                       std::shared_ptr<const Block>* block) const;
  ZoneFile& file() const { return *m_file; }
  const std::shared_ptr<ZoneFile>& shared_file() const { return m_file; }

 private:
  std::shared_ptr<ZoneFile> m_file;
  std::shared_ptr<BlockCache> m_cache;
};

// For a merge: reads hundreds of KiB of a span at once and gives out the blocks; the cache is left alone.
class ReadAhead {
 public:
  explicit ReadAhead(const SpanReader* reader) : m_reader(reader) {}
  Status read(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
              std::shared_ptr<const Block>* block);

 private:
  const SpanReader* const m_reader;
  AlignedBuffer m_buffer;
  uint64_t m_span_id = 0;
  uint32_t m_unit = 0;   // what the buffer holds of that span
  uint32_t m_units = 0;
};

}  // namespace vtkv
