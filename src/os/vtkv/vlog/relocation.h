// A value of the log that may be put again, so that its old place can be given up or for the sake of a better one.
#pragma once

#include <string_view>

#include "vtkv/mem/value_pointer.h"

namespace vtkv {

struct Relocation {
  std::string_view key, value;  // the value is empty where it was not read yet
  ValuePointer pointer;         // its place, as far as whoever puts it again has to know it
};

}  // namespace vtkv
