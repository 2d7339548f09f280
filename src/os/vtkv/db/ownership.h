// SPDX-License-Identifier: LGPL-2.1-or-later
// Whether a database is its directory's only content.
//
// A database that is part of something larger (a cube of SwimStore) has its owner's files beside its own,
// and its checkpoints hold its owner's state: whoever opens it without the owner to write may only read it.
#pragma once

#include <string>
#include <string_view>

#include "vtkv/env.h"
#include "vtkv/status.h"

namespace vtkv {

// A file that is there while a database is made: what lies in its directory may be removed.
inline constexpr std::string_view kUnfinishedName = "create_unfinished";

// Is it a file or directory that the engine makes?
bool is_database_file(const std::string& name);
// The first that somebody else made, or "". Empty directories do not count.
Status find_foreign_file(Env* env, const std::string& directory, std::string* name);
// Code::invalid_argument names what else is there.
Status check_sole_owner(Env* env, const std::string& directory);

}  // namespace vtkv
