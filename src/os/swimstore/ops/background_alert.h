// SPDX-License-Identifier: LGPL-2.1-or-later
// What goes wrong in the background, as an operator hears of it: work of the metadata's engine that fails and is tried
// again, slots that cannot be written, cubes that are abandoned.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "osd/osd_types.h"

#include "swimstore/cube/cube_errors.h"
#include "swimstore/format/size_class.h"
#include "vtkv/background_error.h"

namespace swimstore {

// What has failed, what follows from it, and what to do; or that it is over.
std::string describe(const vtkv::BackgroundError& error, const std::string& mount_point);

// SWIMSTORE_BACKGROUND_ERROR while anything fails. The mount points are those of the containers, and of log and tree.
void add_background_alert(const std::string& path, const std::string& data_mount_point,
                          const std::string& metadata_mount_point, const CubeErrors& errors, osd_alert_list_t* alerts);

// SWIMSTORE_QUARANTINE while there are such slots: for ever.
void add_quarantine_alert(const std::string& path, const std::vector<SlotAddress>& slots, osd_alert_list_t* alerts);

// SWIMSTORE_CUBE_FAILED while the store goes on without some.
void add_abandoned_alert(const std::string& path, const std::map<unsigned, std::string>& abandoned,
                         osd_alert_list_t* alerts);

}  // namespace swimstore
