#include "vtkv/tree/run_format.h"

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
  return first_unit <= file_units && span->units <= file_units - first_unit &&
         span->index_units <= kBlockBytesMax / kUnitBytes && span->index_unit <= span->units &&
         span->index_units <= span->units - span->index_unit;
}

bool decode_parts(std::string_view* in, const std::vector<Span>& spans, std::vector<SpanPart>* parts) {
  uint32_t count;
  if (!get_varint32(in, &count)) {
    return false;
  }
  for (; count > 0; --count) {
    SpanPart part;
    if (!get_varint32(in, &part.span) || !get_string(in, &part.blocks.first_key) ||
        !get_varint64(in, &part.blocks.first_sequence) || !part.blocks.decode(in)) {
      return false;
    }
    if (part.span >= spans.size() || !spans[part.span].holds_entries() ||
        part.blocks.end_unit() > spans[part.span].index_unit) {
      return false;
    }
    if (!parts->empty() && parts->back().blocks.last_key > part.blocks.first_key) {
      return false;
    }
    parts->push_back(std::move(part));
  }
  return true;
}

}  // namespace

bool is_inside(const BlockHandle& handle, const std::vector<Span>& spans) {
  return handle.span < spans.size() && handle.units > 0 && handle.units <= kBlockBytesMax / kUnitBytes &&
         handle.unit < spans[handle.span].units && handle.units <= spans[handle.span].units - handle.unit;
}

void append_part(uint32_t span, BlockRange blocks, std::vector<SpanPart>* parts) {
  if (!parts->empty() && parts->back().span == span && parts->back().blocks.end_unit() == blocks.unit) {
    parts->back().blocks.append(blocks);
  } else {
    parts->push_back({span, std::move(blocks)});
  }
}

uint64_t RunDescriptor::entries() const {
  uint64_t total = 0;
  for (const SpanPart& part : parts) {
    total += part.blocks.entries;
  }
  return total;
}

uint64_t RunDescriptor::doubtful() const {
  uint64_t total = 0;
  for (const SpanPart& part : parts) {
    total += part.blocks.doubtful;
  }
  return total;
}

uint64_t RunDescriptor::entry_bytes() const {
  uint64_t units = 0;
  for (const SpanPart& part : parts) {
    units += part.blocks.units;
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
  size_t total = spans.capacity() * sizeof(Span) + parts.capacity() * sizeof(SpanPart);
  for (const SpanPart& part : parts) {
    const auto outside = [](const std::string& text) { return text.capacity() > 15 ? text.capacity() + 1 : 0; };
    total += outside(part.blocks.first_key) + outside(part.blocks.last_key);
  }
  return total;
}

void RunDescriptor::shrink_to_fit() {
  static_assert(sizeof(Span) + sizeof(SpanPart) <= kPartBytes);
  spans.shrink_to_fit();
  parts.shrink_to_fit();
  for (SpanPart& part : parts) {
    part.blocks.first_key.shrink_to_fit();
    part.blocks.last_key.shrink_to_fit();
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
  put_varint32(out, static_cast<uint32_t>(parts.size()));
  for (const SpanPart& part : parts) {
    put_varint32(out, part.span);
    put_length_prefixed(out, part.blocks.first_key);
    put_varint64(out, part.blocks.first_sequence);
    part.blocks.encode(out);
  }
  encode_handles(removal_blocks, out);
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
  good = good && decode_parts(&in, descriptor->spans, &descriptor->parts) &&
         decode_handles(&in, descriptor->spans, &descriptor->removal_blocks) &&
         decode_handles(&in, descriptor->spans, &descriptor->filter_blocks) && in.empty();
  descriptor->shrink_to_fit();
  return good ? Status() : Status::corruption("a run's descriptor is malformed");
}

}  // namespace vtkv
