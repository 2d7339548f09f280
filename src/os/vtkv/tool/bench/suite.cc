// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/suite.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "vtkv/tool/bench/runner.h"
#include "vtkv/tool/bench/session.h"

namespace vtkv::bench {

namespace {

std::string directory_of(const std::string& path, const EngineSpec& spec) {
  std::string name = spec.label;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '/' || c == ':' || c == '='; }, '_');
  return fmt::format("{}/{}", path, name);
}

// All engines and workloads of one value size.
class Column {
 public:
  Column(const Group& group, uint64_t value_bytes, const std::string& path) : m_group(group) {
    LoadSettings load = group.load;
    load.value_bytes = value_bytes;
    load.keys = group.keys ? group.keys : std::max<uint64_t>(1000, group.data_bytes / (kKeyBytes + value_bytes));
    for (const EngineSpec& spec : group.engines) {
      m_sessions.push_back(
          std::make_unique<Session>(directory_of(path, spec), spec, load, group.memory_bytes, group.sync));
    }
  }

  Status run(unsigned round, const std::function<void(Result)>& add) {
    for (const WorkloadKind* kind : m_group.workloads) {
      for (size_t i = 0; i < m_sessions.size(); ++i) {
        // Not the same one first every time.
        const size_t nth = (i + round) % m_sessions.size();
        if (m_unfit.contains({nth, kind})) {
          continue;
        }
        Result result;
        result.group = m_group.name;
        const Status status = m_sessions[nth]->run(*kind, &result);
        const std::string& label = m_group.engines[nth].label;
        if (status.code() == Status::Code::unsupported) {
          say(fmt::format("{} {}: left out: {}", label, kind->name, status.message()));
          m_unfit.insert({nth, kind});
          continue;
        }
        if (!status.ok()) {
          return status.with_message(fmt::format("{} {}: {}", label, kind->name, status.message()));
        }
        say(fmt::format("{} {} {} B: {:.0f} op/s in {:.1f} s", label, kind->name, result.value_bytes,
                        *result[Metric::ops_per_s], *result[Metric::seconds]));
        add(std::move(result));
      }
    }
    return {};
  }

 private:
  const Group& m_group;
  std::vector<std::unique_ptr<Session>> m_sessions;
  std::set<std::pair<size_t, const WorkloadKind*>> m_unfit;
};

}  // namespace

Status run_groups(const std::vector<Group>& groups, const std::string& path,
                  const std::function<void(const std::vector<Result>&)>& done, std::vector<Result>* results) {
  for (const Group& group : groups) {
    for (const uint64_t value_bytes : group.value_sizes) {
      for (unsigned round = 0; round < group.rounds; ++round) {
        Column column(group, value_bytes, path);
        VTKV_RETURN_IF_ERROR(column.run(round, [&](Result result) {
          results->push_back(std::move(result));
          done(*results);
        }));
      }
    }
  }
  return {};
}

}  // namespace vtkv::bench
