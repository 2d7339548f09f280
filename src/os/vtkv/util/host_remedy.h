// SPDX-License-Identifier: LGPL-2.1-or-later
// What an operator does about an error number that is the host's, and says nothing of the disk.
#pragma once

#include <string>

#include "vtkv/status.h"

namespace vtkv {

// The remedy, as the end of a sentence: a limit, an attribute, an owner, a mount, a quota, or space. `path`: the
// directory whose files are concerned. Empty: the number is EIO, which speaks of the disk, or tells nothing by itself.
std::string host_remedy(int error_number, const std::string& path);
// The status with that behind its message, where the host has refused something to this process. Of owners, attributes
// and mounts only where the message names a file below the path.
Status with_host_remedy(const Status& status, const std::string& path);

}  // namespace vtkv
