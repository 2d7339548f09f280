// SPDX-License-Identifier: LGPL-2.1-or-later
// A body of plain bytes that may be larger than one block: fragments in blocks of one kind, one behind the other, with
// nothing else in their span. All fragments but the last fill blocks of `units_most` units.
#pragma once

#include <string>
#include <string_view>

#include "vtkv/span/span_reader.h"
#include "vtkv/span/span_writer.h"

namespace vtkv {

// REQUIRES: the writer is new; the body begins its first span, and nothing else shall follow in it.
Status write_long_body(BlockKind kind, std::string_view body, SpanWriter* writer, uint32_t units_most = kBlockUnitsMax);
// The counterpart, of what lies from `unit` to the end of the span. The span lies in the file.
Status read_long_body(const SpanReader& reader, const Span& span, uint32_t unit, BlockKind kind, std::string* body,
                      uint32_t units_most = kBlockUnitsMax);

}  // namespace vtkv
