// The table of swimstore_* options: name, type, default and what it is for.
//
// Bounds are not enforced here but in ops/settings.h, when a store is made or mounted: Ceph only warns of a
// value in ceph.conf that an option's bounds refuse, and then goes on with the default.
#pragma once

#include <vector>

#include "common/options.h"

namespace swimstore {

// Called during static initialisation, before any other object of the program may be relied on.
std::vector<Option> option_table();

}  // namespace swimstore
