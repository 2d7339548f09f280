#include "vtkv/tree/run_format.h"

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
  uint8_t holds_entries;
  if (!get_fixed64(in, &span->id) || !get_varint64(in, &first_unit) || !get_varint32(in, &span->units) ||
      !get_fixed8(in, &holds_entries) || holds_entries > 1) {
    return false;
  }
  span->holds_entries = holds_entries == 1;
  const uint64_t file_units = file_bytes / kUnitBytes;
  span->offset = first_unit * kUnitBytes;
  return first_unit <= file_units && span->units <= file_units - first_unit;
}

bool decode_index(std::string_view* in, const std::vector<Span>& spans, std::vector<IndexRoot>* index) {
  uint32_t count;
  if (!get_varint32(in, &count)) {
    return false;
  }
  for (; count > 0; --count) {
    IndexRoot root;
    if (!get_string(in, &root.key) || !get_varint64(in, &root.sequence) || !root.block.decode(in) ||
        !is_inside(root.block, spans)) {
      return false;
    }
    if (!index->empty()) {
      const IndexRoot& last = index->back();
      const int order = last.key.compare(root.key);
      if (order > 0 || (order == 0 && last.sequence <= root.sequence)) {
        return false;
      }
    }
    index->push_back(std::move(root));
  }
  return true;
}

}  // namespace

bool is_inside(const BlockHandle& handle, const std::vector<Span>& spans) {
  return handle.span < spans.size() && handle.units > 0 && handle.units <= kBlockBytesMax / kUnitBytes &&
         handle.unit < spans[handle.span].units && handle.units <= spans[handle.span].units - handle.unit;
}

uint64_t RunDescriptor::bytes() const {
  uint64_t total = 0;
  for (const Span& span : spans) {
    total += span.bytes();
  }
  return total;
}

void RunDescriptor::encode(std::string* out) const {
  put_varint64(out, run_id);
  put_varint64(out, entries);
  put_varint64(out, removals);
  put_varint64(out, smallest_sequence);
  put_varint64(out, greatest_sequence);
  put_length_prefixed(out, smallest_key);
  put_length_prefixed(out, greatest_key);
  put_varint32(out, static_cast<uint32_t>(spans.size()));
  for (const Span& span : spans) {
    put_fixed64(out, span.id);
    put_varint64(out, span.offset / kUnitBytes);
    put_varint32(out, span.units);
    put_fixed8(out, span.holds_entries ? 1 : 0);
  }
  put_varint32(out, static_cast<uint32_t>(index.size()));
  for (const IndexRoot& root : index) {
    put_length_prefixed(out, root.key);
    put_varint64(out, root.sequence);
    root.block.encode(out);
  }
  encode_handles(removal_blocks, out);
  encode_handles(filter_blocks, out);
}

Status RunDescriptor::decode(std::string_view body, uint64_t file_bytes, RunDescriptor* descriptor) {
  *descriptor = {};
  std::string_view in = body;
  uint32_t spans = 0;
  bool good = get_varint64(&in, &descriptor->run_id) && get_varint64(&in, &descriptor->entries) &&
              get_varint64(&in, &descriptor->removals) && get_varint64(&in, &descriptor->smallest_sequence) &&
              get_varint64(&in, &descriptor->greatest_sequence) && get_string(&in, &descriptor->smallest_key) &&
              get_string(&in, &descriptor->greatest_key) && get_varint32(&in, &spans);
  for (; good && spans > 0; --spans) {
    Span span;
    good = decode_span(&in, file_bytes, &span);
    descriptor->spans.push_back(span);
  }
  good = good && decode_index(&in, descriptor->spans, &descriptor->index) &&
         decode_handles(&in, descriptor->spans, &descriptor->removal_blocks) &&
         decode_handles(&in, descriptor->spans, &descriptor->filter_blocks) && in.empty() &&
         (descriptor->entries > 0) == !descriptor->index.empty();
  return good ? Status() : Status::corruption("a run's descriptor is malformed");
}

}  // namespace vtkv
