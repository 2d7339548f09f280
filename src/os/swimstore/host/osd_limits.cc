// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/osd_limits.h"

#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "common/options.h"
#include "swimstore/format/onode_record.h"

namespace swimstore {

namespace {

struct Limit {
  const char* option;
  uint64_t most;
  const char* what;
};

constexpr Limit kLimits[] = {
    {"osd_max_object_size", kObjectBytesMax - 1, "an object may have so many bytes"},
    // In MiB: a client may send all of it as one value. The engine takes 1 GiB with the key and what frames them.
    {"osd_max_write_size", 1023, "an omap value, or the attributes of an object together, may have 1 GiB"},
};

std::vector<std::string> find_exceeded(const ConfigProxy& conf) {
  std::vector<std::string> exceeded;
  for (const Limit& limit : kLimits) {
    const uint64_t value = conf.get_val<Option::size_t>(limit.option);
    if (value > limit.most) {
      exceeded.push_back(fmt::format(
          "option {0} is {1}, and the store takes at most {2} ({3}): what a client sends beyond that would end the "
          "OSD and its replicas. Set it to {2} or less, in ceph.conf or with 'ceph config set osd {0} {2}'; 'ceph "
          "config show osd.ID' tells where it comes from",
          limit.option, value, limit.most, limit.what));
    }
  }
  return exceeded;
}

}  // namespace

vtkv::Status check_osd_limits(const ConfigProxy& conf) {
  const std::vector<std::string> exceeded = find_exceeded(conf);
  return exceeded.empty() ? vtkv::Status() : vtkv::Status::invalid_argument(exceeded.front());
}

void add_limits_alert(const std::string& path, const ConfigProxy& conf, osd_alert_list_t* alerts) {
  const std::vector<std::string> exceeded = find_exceeded(conf);
  if (!exceeded.empty()) {
    alerts->emplace("SWIMSTORE_OPTION_ABOVE_LIMIT", fmt::format("store at {}: {}", path, fmt::join(exceeded, "; ")));
  }
}

int check_object_name(const hobject_t& object) {
  const size_t bytes = object.oid.name.size() + object.get_key().size() + object.nspace.size();
  return bytes <= kObjectNameBytesMax ? 0 : -ENAMETOOLONG;
}

}  // namespace swimstore
