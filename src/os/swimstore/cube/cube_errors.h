// SPDX-License-Identifier: LGPL-2.1-or-later
// What cannot be done in the background of a store's cubes, and is tried again, by the file system it is done on.
#pragma once

#include <vector>

#include "vtkv/background_error.h"

namespace swimstore {

struct CubeErrors {
  std::vector<vtkv::BackgroundError> of_databases;   // log and tree
  std::vector<vtkv::BackgroundError> of_containers;  // data, and the reserves of space
};

}  // namespace swimstore
