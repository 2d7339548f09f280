// SPDX-License-Identifier: LGPL-2.1-or-later
// The store's decoders, as fuzz targets.
#pragma once

#include "vtkv/testing/fuzz/fuzz_target.h"

namespace swimstore {

std::span<const vtkv::FuzzTarget> store_fuzz_targets();

}  // namespace swimstore
