// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/scan_relocator.h"

#include "vtkv/commit/write_buffer.h"

namespace vtkv {

// Writers and the collector come first.
Status ScanRelocator::relocate(std::span<const Relocation> values, SequenceNumber checked, Relocated* relocated) {
  uint64_t bytes = 0;
  for (const Relocation& value : values) {
    bytes += value.key.size() + value.value.size();
  }
  // What waits may fill a segment's end in vain.
  const uint64_t waiting = m_pipeline->write_buffer_bytes() + bytes;
  if (waiting > unwritten_bytes_most(m_options.memtable_bytes) / 2 || m_gc->pressure() > 1 ||
      2 * waiting > m_pool->room_bytes()) {
    return Status::busy("there are more urgent things to write");
  }
  VTKV_RETURN_IF_ERROR(m_writes->relocate(values, checked, relocated));
  m_moved_bytes.fetch_add(relocated->bytes, std::memory_order_relaxed);
  return Status();
}

}  // namespace vtkv
