// SPDX-License-Identifier: LGPL-2.1-or-later
// The block devices below a directory: what a monitor asks of an OSD's host.
//
// Reads /proc and /sys directly: the one place above the env that does, since nothing here is data.
#pragma once

#include <set>
#include <string>

namespace swimstore {

struct HostDevices {
  // Physical devices ("sda", "nvme0n1"), found through partitions, dm, md and loop devices. Empty when the
  // file system has no device of its own (tmpfs, a network).
  std::set<std::string> names;
  std::set<int> numa_nodes;
  std::set<std::string> without_numa_node;
};

// Never fails: what cannot be found out is left out.
HostDevices find_host_devices(const std::string& directory);

}  // namespace swimstore
