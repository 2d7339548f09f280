// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/run_format.h"

#include "vtkv/span/fill.h"
#include "vtkv/util/coding.h"

namespace vtkv {

namespace {

void encode_handles(const std::vector<BlockHandle>& handles, std::string* out) {
  put_varint32(out, static_cast<uint32_t>(handles.size()));
  for (const BlockHandle& handle : handles) {
    handle.encode(out);
  }
}

bool get_string(std::string_view* in, std::string* value) {
  std::string_view view;
  if (!get_length_prefixed(in, &view)) {
    return false;
  }
  value->assign(view);
  return true;
}

// Counts come from a disk: nothing is reserved for them.
bool decode_handles(std::string_view* in, const std::vector<Span>& spans, std::vector<BlockHandle>* handles) {
  uint32_t count;
  if (!get_varint32(in, &count)) {
    return false;
  }
  for (; count > 0; --count) {
    BlockHandle handle;
    if (!handle.decode(in) || !is_inside(handle, spans)) {
      return false;
    }
    handles->push_back(handle);
  }
  return true;
}

bool decode_span(std::string_view* in, uint64_t file_bytes, Span* span) {
  uint64_t first_unit;
  if (!get_fixed64(in, &span->id) || !get_varint64(in, &first_unit) || !get_varint32(in, &span->units) ||
      !get_varint32(in, &span->index_units) || (span->index_units > 0 && !get_varint32(in, &span->index_unit))) {
    return false;
  }
  const uint64_t file_units = file_bytes / kUnitBytes;
  span->offset = first_unit * kUnitBytes;
  return span->units > 0 && first_unit <= file_units && span->units <= file_units - first_unit &&
         span->index_units <= kBlockUnitsMax && span->index_unit <= span->units &&
         span->index_units <= span->units - span->index_unit;
}

bool decode_slices(std::string_view* in, const std::vector<Span>& spans, std::vector<SpanSlice>* slices) {
  uint32_t count;
  if (!get_varint32(in, &count)) {
    return false;
  }
  for (; count > 0; --count) {
    SpanSlice slice;
    if (!get_varint32(in, &slice.span) || !get_string(in, &slice.blocks.first_key) ||
        !get_varint64(in, &slice.blocks.first_sequence) || !slice.blocks.decode(in)) {
      return false;
    }
    if (slice.span >= spans.size() || !spans[slice.span].holds_entries() ||
        slice.blocks.end_unit() > spans[slice.span].index_unit) {
      return false;
    }
    if (!slices->empty() && slices->back().blocks.last_key > slice.blocks.first_key) {
      return false;
    }
    slices->push_back(std::move(slice));
  }
  return true;
}

}  // namespace

void TombstoneRange::encode(std::string* out) const {
  put_length_prefixed(out, end);
  put_varint32(out, static_cast<uint32_t>(sequences.size()));
  for (const SequenceNumber sequence : sequences) {
    put_varint64(out, sequence);
  }
}

bool TombstoneRange::decode(std::string_view in) {
  uint32_t count = 0;
  bool good = get_length_prefixed(&in, &end) && get_varint32(&in, &count);
  for (; good && count > 0; --count) {
    SequenceNumber sequence = 0;
    good = get_varint64(&in, &sequence) && sequence > 0;
    sequences.push_back(sequence);
  }
  return good && in.empty();
}

bool is_inside(const BlockHandle& handle, const std::vector<Span>& spans) {
  return handle.span < spans.size() && handle.units > 0 && handle.units <= kBlockUnitsMax &&
         handle.unit < spans[handle.span].units && handle.units <= spans[handle.span].units - handle.unit;
}

void append_slice(uint32_t span, BlockRange blocks, std::vector<SpanSlice>* slices) {
  if (!slices->empty() && slices->back().span == span && slices->back().blocks.end_unit() == blocks.unit) {
    slices->back().blocks.append(blocks);
  } else {
    slices->push_back({span, std::move(blocks)});
  }
}

uint64_t RunDescriptor::entries() const {
  uint64_t total = 0;
  for (const SpanSlice& slice : slices) {
    total += slice.blocks.entries;
  }
  return total;
}

uint64_t RunDescriptor::doubtful() const {
  uint64_t total = 0;
  for (const SpanSlice& slice : slices) {
    total += slice.blocks.doubtful;
  }
  return total;
}

uint64_t RunDescriptor::entry_bytes() const {
  uint64_t units = 0;
  for (const SpanSlice& slice : slices) {
    units += slice.blocks.units;
  }
  return units * kUnitBytes;
}

uint64_t RunDescriptor::bytes() const {
  uint64_t units = 0;
  for (const Span& span : spans) {
    units += span.holds_entries() ? span.index_units : span.units;
  }
  return entry_bytes() + units * kUnitBytes;
}

size_t RunDescriptor::memory_bytes() const {
  size_t total = spans.capacity() * sizeof(Span) + slices.capacity() * sizeof(SpanSlice);
  for (const SpanSlice& slice : slices) {
    const auto outside = [](const std::string& text) { return text.capacity() > 15 ? text.capacity() + 1 : 0; };
    total += outside(slice.blocks.first_key) + outside(slice.blocks.last_key);
  }
  return total;
}

void RunDescriptor::shrink_to_fit() {
  static_assert(sizeof(Span) + sizeof(SpanSlice) <= kSliceMemoryBytes);
  spans.shrink_to_fit();
  slices.shrink_to_fit();
  for (SpanSlice& slice : slices) {
    slice.blocks.first_key.shrink_to_fit();
    slice.blocks.last_key.shrink_to_fit();
  }
}

void RunDescriptor::encode(std::string* out) const {
  put_varint64(out, run_id);
  put_varint64(out, smallest_sequence);
  put_varint64(out, greatest_sequence);
  put_varint32(out, static_cast<uint32_t>(spans.size()));
  for (const Span& span : spans) {
    put_fixed64(out, span.id);
    put_varint64(out, span.offset / kUnitBytes);
    put_varint32(out, span.units);
    put_varint32(out, span.index_units);
    if (span.index_units > 0) {
      put_varint32(out, span.index_unit);
    }
  }
  put_varint32(out, static_cast<uint32_t>(slices.size()));
  for (const SpanSlice& slice : slices) {
    put_varint32(out, slice.span);
    put_length_prefixed(out, slice.blocks.first_key);
    put_varint64(out, slice.blocks.first_sequence);
    slice.blocks.encode(out);
  }
  encode_handles(tombstone_blocks, out);
  encode_handles(filter_blocks, out);
}

Status RunDescriptor::decode(std::string_view body, uint64_t file_bytes, RunDescriptor* descriptor) {
  *descriptor = {};
  std::string_view in = body;
  uint32_t spans = 0;
  bool good = get_varint64(&in, &descriptor->run_id) && get_varint64(&in, &descriptor->smallest_sequence) &&
              get_varint64(&in, &descriptor->greatest_sequence) && get_varint32(&in, &spans);
  for (; good && spans > 0; --spans) {
    Span span;
    good = decode_span(&in, file_bytes, &span);
    descriptor->spans.push_back(span);
  }
  good = good && decode_slices(&in, descriptor->spans, &descriptor->slices) &&
         decode_handles(&in, descriptor->spans, &descriptor->tombstone_blocks) &&
         decode_handles(&in, descriptor->spans, &descriptor->filter_blocks) && in.empty();
  descriptor->shrink_to_fit();
  return good ? Status() : Status::corruption("a run's descriptor is malformed");
}

}  // namespace vtkv
