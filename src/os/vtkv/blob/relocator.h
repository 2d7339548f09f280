// SPDX-License-Identifier: LGPL-2.1-or-later
// Who relocates values of the log: the database's write path, and what stands before it for scans.
#pragma once

#include <span>

#include "vtkv/blob/relocation.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class Relocator {
 public:
  virtual ~Relocator() = default;
  // Relocates values, one behind the other, which were the newest of their keys at `checked`. Those of keys that were
  // written since stay as they are. *last: what was put is at or below it. Code::busy: all stay. Never waits.
  // Thread-safe.
  virtual Status relocate(std::span<const Relocation> values, SequenceNumber checked, SequenceNumber* last) = 0;
};

}  // namespace vtkv
