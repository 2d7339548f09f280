// SPDX-License-Identifier: LGPL-2.1-or-later
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

// Ceph ignores a name that is in no table. So the old one of an option stays in it, and no store is made or mounted
// while somebody sets it.
struct RenamedOption {
  const char* was;
  const char* is;
};
inline constexpr RenamedOption kRenamedOptions[] = {
    {"swimstore_stretch_size", "swimstore_chunk_size"},  // tidy: allow the old name
    {"swimstore_space_brake_time", "swimstore_space_throttle_time"},  // tidy: allow the old name
};

}  // namespace swimstore
