// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "swimstore/cube/cube.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::SequenceNumber;
using vtkv::Status;

namespace {

// Best fit wastes at most a quarter of a slot; what an exhausted class sent to a much larger one is not
// worth padding.
constexpr uint32_t kPadShare = 4;
constexpr size_t kZerosBytes = 64u << 10;

// One aligned buffer of zeros, named as often as needed.
std::vector<iovec> zeros(size_t bytes) {
  alignas(vtkv::kIoAlignment) static const char source[kZerosBytes] = {};
  std::vector<iovec> buffers;
  while (bytes > 0) {
    const size_t slice = std::min(bytes, kZerosBytes);
    buffers.push_back({const_cast<char*>(source), slice});
    bytes -= slice;
  }
  return buffers;
}

}  // namespace

void CubeTransaction::add_slot_write(ContainerSet& containers, const AllocatedSlot& slot, uint32_t offset,
                                     std::vector<iovec> buffers, uint32_t length, uint32_t crc32c) {
  vtkv::ExternalData write;
  const SlotAddress whole = slot.address.whole();
  const uint32_t in_whole = slot.address.first_block() * kBlockBytes + offset;
  VTKV_ASSERT(in_whole + length <= slot_bytes(whole.size_class));
  write.file = containers.file(slot.address.container());
  write.offset = slot.address.byte_offset() + offset;
  write.buffers = std::move(buffers);
  write.primed = slot.primed;
  data.push_back(std::move(write));
  batch.external_write({whole.size_class, whole.index, in_whole, length, crc32c});
  if (slot.primed || slot.address.split_levels > 0) {
    return;  // a fragment says nothing of its neighbours
  }
  auto fill = std::find_if(m_first_fills.begin(), m_first_fills.end(),
                           [&slot](const FirstFill& it) { return it.slot == slot.address; });
  if (fill == m_first_fills.end()) {
    fill = m_first_fills.insert(fill, FirstFill{slot.address});
  }
  fill->bytes += length;
  fill->end = std::max(fill->end, offset + length);
}

void CubeTransaction::pad_first_fills(ContainerSet& containers) {
  for (FirstFill& fill : m_first_fills) {
    const uint32_t slot = slot_bytes(fill.slot.size_class);
    const uint32_t rest = slot - fill.end;
    if (fill.bytes != fill.end || rest == 0 || rest > slot / kPadShare) {
      continue;
    }
    vtkv::ExternalData padding;
    padding.file = containers.file(fill.slot.size_class);
    padding.offset = fill.slot.byte_offset() + fill.end;
    padding.buffers = zeros(rest);
    data.push_back(std::move(padding));
    fill.bytes = slot;
  }
}

void CubeTransaction::sequenced(SequenceNumber sequence) { m_cube->apply(sequence, delta); }

std::string CubeTransaction::data_failed(vtkv::File* file, uint64_t offset, const std::vector<iovec>& buffers) {
  return m_cube->containers().note_failed_write(file, offset, buffers);
}

void CubeTransaction::durable(const Status& status) {
  if (status.ok() && !m_first_fills.empty()) {
    std::vector<SlotAddress> primed;
    for (const FirstFill& fill : m_first_fills) {
      if (fill.bytes == slot_bytes(fill.slot.size_class)) {
        primed.push_back(fill.slot);
      }
    }
    m_cube->containers().mark_primed(primed);
  }
  committed(status);
}

}  // namespace swimstore
