// What the block device below a directory has done, from its statistics in /sys.
#pragma once

#include <cstdint>
#include <string>

namespace swimstore {

struct DeviceCounters {
  uint64_t written_bytes = 0;
  uint64_t flushes = 0;
  bool known = false;  // false: the directory lies on no block device of its own
};

DeviceCounters read_device_counters(const std::string& directory);

}  // namespace swimstore
