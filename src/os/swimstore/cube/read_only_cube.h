// SPDX-License-Identifier: LGPL-2.1-or-later
// A cube to be looked at: what a recovery would do to it is done in memory. Nothing on disk is changed; nothing may be
// submitted.
#pragma once

#include <memory>
#include <string>

#include "swimstore/cube/cube.h"

namespace swimstore {

vtkv::Status open_cube_read_only(vtkv::Env* env, const std::string& directory, const CubeOptions& options,
                                 std::unique_ptr<Cube>* cube);

}  // namespace swimstore
