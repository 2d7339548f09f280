// SPDX-License-Identifier: LGPL-2.1-or-later
// The file `quarantine` beside the containers: slots to which a write failed and that nobody gets again. Two copies of
// 4096 bytes, written in turn (copy = epoch mod 2), each with the whole list; the valid one with the greater epoch
// counts. A copy of zeros was never written.
// doc/on_disk_format.md, "Quarantine", "Quarantined slot".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/size_class.h"
#include "vtkv/status.h"

namespace swimstore {

struct QuarantineRecord {
  static constexpr size_t kBytes = 4096;
  static constexpr size_t kSlotsMax = 500;

  std::array<uint8_t, 16> uuid{};
  uint64_t epoch = 0;  // 0: never written
  std::vector<SlotAddress> slots;

  // REQUIRES: at most kSlotsMax slots.
  std::string encode() const;
  // `name` is the file's, for the message.
  static vtkv::Status decode(std::string_view name, std::string_view bytes, QuarantineRecord* record);
};

}  // namespace swimstore
