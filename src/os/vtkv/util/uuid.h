// The identity of a database: 16 random bytes, in everything it writes that could be taken for another's.
#pragma once

#include <array>
#include <cstdint>

namespace vtkv {

using Uuid = std::array<uint8_t, 16>;

}  // namespace vtkv
