// SPDX-License-Identifier: LGPL-2.1-or-later
// The name of a collection, as coll_t::to_str() writes it: "meta", "1.2_head", "1.2s0_head", "1.2_TEMP".
#pragma once

#include <string_view>

#include "osd/osd_types.h"

namespace swimstore {

// False for every other name. Not coll_t::parse(), which aborts for names that mean a collection and are not the ones
// that it writes ("1.1b", "1.02_head").
bool decode_collection_name(std::string_view name, coll_t* cid);

}  // namespace swimstore
