// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/cube/slot_check.h"

#include <algorithm>

#include "swimstore/format/size_class.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kSliceBytes = 256u << 10;

}  // namespace

Status check_slot(vtkv::File& file, const vtkv::ExternalWrite& write, bool* matches) {
  *matches = false;
  const uint64_t slot = slot_bytes(write.container);
  if (uint64_t{write.offset} + write.length > slot || write.slot >> 40 != 0) {
    return {};
  }
  const uint64_t begin = write.slot * slot + write.offset;
  const uint64_t end = begin + write.length;
  uint64_t file_bytes = 0;
  VTKV_RETURN_IF_ERROR(file.size(&file_bytes));
  const uint64_t aligned_end = (end + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  if (aligned_end > file_bytes) {
    return {};
  }
  vtkv::AlignedBuffer buffer(kSliceBytes);
  uint32_t crc = 0;
  for (uint64_t at = begin / kBlockBytes * kBlockBytes; at < aligned_end; at += kSliceBytes) {
    const uint64_t length = std::min(kSliceBytes, aligned_end - at);
    VTKV_RETURN_IF_ERROR(file.read(at, length, buffer.data()));
    const uint64_t from = std::max(begin, at);
    const uint64_t to = std::min(end, at + length);
    crc = vtkv::crc32c_extend(crc, buffer.data() + (from - at), to - from);
  }
  *matches = crc == write.crc32c;
  return {};
}

}  // namespace swimstore
