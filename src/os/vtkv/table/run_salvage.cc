// SPDX-License-Identifier: LGPL-2.1-or-later
// Opening a run of which a slice cannot be read, as one that does not name that slice.
//
// A block that cannot be read is left out of the run's slices. An index that cannot is made anew: the blocks lie in its
// span one behind the other, and each says where it is.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "vtkv/env/read_retries.h"
#include "vtkv/span/block_builder.h"
#include "vtkv/table/run.h"
#include "vtkv/table/salvaged.h"

namespace vtkv {

namespace {

struct SalvagedBlock {
  BlockRange range;  // of one that cannot be read: `units` is 0, where its index is lost, too
  Status status;
};
using SalvagedBlocks = std::vector<SalvagedBlock>;

// The lines of the index that belong to the slice, and whether their blocks can be read. An error is the index's.
Status read_blocks(const SpanReader& reader, const Span& span, const BlockRange& slice, SalvagedBlocks* blocks) {
  std::shared_ptr<const Block> block;
  VTKV_RETURN_IF_ERROR(reader.read_uncached(span, span.index_unit, span.index_units, BlockKind::index, &block));
  BlockIterator index(std::move(block));
  ReadAhead ahead(&reader, ReadAhead::Use::compaction);
  uint32_t next_unit = slice.unit;
  for (index.seek(slice.first_key, slice.first_sequence); index.valid() && next_unit < slice.end_unit(); index.next()) {
    BlockRange range;
    if (!range.decode_line(index.entry()) || range.unit != next_unit || range.end_unit() > slice.end_unit()) {
      return Status::corruption("a span's index contradicts the descriptor");
    }
    next_unit = range.end_unit();
    Status status = ahead.read(span, range.unit, range.units, slice.end_unit(), &block);
    blocks->push_back({std::move(range), std::move(status)});
  }
  VTKV_RETURN_IF_ERROR(index.status());
  return next_unit == slice.end_unit() ? Status() : Status::corruption("a span's index ends too early");
}

// The block of entries that lies at this unit.
Status read_block_at(const SpanReader& reader, const Span& span, uint32_t unit, uint32_t end_unit, BlockRange* range) {
  AlignedBuffer first(kUnitBytes);
  const uint64_t offset = span.offset + uint64_t{unit} * kUnitBytes;
  block_header_t header;
  uint64_t units = 0;
  VTKV_RETURN_IF_ERROR(read_with_retries([&] {
    VTKV_RETURN_IF_ERROR(reader.file().file()->read(offset, kUnitBytes, first.data()));
    std::memcpy(&header, first.data(), sizeof(header));
    units = (sizeof(header) + uint64_t{header.body_bytes} + kUnitBytes - 1) / kUnitBytes;
    if (header.magic != kBlockMagic || units > end_unit - unit) {
      return Status::corruption("cannot read what lies at " + std::to_string(offset) + " of " + reader.file().path() +
                                ": there is no block");
    }
    return Status();
  }));
  std::shared_ptr<const Block> block;
  VTKV_RETURN_IF_ERROR(reader.read_uncached(span, unit, static_cast<uint32_t>(units), BlockKind::entries, &block));
  *range = {};
  BlockIterator entries(std::move(block));
  for (entries.seek_to_first(); entries.valid(); entries.next()) {
    range->add(entries.entry(), range->entries > 0 && entries.entry().key == range->last_key);
  }
  VTKV_RETURN_IF_ERROR(entries.status());
  range->unit = unit;
  range->units = static_cast<uint32_t>(units);
  return range->entries > 0 ? Status() : Status::corruption("a block holds nothing");
}

// As read_blocks, without the index.
void find_blocks(const SpanReader& reader, const Span& span, const BlockRange& slice, SalvagedBlocks* blocks) {
  uint64_t missing = slice.entries;
  for (uint32_t unit = slice.unit; unit < slice.end_unit();) {
    SalvagedBlock found;
    found.status = read_block_at(reader, span, unit, slice.end_unit(), &found.range);
    if (found.status.ok()) {
      unit = found.range.end_unit();
      missing -= std::min(missing, found.range.entries);
      blocks->push_back(std::move(found));
      continue;
    }
    ++unit;
    if (blocks->empty() || blocks->back().status.ok()) {
      found.range = {};
      blocks->push_back(std::move(found));
    }
  }
  // What is lost lies between what is not.
  for (size_t i = 0; i < blocks->size(); ++i) {
    if (SalvagedBlock& lost = (*blocks)[i]; !lost.status.ok()) {
      lost.range.first_key = i > 0 ? (*blocks)[i - 1].range.last_key : slice.first_key;
      lost.range.last_key = i + 1 < blocks->size() ? (*blocks)[i + 1].range.first_key : slice.last_key;
      lost.range.entries = std::exchange(missing, 0);  // where of them, nobody knows
    }
  }
}

// No slice ends between two versions of a key (run_iterator.cc).
void lose_split_keys(SalvagedBlocks* blocks) {
  for (size_t i = blocks->size(); i-- > 1;) {
    const SalvagedBlock& lost = (*blocks)[i];
    SalvagedBlock& before = (*blocks)[i - 1];
    if (!lost.status.ok() && lost.range.units > 0 && before.status.ok() &&
        before.range.last_key == lost.range.first_key) {
      before.status = lost.status;
    }
  }
}

Status make_index(const Span& span, const std::vector<BlockRange>& ranges, std::shared_ptr<const Block>* index) {
  BlockBuilder builder(BlockKind::index);
  for (const BlockRange& range : ranges) {
    std::string line;
    range.encode(&line);
    builder.add({range.first_key, range.first_sequence, EntryType::value, line});
  }
  std::string bytes;
  builder.finish(span.id, span.index_unit, &bytes);
  return Block::parse(bytes, {BlockKind::index, span.id, span.index_unit}, index);
}

}  // namespace

// What is left of the slices; and what is lost of them.
class Run::Salvager {
 public:
  Salvager(const SpanReader& reader, const RunDescriptor& descriptor, Salvaged* salvaged)
      : m_reader(reader), m_descriptor(descriptor), m_salvaged(*salvaged) {
    for (const SpanSlice& slice : descriptor.slices) {
      ++m_slices_left[slice.span];
    }
  }

  void salvage(const SpanSlice& slice) {
    const Span& span = m_descriptor.spans[slice.span];
    SalvagedBlocks blocks;
    if (!m_made_anew.contains(slice.span)) {
      if (const Status of_index = read_blocks(m_reader, span, slice.blocks, &blocks); !of_index.ok()) {
        m_made_anew.insert(slice.span);
        m_salvaged.notes.push_back("made an index anew, from the blocks that it names: " +
                                   std::string(of_index.message()));
      }
    }
    if (m_made_anew.contains(slice.span)) {
      blocks.clear();
      find_blocks(m_reader, span, slice.blocks, &blocks);
    }
    lose_split_keys(&blocks);
    for (SalvagedBlock& block : blocks) {
      if (!block.status.ok()) {
        m_salvaged.lost.push_back({LostKeys::Kind::entries, m_descriptor.run_id, block.range.first_key,
                                   block.range.last_key, block.range.entries, std::string(block.status.message())});
        continue;
      }
      m_lines[slice.span].push_back(block.range);
      append_slice(slice.span, std::move(block.range), &m_kept);
    }
    if (--m_slices_left[slice.span] == 0 && !m_made_anew.contains(slice.span)) {
      m_lines.erase(slice.span);
    }
  }

  // The indexes that were made anew.
  Status make_indexes(SpanReader* reader) const {
    auto indexes = std::make_shared<SpanReader::Indexes>();
    for (const auto& [number, lines] : m_lines) {
      const Span& span = m_descriptor.spans[number];
      VTKV_RETURN_IF_ERROR(make_index(span, lines, &(*indexes)[span.id]));
    }
    if (!indexes->empty()) {
      reader->set_spare_indexes(std::move(indexes));
    }
    return {};
  }

  std::vector<SpanSlice> take_kept() { return std::move(m_kept); }

 private:
  const SpanReader& m_reader;
  const RunDescriptor& m_descriptor;
  Salvaged& m_salvaged;
  std::vector<SpanSlice> m_kept;
  // By ordinal of the span.
  std::map<uint32_t, size_t> m_slices_left;
  std::set<uint32_t> m_made_anew;
  std::map<uint32_t, std::vector<BlockRange>> m_lines;  // of the indexes that were, or may still be, made anew
};

std::shared_ptr<const Run> Run::salvage(const SpanReader& reader, const RunLocation& location, Salvaged* salvaged) {
  const auto lose = [&](LostKeys::Kind kind, const Status& status) {
    salvaged->lost.push_back({kind, location.run_id, "", "", 0, std::string(status.message())});
  };
  RunDescriptor descriptor;
  if (const Status status = read_descriptor(reader, location, &descriptor); !status.ok()) {
    lose(LostKeys::Kind::run, status);
    // Without entries: it keeps the place of what is lost among the other runs.
    descriptor = {};
    descriptor.run_id = location.run_id;
    RunLocation nowhere;  // the place that the manifest names may lie beyond the file
    nowhere.run_id = location.run_id;
    nowhere.level = location.level;
    return std::make_shared<Run>(reader, nowhere, std::move(descriptor), std::make_shared<RangeTombstones>(),
                                 std::make_shared<QuotientFilter>());
  }
  Run whole(reader, location, std::move(descriptor), nullptr, nullptr);
  if (const Status status = whole.load_tombstones(); !status.ok()) {
    whole.m_tombstones = std::make_shared<RangeTombstones>();
    lose(LostKeys::Kind::tombstones, status);
  }
  if (const Status status = whole.load_filter(); !status.ok()) {
    whole.m_filter = std::make_shared<QuotientFilter>();
    salvaged->notes.push_back("went on without the filter of run " + std::to_string(location.run_id) + ": " +
                              std::string(status.message()));
  }
  Salvager salvager(reader, whole.m_descriptor, salvaged);
  for (const SpanSlice& slice : whole.m_descriptor.slices) {
    salvager.salvage(slice);
  }
  SpanReader own = reader;
  RunDescriptor kept = whole.m_descriptor;
  kept.slices = salvager.take_kept();
  if (const Status status = salvager.make_indexes(&own); !status.ok()) {
    lose(LostKeys::Kind::run, status);
    kept.slices.clear();
  }
  return std::make_shared<Run>(std::move(own), location, std::move(kept), whole.m_tombstones, whole.m_filter);
}

}  // namespace vtkv
