// SPDX-License-Identifier: LGPL-2.1-or-later
// What an OSD keeps of a placement group in the group's own object, as far as tests of lost cubes need it.
#pragma once

#include <optional>

#include "os/ObjectStore.h"
#include "osd/osd_types.h"

namespace swimstore {

// The group started, and has taken a write, in this epoch; of the one before all copies know.
pg_info_t info_started_in(const coll_t& cid, epoch_t epoch);
// Sets what a new group sets, of a group whose own object may not exist yet.
void put_info(const coll_t& cid, epoch_t epoch, ObjectStore::Transaction* transaction, eversion_t last_update = {});
// Nothing when it cannot be read, or is not all that an OSD wants to find.
std::optional<pg_info_t> read_info(ObjectStore& store, const coll_t& cid);

}  // namespace swimstore
