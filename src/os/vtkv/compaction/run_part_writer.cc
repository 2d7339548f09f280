// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/run_part_writer.h"

#include <utility>

#include "vtkv/compaction/stitch_compaction.h"
#include "vtkv/util/hash.h"

namespace vtkv {

RunPartWriter::RunPartWriter(Env* env, const SpanReader& reader, NextSettings next_settings, uint64_t part_bytes,
                             const KeyRange& range, const RangeTombstones& tombstones)
    : m_env(env),
      m_reader(reader),
      m_next_settings(std::move(next_settings)),
      m_part_bytes(part_bytes),
      m_range(range),
      m_tombstones(tombstones),
      m_part_begin(range.begin) {}

RunWriter& RunPartWriter::writer() {
  if (!m_writer) {
    m_writer = std::make_unique<RunWriter>(m_env, m_reader, m_next_settings());
  }
  return *m_writer;
}

// Ends the part in front of `key` when it is large enough.
Status RunPartWriter::begin_key(std::string_view key) {
  const bool is_large = m_writer && m_writer->copied_bytes() + m_writer->stitched_bytes() >= m_part_bytes;
  return is_large && m_last_key < key ? end_part(key) : Status();
}

Status RunPartWriter::add(const Entry& entry) {
  VTKV_RETURN_IF_ERROR(begin_key(entry.key));
  m_last_key.assign(entry.key);
  return writer().add(entry);
}

Status RunPartWriter::stitch(const Span& span, const BlockRange& blocks) {
  VTKV_RETURN_IF_ERROR(begin_key(blocks.first_key));
  m_last_key.assign(blocks.last_key);
  VTKV_RETURN_IF_ERROR(writer().stitch(span, blocks));
  return add_keys_to_filter(span, blocks);
}

// A filter is in the order of hashes and cannot be cut by keys. So the keys are read, once.
Status RunPartWriter::add_keys_to_filter(const Span& span, const BlockRange& blocks) {
  std::shared_ptr<const Block> block;
  VTKV_RETURN_IF_ERROR(m_reader.read(span, span.index_unit, span.index_units, BlockKind::index, &block));
  BlockIterator index(std::move(block));
  ReadAhead ahead(&m_reader, ReadAhead::Use::compaction);
  uint32_t end_unit = blocks.unit;
  for (index.seek(blocks.first_key, blocks.first_sequence); index.valid() && end_unit < blocks.end_unit();
       index.next()) {
    uint32_t unit = 0, units = 0;
    if (!BlockRange::decode_address(index.entry().value, &unit, &units) || units == 0 || unit != end_unit) {
      return Status::corruption(m_reader.file().path() + ": a span's index contradicts the descriptor");
    }
    end_unit = unit + units;
    m_filter_read_bytes += uint64_t{units} * kUnitBytes;
    VTKV_RETURN_IF_ERROR(ahead.read(span, unit, units, blocks.end_unit(), &block));
    BlockIterator entries(std::move(block));
    for (entries.seek_to_first(); entries.valid(); entries.next()) {
      m_writer->add_to_filter(hash64(entries.entry().key));
    }
    VTKV_RETURN_IF_ERROR(entries.status());
  }
  VTKV_RETURN_IF_ERROR(index.status());
  return end_unit == blocks.end_unit()
             ? Status()
             : Status::corruption(m_reader.file().path() + ": a span's index contradicts the descriptor");
}

Status RunPartWriter::pass(const Run& part) {
  VTKV_RETURN_IF_ERROR(end_part(part.begin_key()));
  m_part_begin = m_last_key = part.end_key();
  return {};
}

Status RunPartWriter::take_whole(const std::shared_ptr<const Run>& part, const std::vector<SequenceNumber>& snapshots,
                                 EntryObserver* observer) {
  VTKV_RETURN_IF_ERROR(pass(*part));
  const RangeTombstones none;
  const CompactionIterator::AnythingOlder anything;
  CompactionIterator iterator(&snapshots, &none, &anything, observer);
  StitchPolicy everything;
  everything.bytes_min = 0;
  everything.drops_tombstones = false;
  const RunWriter::Settings settings = m_next_settings();
  RunWriter writer(m_env, m_reader, settings);
  VTKV_RETURN_IF_ERROR(StitchCompaction({part}, &iterator, everything, settings.pace, &writer).run());
  std::shared_ptr<const Run> taken;
  VTKV_RETURN_IF_ERROR(writer.finish_as(*part, {}, nullptr, &taken));
  account(writer);
  m_parts.push_back(std::move(taken));
  return {};
}

void RunPartWriter::account(const RunWriter& writer) {
  m_copied_bytes += writer.copied_bytes();
  m_written_bytes += writer.written_bytes();
  m_stitched_bytes += writer.stitched_bytes();
}

// Up to `end`, or without one to the end of all keys.
Status RunPartWriter::end_part(std::optional<std::string_view> end) {
  auto tombstones = std::make_shared<RangeTombstones>(m_tombstones.within(m_part_begin, end));
  if (!m_writer && tombstones->empty()) {
    return {};
  }
  std::shared_ptr<const Run> part;
  VTKV_RETURN_IF_ERROR(writer().finish(std::move(tombstones), &part));
  account(*m_writer);
  m_writer.reset();
  m_part_begin = end.value_or("");
  if (part) {
    m_parts.push_back(std::move(part));
  }
  return {};
}

Status RunPartWriter::finish(Runs* parts) {
  VTKV_RETURN_IF_ERROR(end_part(m_range.end ? std::optional<std::string_view>(*m_range.end) : std::nullopt));
  *parts = std::move(m_parts);
  return {};
}

}  // namespace vtkv
