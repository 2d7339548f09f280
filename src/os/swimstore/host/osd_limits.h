// SPDX-License-Identifier: LGPL-2.1-or-later
// Limits of the store that an OSD does not know: by options of its own it admits more than the store can carry out, and
// such a transaction ends the OSD, with each replica, as often as the client tries again.
#pragma once

#include <string>

#include "common/config_proxy.h"
#include "common/hobject.h"
#include "osd/osd_types.h"

#include "vtkv/status.h"

namespace swimstore {

// Code::invalid_argument names the first option that admits too much, its value, the limit and the remedy.
vtkv::Status check_osd_limits(const ConfigProxy& conf);

// SWIMSTORE_OPTION_ABOVE_LIMIT, with all of them: an option may have been raised since the store was mounted.
void add_limits_alert(const std::string& path, const ConfigProxy& conf, osd_alert_list_t* alerts);

// Of an object's name, its locator key and its namespace together: an index of the tree has whole keys in memory. The
// OSD asks for it, when it starts and of each operation.
inline constexpr size_t kObjectNameBytesMax = 32u << 10;
// 0 or -ENAMETOOLONG.
int check_object_name(const hobject_t& object);

}  // namespace swimstore
