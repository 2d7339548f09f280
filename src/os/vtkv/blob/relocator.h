// SPDX-License-Identifier: LGPL-2.1-or-later
// Who relocates values of the log: the database's write path, and what stands before it for scans.
#pragma once

#include <span>

#include "vtkv/blob/relocation.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// What became of values that were to be relocated.
struct Relocated {
  SequenceNumber last = 0;  // what was put is at or below it
  uint64_t values = 0;      // that were put
  uint64_t bytes = 0;       // of their puts
};

class Relocator {
 public:
  virtual ~Relocator() = default;
  // Relocates values, one behind the other, which were the newest of their keys at `checked`. Those of keys that were
  // written since stay as they are. Code::busy: all stay. Never waits. Thread-safe.
  virtual Status relocate(std::span<const Relocation> values, SequenceNumber checked, Relocated* relocated) = 0;
};

}  // namespace vtkv
