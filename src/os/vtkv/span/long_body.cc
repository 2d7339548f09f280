#include "vtkv/span/long_body.h"

#include <algorithm>

namespace vtkv {

Status write_long_body(BlockKind kind, std::string_view body, SpanWriter* writer, uint32_t units_most) {
  const size_t piece_bytes_most = uint64_t{units_most} * kUnitBytes - sizeof(block_header_t);
  do {
    const std::string_view piece = body.substr(0, piece_bytes_most);
    body.remove_prefix(piece.size());
    BlockBuilder builder(kind);
    builder.set_body(std::string(piece));
    BlockHandle handle;
    const size_t pieces_behind = (body.size() + piece_bytes_most - 1) / piece_bytes_most;
    VTKV_RETURN_IF_ERROR(writer->append(&builder, &handle, pieces_behind * units_most * kUnitBytes));
  } while (!body.empty());
  return writer->finish();
}

Status read_long_body(const SpanReader& reader, const Span& span, uint32_t unit, BlockKind kind, std::string* body,
                      uint32_t units_most) {
  body->clear();
  while (unit < span.units) {
    const uint32_t units = std::min(units_most, span.units - unit);
    std::shared_ptr<const Block> block;
    VTKV_RETURN_IF_ERROR(reader.read_uncached(span, unit, units, kind, &block));
    body->append(block->body());
    unit += units;
  }
  return {};
}

}  // namespace vtkv
