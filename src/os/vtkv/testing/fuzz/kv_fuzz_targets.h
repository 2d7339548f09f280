// SPDX-License-Identifier: LGPL-2.1-or-later
// The engine's decoders, as fuzz targets.
#pragma once

#include <span>

#include "vtkv/testing/fuzz/fuzz_target.h"

namespace vtkv {

std::span<const FuzzTarget> kv_fuzz_targets();

}  // namespace vtkv
