// SPDX-License-Identifier: LGPL-2.1-or-later
// An ordered view of [lower, upper) at one sequence number.
//
// Not thread-safe; any number may exist at once. Keys and values stay valid until the next move.
// Pins the runs it reads, and the log segments of their values: keep it short-lived. Let it end before the database.
// A seek looks into each run that overlaps the bounds: a block of each, from the cache or by a read. A move costs a
// read at the end of a block, and one for a value in the log; a longer scan fetches the values of many entries at once.
#pragma once

#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

class Iterator {
 public:
  virtual ~Iterator() = default;
  virtual bool valid() const = 0;
  virtual void seek_to_first() = 0;
  virtual void seek_to_last() = 0;
  virtual void seek(std::string_view target) = 0;  // first key >= target
  virtual void seek_for_previous(std::string_view target) = 0;  // last key <= target
  virtual void next() = 0;  // REQUIRES: valid()
  virtual void previous() = 0;  // REQUIRES: valid()
  virtual std::string_view key() const = 0;  // REQUIRES: valid()
  virtual std::string_view value() const = 0;  // REQUIRES: valid()
  // Not ok when the iteration stopped because of an error; then valid() is false.
  virtual Status status() const = 0;
};

}  // namespace vtkv
