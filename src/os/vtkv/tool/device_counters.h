// SPDX-License-Identifier: LGPL-2.1-or-later
// What a block device has done, from its statistics in /sys.
#pragma once

#include <cstdint>
#include <string>

namespace vtkv {

// Totals since the device exists: take two and subtract.
struct DeviceCounters {
  uint64_t reads = 0;  // requests, after the kernel merged adjacent ones
  uint64_t read_bytes = 0;
  uint64_t writes = 0;
  uint64_t written_bytes = 0;
  uint64_t flushes = 0;
  bool known = false;  // false: the directory lies on no block device of its own

  DeviceCounters operator-(const DeviceCounters& earlier) const {
    return {reads - earlier.reads,     read_bytes - earlier.read_bytes,
            writes - earlier.writes,   written_bytes - earlier.written_bytes,
            flushes - earlier.flushes, known && earlier.known};
  }
};

// `path`: a block device, or a directory that lies on one.
DeviceCounters read_device_counters(const std::string& path);

}  // namespace vtkv
