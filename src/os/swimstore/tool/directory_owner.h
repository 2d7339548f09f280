// SPDX-License-Identifier: LGPL-2.1-or-later
// Whose a directory is that root makes for a store.
#pragma once

#include <string>

namespace swimstore {

// Root's command makes `directory`, or finds it empty, for log and tree of `store`: it becomes of the user and the
// group whom the store's directory is of, and so does what is made in it later, as the OSD needs it. Otherwise nothing
// is done, and where something is in the way, who uses the directory says so.
void give_to_owner_of_store(const std::string& directory, const std::string& store);

}  // namespace swimstore
