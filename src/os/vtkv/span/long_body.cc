// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/long_body.h"

#include <algorithm>

namespace vtkv {

Status write_long_body(BlockKind kind, std::string_view body, SpanWriter* writer, uint32_t units_most) {
  const size_t fragment_bytes_most = uint64_t{units_most} * kUnitBytes - sizeof(block_header_t);
  do {
    const std::string_view fragment = body.substr(0, fragment_bytes_most);
    body.remove_prefix(fragment.size());
    BlockBuilder builder(kind);
    builder.set_body(std::string(fragment));
    BlockHandle handle;
    const size_t fragments_behind = (body.size() + fragment_bytes_most - 1) / fragment_bytes_most;
    VTKV_RETURN_IF_ERROR(writer->append(&builder, &handle, fragments_behind * units_most * kUnitBytes));
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
