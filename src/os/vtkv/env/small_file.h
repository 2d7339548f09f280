// SPDX-License-Identifier: LGPL-2.1-or-later
// Whole files of at most a few MiB that are read and replaced at once: identities, superblocks, pointers
// to the current manifest. Buffered I/O; no alignment asked of the caller.
#pragma once

#include <string>
#include <string_view>

#include "vtkv/env.h"

namespace vtkv {

// Code::not_found when the file does not exist; the contents are replaced only on success.
Status read_small_file(Env* env, const std::string& path, std::string* contents);

// Replaces the file: after a crash it holds the old contents or the new ones, and the new ones once this
// has returned ok. Uses `path`.new on the way, which a crash may leave behind.
Status replace_small_file(Env* env, const std::string& path, std::string_view contents);

}  // namespace vtkv
