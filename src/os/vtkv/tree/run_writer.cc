#include "vtkv/tree/run_writer.h"

#include <algorithm>

#include "vtkv/util/coding.h"
#include "vtkv/util/hash.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
constexpr size_t kFilterBlockBytes = 64 << 10;
}  // namespace

RunWriter::RunWriter(Env* env, const SpanReader& reader, const Settings& settings)
    : m_env(env),
      m_reader(reader),
      m_settings(settings),
      m_filter(settings.filter_bits),
      m_list(reader.shared_file()),
      m_entry_spans(env, reader.shared_file(), settings.stream, true, &m_list),
      m_index_spans(env, reader.shared_file(), ZoneStream::index, false, &m_list) {
  m_descriptor.run_id = settings.run_id;
  m_descriptor.smallest_sequence = UINT64_MAX;
}

Status RunWriter::add(const Entry& entry) {
  if (!m_block.empty() && m_block.bytes_with(entry) > m_settings.block_bytes) {
    VTKV_RETURN_IF_ERROR(finish_block());
  }
  if (m_block.empty()) {
    m_block_first_key.assign(entry.key);
    m_block_first_sequence = entry.sequence;
  }
  if (m_descriptor.entries == 0) {
    m_descriptor.smallest_key.assign(entry.key);
  }
  INVARIANT(m_descriptor.entries == 0 || m_descriptor.greatest_key <= entry.key);
  m_descriptor.greatest_key.assign(entry.key);
  m_descriptor.smallest_sequence = std::min(m_descriptor.smallest_sequence, entry.sequence);
  m_descriptor.greatest_sequence = std::max(m_descriptor.greatest_sequence, entry.sequence);
  m_descriptor.removals += entry.type == EntryType::removal;
  ++m_descriptor.entries;
  m_filter.add(hash64(entry.key));
  m_block.add(entry);
  return {};
}

Status RunWriter::finish_block() {
  BlockHandle handle;
  VTKV_RETURN_IF_ERROR(m_entry_spans.append(&m_block, &handle));
  m_handle.clear();
  handle.encode(&m_handle);
  const Entry entry{m_block_first_key, m_block_first_sequence, EntryType::value, m_handle};
  if (!m_index_block.empty() && m_index_block.bytes_with(entry) > m_settings.block_bytes) {
    VTKV_RETURN_IF_ERROR(finish_index_block());
  }
  if (m_index_block.empty()) {
    m_index_first_key = m_block_first_key;
    m_index_first_sequence = m_block_first_sequence;
  }
  m_index_block.add(entry);
  return {};
}

Status RunWriter::finish_index_block() {
  IndexRoot root{m_index_first_key, m_index_first_sequence, {}};
  VTKV_RETURN_IF_ERROR(m_index_spans.append(&m_index_block, &root.block));
  m_descriptor.index.push_back(std::move(root));
  return {};
}

Status RunWriter::write_removals(const RangeRemovals& removals) {
  std::vector<RangeRemoval> all;
  removals.for_each([&](const RangeRemoval& removal) { all.push_back(removal); });
  // Equal ranges, one behind the other, are one entry.
  std::sort(all.begin(), all.end(), [](const RangeRemoval& a, const RangeRemoval& b) {
    const int order = a.begin.compare(b.begin);
    return order != 0 ? order < 0 : a.sequence > b.sequence;
  });
  BlockBuilder builder(BlockKind::removals);
  const auto finish = [&] {
    return m_index_spans.append(&builder, &m_descriptor.removal_blocks.emplace_back());
  };
  std::string value, sequences;
  for (size_t i = 0; i < all.size();) {
    const RangeRemoval& first = all[i];
    uint32_t count = 0;
    sequences.clear();
    for (; i < all.size() && all[i].begin == first.begin && all[i].end == first.end; ++i, ++count) {
      put_varint64(&sequences, all[i].sequence);
      m_descriptor.smallest_sequence = std::min(m_descriptor.smallest_sequence, all[i].sequence);
      m_descriptor.greatest_sequence = std::max(m_descriptor.greatest_sequence, all[i].sequence);
    }
    value.clear();
    put_length_prefixed(&value, first.end);
    put_varint32(&value, count);
    value.append(sequences);
    const Entry entry{first.begin, first.sequence, EntryType::removal, value};
    if (!builder.empty() && builder.bytes_with(entry) > m_settings.block_bytes) {
      VTKV_RETURN_IF_ERROR(finish());
    }
    builder.add(entry);
  }
  return builder.empty() ? Status() : finish();
}

Status RunWriter::write_filter(const QuotientFilter& filter) {
  const std::string bytes = filter.serialized();
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kFilterBlockBytes - sizeof(block_header_t));
    BlockBuilder builder(BlockKind::filter);
    builder.set_body(std::string(piece));
    BlockHandle handle;
    VTKV_RETURN_IF_ERROR(m_index_spans.append(&builder, &handle));
    m_descriptor.filter_blocks.push_back(handle);
    rest.remove_prefix(piece.size());
  }
  return {};
}

Status RunWriter::write_descriptor(RunLocation* location, ZoneFile::Pins* pins) {
  BlockBuilder builder(BlockKind::descriptor);
  std::string body;
  m_descriptor.encode(&body);
  builder.set_body(std::move(body));
  SpanList list(m_reader.shared_file());
  SpanWriter writer(m_env, m_reader.shared_file(), ZoneStream::index, false, &list);
  BlockHandle handle;
  VTKV_RETURN_IF_ERROR(writer.append(&builder, &handle));
  VTKV_RETURN_IF_ERROR(writer.finish());
  VTKV_ASSERT(list.spans.size() == 1);
  *location = {m_settings.run_id, m_settings.level, list.spans.front(), 0};
  pins->add(location->span.offset, location->span.bytes());
  return {};
}

Status RunWriter::finish(std::shared_ptr<RangeRemovals> removals, std::shared_ptr<const Run>* run) {
  run->reset();
  if (m_descriptor.entries == 0 && removals->empty()) {
    return {};
  }
  if (!m_block.empty()) {
    VTKV_RETURN_IF_ERROR(finish_block());
    VTKV_RETURN_IF_ERROR(finish_index_block());
  }
  VTKV_RETURN_IF_ERROR(write_removals(*removals));
  QuotientFilter filter = m_filter.finish();
  VTKV_RETURN_IF_ERROR(write_filter(filter));
  VTKV_RETURN_IF_ERROR(m_entry_spans.finish());
  VTKV_RETURN_IF_ERROR(m_index_spans.finish());
  m_descriptor.spans = m_list.spans;
  RunLocation location;
  VTKV_RETURN_IF_ERROR(write_descriptor(&location, &m_list.pins));
  *run = std::make_shared<Run>(m_reader, location, std::move(m_descriptor), std::move(removals),
                               std::move(filter), std::move(m_list.pins));
  return {};
}

}  // namespace vtkv
