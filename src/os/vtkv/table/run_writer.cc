// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/run_writer.h"

#include <algorithm>

#include "vtkv/span/long_body.h"
#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
constexpr size_t kFilterBlockBytesMax = 64 << 10;
constexpr uint64_t kFilterBlocksPerZone = 4;  // at least: what does not fit into the rest of a zone wastes it
}  // namespace

RunWriter::RunWriter(Env* env, const SpanReader& reader, const Settings& settings)
    : m_env(env),
      m_reader(reader),
      m_settings(settings),
      m_paced(settings.pace),
      m_filter(settings.filter_bits, [this] { return m_paced.go_on(); }),
      m_list(reader.shared_file()),
      m_fill(env, reader.shared_file(), settings.stream, settings.block_bytes, &m_list),
      m_other_spans(env, reader.shared_file(), settings.stream, &m_list) {
  m_descriptor.run_id = settings.run_id;
  m_descriptor.smallest_sequence = UINT64_MAX;
}

// Blocks of a run contradict each other, or one its own order.
Status RunWriter::out_of_order() const {
  return Status::corruption(m_reader.file().path() +
                            ": keys of the tree are out of order under good checksums; 'verify' names the run; restore "
                            "the database from a copy");
}

Status RunWriter::add(const Entry& entry) {
  if (!m_block.empty() && m_block.bytes_with(entry) > m_compressed_size.plain_bytes(m_settings.block_bytes) &&
      m_block.bytes_with(entry) > m_fill.block_bytes_wanted(m_block_range)) {
    VTKV_RETURN_IF_ERROR(finish_block());
  }
  const int order = m_any ? m_last_key.compare(entry.key) : -1;
  if (order > 0) {
    return out_of_order();
  }
  m_block_range.add(entry, order == 0);
  m_last_key.assign(entry.key);
  m_any = true;
  m_filter.add(hash64(entry.key));
  m_block.add(entry);
  return {};
}

Status RunWriter::finish_block() {
  const bool half_full = m_block.bytes() >= m_compressed_size.plain_bytes(m_settings.block_bytes) / 2;
  if (m_settings.compress_blocks && (half_full || m_block.bytes() > kUnitBytes)) {
    const double ratio = m_block.compress();
    if (half_full) {
      m_compressed_size.saw(ratio);
    }
  }
  uint32_t span = 0;
  VTKV_RETURN_IF_ERROR(m_fill.append(&m_block, &m_block_range, &span));
  add_slice(span, std::move(m_block_range));
  m_block_range = {};
  return {};
}

void RunWriter::note_sequence(SequenceNumber sequence) {
  m_descriptor.smallest_sequence = std::min(m_descriptor.smallest_sequence, sequence);
  m_descriptor.greatest_sequence = std::max(m_descriptor.greatest_sequence, sequence);
}

void RunWriter::add_slice(uint32_t span, BlockRange blocks) {
  note_sequence(blocks.smallest_sequence);
  note_sequence(blocks.greatest_sequence);
  append_slice(span, std::move(blocks), &m_descriptor.slices);
}

// The ordinal of another run's span in the new one.
uint32_t RunWriter::take_over(const Span& span) {
  const auto [found, is_new] = m_stitched_spans.try_emplace(span.id, static_cast<uint32_t>(m_list.spans.size()));
  if (is_new) {
    m_list.spans.push_back(span);
  }
  return found->second;
}

// All of these blocks, or none.
bool RunWriter::take_over(const Run& old, const std::vector<BlockHandle>& blocks, const MustMove& must_move,
                          std::vector<BlockHandle>* taken) {
  const std::vector<Span>& spans = old.descriptor().spans;
  const bool all = std::none_of(blocks.begin(), blocks.end(), [&](const BlockHandle& handle) {
    return must_move && must_move(spans[handle.span].offset, spans[handle.span].bytes());
  });
  for (size_t i = 0; all && i < blocks.size(); ++i) {
    BlockHandle handle = blocks[i];
    handle.span = take_over(spans[handle.span]);
    taken->push_back(handle);
  }
  return all;
}

Status RunWriter::stitch(const Span& span, const BlockRange& blocks) {
  if (!m_block.empty()) {
    VTKV_RETURN_IF_ERROR(finish_block());
  }
  if (m_any && m_last_key >= blocks.first_key) {
    return out_of_order();
  }
  m_last_key.assign(blocks.last_key);
  m_any = true;
  m_stitched_bytes += static_cast<uint64_t>(blocks.units) * kUnitBytes;
  add_slice(take_over(span), blocks);
  return {};
}

Status RunWriter::append_other(BlockBuilder* builder, BlockHandle* handle) {
  const uint64_t before = m_other_spans.bytes();
  VTKV_RETURN_IF_ERROR(m_other_spans.append(builder, handle));
  (void)m_paced.go_on(m_other_spans.bytes() - before);
  return m_paced.status();
}

Status RunWriter::write_tombstones(const RangeTombstones& tombstones) {
  std::vector<RangeTombstone> all;
  tombstones.for_each([&](const RangeTombstone& tombstone) { all.push_back(tombstone); });
  // Equal ranges, one behind the other, are one entry.
  std::sort(all.begin(), all.end(), [](const RangeTombstone& a, const RangeTombstone& b) {
    const int order = a.begin.compare(b.begin);
    return order != 0 ? order < 0 : a.sequence > b.sequence;
  });
  BlockBuilder builder(BlockKind::tombstones);
  const auto finish = [&] { return append_other(&builder, &m_descriptor.tombstone_blocks.emplace_back()); };
  std::string value;
  for (size_t i = 0; i < all.size();) {
    const RangeTombstone& first = all[i];
    TombstoneRange range{first.end, {}};
    for (; i < all.size() && all[i].begin == first.begin && all[i].end == first.end; ++i) {
      range.sequences.push_back(all[i].sequence);
      note_sequence(all[i].sequence);
    }
    value.clear();
    range.encode(&value);
    const Entry entry{first.begin, first.sequence, EntryType::tombstone, value};
    if (!builder.empty() && builder.bytes_with(entry) > m_settings.block_bytes) {
      VTKV_RETURN_IF_ERROR(finish());
    }
    builder.add(entry);
  }
  return builder.empty() ? Status() : finish();
}

Status RunWriter::write_filter(const QuotientFilter& filter) {
  const size_t block_bytes = std::max<size_t>(
      kUnitBytes, std::min<size_t>(kFilterBlockBytesMax, m_reader.file().map().zone_bytes() / kFilterBlocksPerZone));
  const std::string bytes = filter.serialized();
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::string_view fragment = rest.substr(0, block_bytes - sizeof(block_header_t));
    BlockBuilder builder(BlockKind::filter);
    builder.set_body(std::string(fragment));
    BlockHandle handle;
    VTKV_RETURN_IF_ERROR(append_other(&builder, &handle));
    m_descriptor.filter_blocks.push_back(handle);
    rest.remove_prefix(fragment.size());
  }
  return {};
}

Status RunWriter::write_descriptor(SpanList* list, RunLocation* location) {
  std::string body;
  m_descriptor.encode(&body);
  SpanWriter writer(m_env, m_reader.shared_file(), m_settings.stream, list);
  VTKV_RETURN_IF_ERROR(write_long_body(BlockKind::descriptor, body, &writer));
  VTKV_ASSERT(list->spans.size() == 1);
  m_descriptor_bytes = writer.bytes();
  *location = {m_settings.run_id, m_settings.level, list->spans.front(), 0};
  return {};
}

Status RunWriter::finish_as(const Run& old, const MustMove& must_move,
                            std::shared_ptr<const RangeTombstones> tombstones, std::shared_ptr<const Run>* run) {
  if (!tombstones) {
    tombstones = old.range_tombstones();
    m_has_tombstones = take_over(old, old.descriptor().tombstone_blocks, must_move, &m_descriptor.tombstone_blocks);
    tombstones->for_each([this](const RangeTombstone& tombstone) { note_sequence(tombstone.sequence); });
  }
  if (m_stitched_bytes > 0) {
    m_has_filter = take_over(old, old.descriptor().filter_blocks, must_move, &m_descriptor.filter_blocks);
    m_shared_filter = old.shared_filter();
  }
  return finish(std::move(tombstones), run);
}

Status RunWriter::finish(std::shared_ptr<const RangeTombstones> tombstones, std::shared_ptr<const Run>* run) {
  if (!m_any && tombstones->empty()) {
    run->reset();
    return {};
  }
  if (!m_block.empty()) {
    VTKV_RETURN_IF_ERROR(finish_block());
  }
  // The rest of the zone goes to the spans that follow.
  VTKV_RETURN_IF_ERROR(m_fill.finish());
  if (!m_has_tombstones) {
    VTKV_RETURN_IF_ERROR(write_tombstones(*tombstones));
  }
  std::shared_ptr<const QuotientFilter> filter = m_shared_filter;
  if (!filter) {
    filter = std::make_shared<QuotientFilter>(m_filter.finish());
    VTKV_RETURN_IF_ERROR(m_paced.status());
  }
  if (!m_has_filter) {
    VTKV_RETURN_IF_ERROR(write_filter(*filter));
  }
  VTKV_RETURN_IF_ERROR(m_other_spans.finish());
  m_descriptor.spans = m_list.spans;
  m_descriptor.shrink_to_fit();
  RunLocation location;
  SpanList own(m_reader.shared_file());  // pins the descriptor until the run does
  VTKV_RETURN_IF_ERROR(write_descriptor(&own, &location));
  *run = std::make_shared<Run>(m_reader, location, std::move(m_descriptor), std::move(tombstones), std::move(filter));
  return {};
}

}  // namespace vtkv
