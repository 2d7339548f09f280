// SPDX-License-Identifier: LGPL-2.1-or-later
// Does a slot hold the bytes that a log record says were written to it?
#pragma once

#include "vtkv/env.h"
#include "vtkv/write_batch.h"

namespace swimstore {

// `file` holds the class write.container, which is valid. A write that fits no slot, or lies past the file's
// end, does not match. Errors: of reading.
vtkv::Status check_slot(vtkv::File& file, const vtkv::ExternalWrite& write, bool* matches);

}  // namespace swimstore
