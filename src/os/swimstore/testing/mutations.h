// SPDX-License-Identifier: LGPL-2.1-or-later
// The safety rules that a test can break, by name: those of the engine, and those of the containers.
#pragma once

#include <string>
#include <vector>

#include "swimstore/cube/cube.h"

namespace swimstore {

std::vector<std::string> mutation_names();
// False: there is none of that name.
bool apply_mutation(const std::string& name, CubeOptions* options);

}  // namespace swimstore
