// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/run.h"

#include <deque>

#include "vtkv/span/long_body.h"
#include "vtkv/table/run_iterator.h"
#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

// The keys go to `keys`: the block does not stay.
Status load_tombstone(const Entry& entry, std::deque<std::string>* keys, std::vector<RangeTombstone>* tombstones) {
  TombstoneRange range;
  if (!range.decode(entry.value) || entry.key >= range.end) {
    return Status::corruption("a range tombstone is malformed");
  }
  const std::string& begin_key = keys->emplace_back(entry.key);
  const std::string& end_key = keys->emplace_back(range.end);
  for (const SequenceNumber sequence : range.sequences) {
    tombstones->push_back({begin_key, end_key, sequence});
  }
  return {};
}

}  // namespace

Run::Run(SpanReader reader, RunLocation location, RunDescriptor descriptor,
         std::shared_ptr<const RangeTombstones> tombstones, std::shared_ptr<const QuotientFilter> filter)
    : m_reader(std::move(reader)),
      m_location(std::move(location)),
      m_descriptor(std::move(descriptor)),
      m_tombstones(std::move(tombstones)),
      m_filter(std::move(filter)),
      m_entries(m_descriptor.entries()),
      m_entry_bytes(m_descriptor.entry_bytes()),
      m_doubtful(m_descriptor.doubtful()),
      m_bytes(m_descriptor.bytes() + m_location.span.bytes()),
      m_index_bytes(m_descriptor.memory_bytes()),
      m_pins(m_reader.shared_file()) {
  std::vector<ZoneRange> ranges;
  for_each_extent([&](uint64_t offset, uint64_t bytes, uint64_t) { ranges.push_back({offset, bytes}); });
  m_pins.add_zones(std::move(ranges));
  set_bounds();
}

void Run::set_bounds() {
  bool any = m_entries > 0;
  if (any) {
    m_begin_key = m_descriptor.smallest_key();
    m_end_key = m_descriptor.greatest_key() + '\0';
  }
  if (!m_tombstones) {
    return;
  }
  m_tombstones->for_each([&](const RangeTombstone& tombstone) {
    if (!any || tombstone.begin < m_begin_key) {
      m_begin_key = tombstone.begin;
    }
    if (!any || tombstone.end > m_end_key) {
      m_end_key = tombstone.end;
    }
    any = true;
  });
}

void Run::for_each_extent(const std::function<void(uint64_t offset, uint64_t bytes, uint64_t entries)>& visit) const {
  const auto bytes_of = [](uint32_t units) { return uint64_t{units} * kUnitBytes; };
  visit(m_location.span.offset, m_location.span.bytes(), 0);
  for (const Span& span : m_descriptor.spans) {
    if (span.holds_entries()) {
      visit(span.offset + bytes_of(span.index_unit), bytes_of(span.index_units), 0);
    } else {
      visit(span.offset, span.bytes(), 0);
    }
  }
  for (const SpanSlice& slice : m_descriptor.slices) {
    visit(m_descriptor.spans[slice.span].offset + bytes_of(slice.blocks.unit), bytes_of(slice.blocks.units),
          slice.blocks.entries);
  }
}

Status Run::read_descriptor(const SpanReader& reader, const RunLocation& location, RunDescriptor* descriptor) {
  uint64_t file_bytes = 0;
  VTKV_RETURN_IF_ERROR(reader.file().file()->size(&file_bytes));
  const Span& span = location.span;
  if (span.offset % kUnitBytes != 0 || span.offset > file_bytes || span.bytes() > file_bytes - span.offset ||
      location.unit >= span.units) {
    return Status::corruption("run " + std::to_string(location.run_id) + " does not lie in " + reader.file().path());
  }
  std::string body;
  VTKV_RETURN_IF_ERROR(read_long_body(reader, span, location.unit, BlockKind::descriptor, &body));
  Status status = RunDescriptor::decode(body, file_bytes, descriptor);
  if (status.ok() && descriptor->run_id != location.run_id) {
    status = Status::corruption("it describes run " + std::to_string(descriptor->run_id));
  }
  if (!status.ok()) {
    return Status::corruption("descriptor of run " + std::to_string(location.run_id) + " in " + reader.file().path() +
                              ": " + std::string(status.message()));
  }
  return {};
}

Status Run::open(const SpanReader& reader, const RunLocation& location, std::shared_ptr<const Run>* result) {
  RunDescriptor descriptor;
  VTKV_RETURN_IF_ERROR(read_descriptor(reader, location, &descriptor));
  auto run = std::make_shared<Run>(reader, location, std::move(descriptor), nullptr, nullptr);
  VTKV_RETURN_IF_ERROR(run->load_tombstones());
  VTKV_RETURN_IF_ERROR(run->load_filter());
  *result = std::move(run);
  return {};
}

Status Run::open_unread(const SpanReader& reader, const RunLocation& location, std::shared_ptr<const Run>* run) {
  RunDescriptor descriptor;
  VTKV_RETURN_IF_ERROR(read_descriptor(reader, location, &descriptor));
  *run = std::make_shared<Run>(reader, location, std::move(descriptor), nullptr, nullptr);
  return {};
}

Status Run::load_tombstones() {
  std::deque<std::string> keys;
  std::vector<RangeTombstone> tombstones;
  for (const BlockHandle& handle : m_descriptor.tombstone_blocks) {
    std::shared_ptr<const Block> block;
    VTKV_RETURN_IF_ERROR(m_reader.read_uncached(m_descriptor.spans[handle.span], handle.unit, handle.units,
                                                BlockKind::tombstones, &block));
    BlockIterator iterator(block);
    for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
      VTKV_RETURN_IF_ERROR(load_tombstone(iterator.entry(), &keys, &tombstones));
    }
    VTKV_RETURN_IF_ERROR(iterator.status());
  }
  m_tombstones = std::make_shared<RangeTombstones>(std::move(tombstones));
  set_bounds();
  return {};
}

Status Run::load_filter() {
  std::string bytes;
  ReadAhead ahead(&m_reader, ReadAhead::Use::compaction, BlockKind::filter);
  for (const BlockHandle& handle : m_descriptor.filter_blocks) {
    const Span& span = m_descriptor.spans[handle.span];
    std::shared_ptr<const Block> block;
    VTKV_RETURN_IF_ERROR(ahead.read(span, handle.unit, handle.units, span.units, &block));
    bytes.append(block->body());
  }
  auto filter = std::make_shared<QuotientFilter>();
  if (!QuotientFilter::parse(bytes, filter.get())) {
    return Status::corruption("the filter of run " + std::to_string(m_location.run_id) + " in " +
                              m_reader.file().path() + " is malformed");
  }
  m_filter = std::move(filter);
  return {};
}

bool Run::overlaps(std::string_view lower, std::string_view upper) const {
  const bool entries =
      m_entries > 0 && lower <= m_descriptor.greatest_key() && (upper.empty() || m_descriptor.smallest_key() < upper);
  return entries || m_tombstones->overlaps(lower, upper);
}

bool Run::may_hold(std::string_view key) const { return may_hold(key, hash64(key)); }

bool Run::may_hold(std::string_view key, uint64_t key_hash) const {
  return m_entries > 0 && m_descriptor.smallest_key() <= key && key <= m_descriptor.greatest_key() &&
         m_filter->may_contain(key_hash);
}

namespace {

// What `iterator`, which was moved to `key`, stands on.
Status found_at(const RunIterator& iterator, std::string_view key, SequenceNumber covering, Lookup* result,
                std::string* value) {
  VTKV_RETURN_IF_ERROR(iterator.status());
  if (!iterator.valid() || iterator.entry().key != key || iterator.entry().sequence < covering) {
    return {};
  }
  if (iterator.entry().type == EntryType::tombstone) {
    *result = Lookup::removed;
    return {};
  }
  value->assign(iterator.entry().value);
  *result = iterator.entry().type == EntryType::value_pointer ? Lookup::pointer : Lookup::found;
  return {};
}

}  // namespace

Status Run::get(std::string_view key, uint64_t key_hash, SequenceNumber at_most, Lookup* result,
                std::string* value) const {
  const SequenceNumber covering = m_tombstones->covering(key, at_most);
  *result = covering > 0 ? Lookup::removed : Lookup::absent;
  if (!may_hold(key, key_hash)) {
    return {};
  }
  RunIterator iterator(&m_reader, &m_descriptor);
  iterator.seek_key(key, at_most);
  return found_at(iterator, key, covering, result, value);
}

Status Run::get_ahead(std::string_view key, uint64_t key_hash, std::unique_ptr<RunIterator>* iterator, Lookup* result,
                      std::string* value) const {
  const SequenceNumber covering = m_tombstones->covering(key, UINT64_MAX);
  *result = covering > 0 ? Lookup::removed : Lookup::absent;
  if (!may_hold(key, key_hash)) {
    return {};
  }
  if (!*iterator) {
    *iterator = std::make_unique<RunIterator>(&m_reader, &m_descriptor);
  }
  (*iterator)->seek_key_ahead(key);
  return found_at(**iterator, key, covering, result, value);
}

bool Run::entries_reach_into(std::string_view begin, std::string_view end) const {
  return m_entries > 0 && begin <= m_descriptor.greatest_key() && m_descriptor.smallest_key() < end;
}

Status Run::holds_any(std::string_view begin, std::string_view end, bool* holds) const {
  *holds = false;
  if (!entries_reach_into(begin, end)) {
    return {};
  }
  RunIterator iterator(&m_reader, &m_descriptor);
  iterator.seek(begin, UINT64_MAX);
  VTKV_RETURN_IF_ERROR(iterator.status());
  *holds = iterator.valid() && iterator.entry().key < end;
  return {};
}

std::unique_ptr<EntryIterator> Run::new_iterator() const {
  return std::make_unique<RunIterator>(&m_reader, &m_descriptor);
}

// What the descriptor says of a slice, what the span's index says of its blocks, and what these hold.
Status Run::verify_slice(size_t ordinal) const {
  const SpanSlice& slice = m_descriptor.slices[ordinal];
  const Span& span = m_descriptor.spans[slice.span];
  std::shared_ptr<const Block> block;
  VTKV_RETURN_IF_ERROR(m_reader.read_uncached(span, span.index_unit, span.index_units, BlockKind::index, &block));
  BlockIterator index(std::move(block));
  ReadAhead ahead(&m_reader, ReadAhead::Use::compaction);
  BlockRange sum;
  bool any = ordinal > 0;
  std::string last_key(any ? m_descriptor.slices[ordinal - 1].blocks.last_key : "");
  // Of the slice before only its last key is known: it may come again, older.
  SequenceNumber last_sequence = UINT64_MAX;
  for (index.seek(slice.blocks.first_key, slice.blocks.first_sequence);
       index.valid() && sum.end_unit() < slice.blocks.end_unit(); index.next()) {
    BlockRange expected, found;
    if (!expected.decode_line(index.entry()) || expected.unit < slice.blocks.unit ||
        expected.end_unit() > slice.blocks.end_unit() || (sum.units > 0 && expected.unit != sum.end_unit())) {
      return Status::corruption("a span's index contradicts the descriptor");
    }
    VTKV_RETURN_IF_ERROR(ahead.read(span, expected.unit, expected.units, slice.blocks.end_unit(), &block));
    BlockIterator entries(block);
    for (entries.seek_to_first(); entries.valid(); entries.next()) {
      const Entry& entry = entries.entry();
      if (any && !entry_before(last_key, last_sequence, entry.key, entry.sequence)) {
        return Status::corruption("entries are out of order");
      }
      if (!may_hold(entry.key)) {
        return Status::corruption("its key range or filter denies a key that it holds");
      }
      found.add(entry, any && entry.key == last_key);
      last_key.assign(entry.key);
      last_sequence = entry.sequence;
      any = true;
    }
    VTKV_RETURN_IF_ERROR(entries.status());
    found.unit = expected.unit;
    found.units = expected.units;
    if (found != expected) {
      return Status::corruption("a block does not hold what its span's index says");
    }
    if (sum.units == 0) {
      sum = found;
    } else {
      sum.append(found);
    }
  }
  VTKV_RETURN_IF_ERROR(index.status());
  return sum == slice.blocks ? Status() : Status::corruption("a span does not hold what the descriptor says");
}

void Run::verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled) const {
  const auto report = [&](std::string_view what) {
    findings->push_back("run " + std::to_string(m_location.run_id) + " of " + m_reader.file().path() + ": " +
                        std::string(what));
  };
  std::shared_ptr<const Run> again;  // descriptor, range tombstones and filter as they lie on disk
  if (const Status status = open(m_reader, m_location, &again); !status.ok()) {
    report(status.message());
  }
  for (size_t ordinal = 0; ordinal < m_descriptor.slices.size() && !(cancelled && *cancelled); ++ordinal) {
    if (const Status status = verify_slice(ordinal); !status.ok()) {
      report(status.message());
    }
  }
  if (m_filter->active() && m_filter->entries() < m_entries) {
    report("its filter has " + std::to_string(m_filter->entries()) + " fingerprints for " + std::to_string(m_entries) +
           " entries");
  }
}

}  // namespace vtkv
