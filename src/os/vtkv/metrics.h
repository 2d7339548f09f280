// SPDX-License-Identifier: LGPL-2.1-or-later
// The statistics of a database by name, for whoever prints them or passes them on.
#pragma once

#include <cstdint>
#include <vector>

#include "vtkv/db.h"

namespace vtkv {

struct Metric {
  const char* name;  // the field's, units last
  uint64_t value;
};

// Every field of DBStatistics, once.
std::vector<Metric> metrics_of(const DBStatistics& statistics);

}  // namespace vtkv
