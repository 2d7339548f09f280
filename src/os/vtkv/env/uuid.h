// SPDX-License-Identifier: LGPL-2.1-or-later
// The identity of a database: 16 random bytes, in everything it writes that could be taken for another's.
#pragma once

#include <array>
#include <cstdint>

#include "vtkv/env.h"

namespace vtkv {

using Uuid = std::array<uint8_t, 16>;

Uuid new_uuid(Env* env);

}  // namespace vtkv
