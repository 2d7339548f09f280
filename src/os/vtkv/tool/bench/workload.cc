// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/workload.h"

#include <charconv>

#include <fmt/format.h>

namespace vtkv::bench {

const std::vector<WorkloadKind>& workload_kinds() {
  static const std::vector<WorkloadKind> kinds = [] {
    std::vector<WorkloadKind> all;
    add_write_workloads(&all);
    add_read_workloads(&all);
    add_delete_workloads(&all);
    add_ycsb_workloads(&all);
    return all;
  }();
  return kinds;
}

const WorkloadKind* find_workload(std::string_view name) {
  for (const WorkloadKind& kind : workload_kinds()) {
    if (kind.name == name) {
      return &kind;
    }
  }
  return nullptr;
}

Status put_key(const LoadContext& context, uint64_t number, std::string* buffer, Outcome* outcome) {
  const std::string_view value = context.values.make(number, context.state.version, buffer);
  outcome->written_bytes += kKeyBytes + value.size();
  return context.engine.put(Key(number), value);
}

Status get_key(const LoadContext& context, uint64_t number, std::string* buffer, Outcome* outcome) {
  const Key key(number);
  const Status status = context.engine.get(key, buffer);
  if (status.is_not_found()) {
    return Status::corruption(fmt::format("key {} was written and is not found", key.view()));
  }
  VTKV_RETURN_IF_ERROR(status);
  if (!context.values.belongs(*buffer, number)) {
    return Status::corruption(fmt::format("key {} has a value that was never written to it", key.view()));
  }
  outcome->read_bytes += kKeyBytes + buffer->size();
  return {};
}

Status check_scanned(const LoadContext& context, const Scan& scan, Outcome* outcome) {
  const std::string_view key = scan.key();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || !context.values.belongs(scan.value(), number)) {
    return Status::corruption(fmt::format("key {}: the scan gave a value that was never written to it", key));
  }
  outcome->read_bytes += key.size() + scan.value().size();
  return {};
}

uint64_t seed_of(const LoadContext& context, unsigned thread) {
  return context.settings.seed * 1000003 + context.state.version * 1009 + thread;
}

}  // namespace vtkv::bench
