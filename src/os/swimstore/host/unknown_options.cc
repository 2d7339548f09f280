// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/unknown_options.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "common/ConfUtils.h"
#include "swimstore/ops/options.h"

namespace swimstore {

namespace {

constexpr std::string_view kPrefix = "swimstore_";

// Letters that have to be put in, taken out or exchanged to make one name of the other.
size_t distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t exchanged = diagonal + (from[i] != to[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, exchanged});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_option(std::string_view name) {
  std::string nearest;
  size_t least = std::max<size_t>(3, (name.size() - std::min(name.size(), kPrefix.size())) / 3);
  for (const Option& option : option_table()) {
    const bool is_renamed = std::any_of(std::begin(kRenamedOptions), std::end(kRenamedOptions),
                                        [&option](const RenamedOption& one) { return option.name == one.was; });
    if (const size_t differs = distance(name, option.name); !is_renamed && differs < least) {
      least = differs;
      nearest = option.name;
    }
  }
  return nearest;
}

std::vector<std::string> find_unknown_options(const ConfigProxy& conf) {
  std::vector<std::string> unknown;
  const std::string file = conf.get_conf_path();
  ConfFile sections;
  std::ostringstream warnings;  // Ceph has told them when it started
  if (file.empty() || sections.parse_file(file, &warnings) < 0) {
    return unknown;
  }
  for (const std::string& name : conf.get_my_sections()) {
    const auto section = sections.find(name);
    if (section == sections.end()) {
      continue;
    }
    for (const conf_line_t& line : section->second) {
      const std::string option = ConfFile::normalize_key_name(line.key);
      if (option.starts_with(kPrefix) && conf.find_option(option) == nullptr) {
        const std::string nearest = nearest_option(option);
        unknown.push_back(fmt::format("{} in section [{}] of {} is no option, and has no effect: {}", option, name,
                                      file, nearest.empty() ? "take it out" : "is " + nearest + " meant?"));
      }
    }
  }
  return unknown;
}

void add_unknown_options_alert(const std::string& path, const std::vector<std::string>& unknown,
                               osd_alert_list_t* alerts) {
  if (!unknown.empty()) {
    alerts->emplace("SWIMSTORE_UNKNOWN_OPTION",
                    fmt::format("OSD at {}: {}. Correct it, and restart the OSD", path, fmt::join(unknown, "; ")));
  }
}

}  // namespace swimstore
