// What a path's file system and the device below it are, as far as the host tells.
#pragma once

#include <string>

#include "vtkv/env/env.h"

namespace vtkv {

// The path must exist. Fails only when the file system cannot be asked; a device that cannot be found
// out stays empty.
Status read_file_system_info(const std::string& path, FileSystemInfo* info);

}  // namespace vtkv
