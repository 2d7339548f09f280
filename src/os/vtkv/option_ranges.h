// SPDX-License-Identifier: LGPL-2.1-or-later
// Which values options may have: what is refused here would abort, fill the disk or never end later.
#pragma once

#include "vtkv/options.h"
#include "vtkv/status.h"

namespace vtkv {

// All three: Code::invalid_argument names the option, its value and the range. Those of an open; what is fixed at
// creation; those of a pass that defragments.
Status check_options(const Options& options);
Status check_log_geometry(const Geometry& geometry);
Status check_options(const DefragmentOptions& options);

}  // namespace vtkv
