// SPDX-License-Identifier: LGPL-2.1-or-later
// What tests of stores that are given another layout share: a small store with some of everything.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <string>

#include "swimstore/swimstore.h"
#include "swimstore/testing/model_store.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

// The epoch that its placement groups started in.
inline constexpr unsigned kGrowingStoreEpoch = 7;

// Of a mounted store that is empty: groups with objects, clones and omap, and the OSD's own collection, whose objects
// have data, an omap that the groups' transactions wrote (PartWorkload), and one of more than a transaction takes.
void fill_growing_store(SwimStore& store, uint64_t seed);

// "", or what is wrong: it is checked without an error, mounts, holds what it held, and is checked again. REQUIRES: not
// mounted.
std::string check_mount(SwimStore& store, const ModelState& expected);

// Of the store as a failed command left it, and as two losses of power at the end of the trace leave it: what `check`
// says first of one, or "".
std::string check_after_failure(vtkv::SimEnv* env, uint64_t seed,
                                const std::function<std::string(SwimStore& store, vtkv::SimEnv* env)>& check);

// The one of those with an omap of more than a transaction takes.
ghobject_t growing_store_object();

}  // namespace swimstore
