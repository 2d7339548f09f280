// SPDX-License-Identifier: LGPL-2.1-or-later
// Alerts of what the host does to a store, as long as it does.
#pragma once

#include <string>
#include <vector>

#include "osd/osd_types.h"

namespace swimstore {

// SWIMSTORE_UNSAFE_HOST. `dangers`: sentences, with the remedies.
void add_unsafe_host_alert(const std::vector<std::string>& dangers, osd_alert_list_t* alerts);
// SWIMSTORE_BLOCKING_IO. `refusal`: vtkv::ring_refusal().
void add_blocking_io_alert(const std::string& path, const std::string& refusal, osd_alert_list_t* alerts);

}  // namespace swimstore
