// SPDX-License-Identifier: LGPL-2.1-or-later
// Options of the store's in ceph.conf that do not exist. Ceph passes over them without a word, and the default stands.
//
// What monitors store ('ceph config set --force') is not seen here: of a name that it does not know the library keeps
// nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/config_proxy.h"
#include "osd/osd_types.h"

namespace swimstore {

// A sentence of each, in the sections of the file that this daemon reads. The file is read anew.
std::vector<std::string> find_unknown_options(const ConfigProxy& conf);

// The option whose name differs least; empty: none is near.
std::string nearest_option(std::string_view name);

// SWIMSTORE_UNKNOWN_OPTION.
void add_unknown_options_alert(const std::string& path, const std::vector<std::string>& unknown,
                               osd_alert_list_t* alerts);

}  // namespace swimstore
