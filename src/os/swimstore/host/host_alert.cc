// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/host_alert.h"

#include <fmt/format.h>

namespace swimstore {

void add_unsafe_host_alert(const std::vector<std::string>& dangers, osd_alert_list_t* alerts) {
  if (!dangers.empty()) {
    alerts->emplace("SWIMSTORE_UNSAFE_HOST", fmt::format("{}", fmt::join(dangers, ". ")));
  }
}

void add_blocking_io_alert(const std::string& path, const std::string& refusal, osd_alert_list_t* alerts) {
  if (!refusal.empty()) {
    alerts->emplace("SWIMSTORE_BLOCKING_IO", fmt::format("store at {}: {}", path, refusal));
  }
}

}  // namespace swimstore
