// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/device_counters.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <vector>

#include <fmt/format.h>

namespace vtkv {

namespace {

// Documentation/block/stat.rst of Linux; counted from 0.
constexpr size_t kReads = 0;
constexpr size_t kReadSectors = 2;
constexpr size_t kWrites = 4;
constexpr size_t kWrittenSectors = 6;
constexpr size_t kFlushes = 15;
constexpr uint64_t kSectorBytes = 512;

}  // namespace

DeviceCounters read_device_counters(const std::string& path) {
  DeviceCounters counters;
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) {
    return counters;
  }
  const dev_t device = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
  std::ifstream in(fmt::format("/sys/dev/block/{}:{}/stat", major(device), minor(device)));
  std::vector<uint64_t> fields;
  for (uint64_t field; in >> field;) {
    fields.push_back(field);
  }
  if (fields.size() > kFlushes) {
    counters.reads = fields[kReads];
    counters.read_bytes = fields[kReadSectors] * kSectorBytes;
    counters.writes = fields[kWrites];
    counters.written_bytes = fields[kWrittenSectors] * kSectorBytes;
    counters.flushes = fields[kFlushes];
    counters.known = true;
  }
  return counters;
}

}  // namespace vtkv
