// SPDX-License-Identifier: LGPL-2.1-or-later
// A value of the log that may be relocated, so that its old address can be given up or for the sake of a better one.
#pragma once

#include <string_view>

#include "vtkv/mem/value_pointer.h"

namespace vtkv {

struct Relocation {
  std::string_view key, value;  // the value is empty where it was not read yet
  ValuePointer pointer;         // its address, as far as whoever relocates it has to know it
};

}  // namespace vtkv
