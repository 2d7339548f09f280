// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads blocks of spans, checked, through the cache or ahead of a sequential reader.
//
// Thread-safe, except ReadAhead, which belongs to one iterator.
#pragma once

#include <map>
#include <memory>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/span/block.h"
#include "vtkv/util/read_cache.h"
#include "vtkv/zone/zone_file.h"

namespace vtkv {

class SpanReader {
 public:
  SpanReader(std::shared_ptr<ZoneFile> file, std::shared_ptr<ReadCache> cache)
      : m_file(std::move(file)), m_cache(std::move(cache)) {}

  // Through the cache.
  Status read(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
              std::shared_ptr<const Block>* block) const;
  // From the disk, not remembered. A failed read or checksum is tried again up to three times: the
  // second copy of a mirrored device, or a bad cable, may still give the right bytes.
  Status read_uncached(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
                       std::shared_ptr<const Block>* block) const;
  // From the cache only; null when it is not there.
  std::shared_ptr<const Block> find(const Span& span, uint32_t unit) const {
    return std::static_pointer_cast<const Block>(m_cache->find({ReadCache::Kind::block, span.id, unit}));
  }
  void remember(const Span& span, uint32_t unit, std::shared_ptr<const Block> block) const {
    m_cache->insert({ReadCache::Kind::block, span.id, unit}, std::move(block));
  }
  // For read(), instead of those on disk: made anew from the blocks, by span id (table/run_salvage.cc).
  using Indexes = std::map<uint64_t, std::shared_ptr<const Block>>;
  void set_spare_indexes(std::shared_ptr<const Indexes> indexes) { m_spare_indexes = std::move(indexes); }
  ZoneFile& file() const { return *m_file; }
  const std::shared_ptr<ZoneFile>& shared_file() const { return m_file; }

 private:
  std::shared_ptr<ZoneFile> m_file;
  std::shared_ptr<ReadCache> m_cache;
  std::shared_ptr<const Indexes> m_spare_indexes;  // null: none
};

// Blocks of a kind for one reader that mostly goes forward: the further it gets without a jump, the more is read at
// once, up to half a MiB.
class ReadAhead {
 public:
  enum class Use {
    scan,        // through the cache; a long scan stops filling it
    compaction,  // past the cache
  };
  ReadAhead(const SpanReader* reader, Use use, BlockKind kind = BlockKind::entries)
      : m_reader(reader), m_use(use), m_kind(kind) {}
  // The reader does not jump when it reads there next, wherever that is.
  void goes_on_at(const Span& span, uint32_t unit) {
    m_next_offset = span.offset + static_cast<uint64_t>(unit) * kUnitBytes;
  }
  // The reader may go on up to `end_unit` of the span.
  Status read(const Span& span, uint32_t unit, uint32_t units, uint32_t end_unit, std::shared_ptr<const Block>* block);

 private:
  Status read_window(const Span& span, uint32_t unit, uint32_t units, uint32_t end_unit,
                     std::shared_ptr<const Block>* block);
  bool holds(const Span& span, uint32_t unit, uint32_t units) const;

  const SpanReader* const m_reader;
  const Use m_use;
  const BlockKind m_kind;
  uint64_t m_next_offset = 0;  // in the file: where a reader that does not jump goes on
  uint32_t m_steps = 0;        // without a jump
  uint32_t m_window_units = 0;
  AlignedBuffer m_buffer;
  uint64_t m_span_id = 0;
  uint32_t m_unit = 0;   // what the buffer holds of that span
  uint32_t m_units = 0;
};

}  // namespace vtkv
