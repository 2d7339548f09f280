// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/space_report.h"

#include <algorithm>

#include <fmt/format.h>

namespace swimstore {

namespace {

// Full for clients, not for their deletes: just below the ratio at which an OSD drops everything, so that any full
// ratio of the cluster that is below that one, too, is met.
constexpr double kBelowFailsafe = 0.001;
// Just above the usual full ratio of a cluster: a lower mark would stop no client, and before that ratio an OSD drops
// nothing.
constexpr double kFailsafeMin = 0.952;

// As the OSD reads it: also in percent.
double failsafe_ratio(double option) { return std::clamp(option > 1 ? option / 100 : option, kFailsafeMin, 1.0); }

uint64_t host_free_min(const vtkv::FileSystemInfo& host, const SpaceLimits& limits) {
  const double by_ratio = std::clamp(limits.host_free_min_ratio, 0.0, 1.0) * host.total_bytes;
  return std::max(limits.host_free_min_bytes, static_cast<uint64_t>(by_ratio));
}

// Log and tree take a slice of the reserve now and then, which comes back. What data was lent tells nothing of them, as
// long as the rest is enough for usual transactions (SpacePromises).
bool is_low(const vtkv::FileSystemInfo& host, const ContainerStatistics& slots, const SpaceLimits& limits) {
  if (host.available_bytes >= host_free_min(host, limits)) {
    return false;
  }
  const uint64_t left = slots.reserve_bytes + slots.reserve_lent_bytes;
  return left * 4 <= slots.reserve_target_bytes * 3 ||
         (slots.reserve_bytes + host.available_bytes) * 2 < slots.reserve_target_bytes;
}

void add_read_only_alert(const std::string& path, const vtkv::FileSystemInfo& host, osd_alert_list_t* alerts) {
  if (host.read_only) {
    alerts->emplace("SWIMSTORE_READ_ONLY",
                    fmt::format("the host file system of {} was remounted read-only: look at the kernel's log for the "
                                "reason, stop the OSD, unmount, check (e2fsck -f, xfs_repair) and mount it, start the "
                                "OSD",
                                path));
  }
}

// 1 with twice as much as is asked for, 0 with no more than that.
double room_for_metadata(const vtkv::FileSystemInfo& host, const SpaceLimits& limits) {
  const double least = std::max<double>(1, host_free_min(host, limits));
  return std::clamp((host.available_bytes - least) / least, 0.0, 1.0);
}

}  // namespace

SpaceLimits SpaceLimits::read(const ConfigProxy& conf) {
  return {conf.get_val<Option::size_t>("swimstore_host_free_min_size"),
          conf.get_val<double>("swimstore_host_free_min_ratio"),
          failsafe_ratio(conf.get_val<double>("osd_failsafe_full_ratio")),
          conf.get_val<Option::size_t>("swimstore_throttle_bytes") +
              (conf.get_val<Option::size_t>("osd_max_write_size") << 20)};  // that one is in MiB
}

void add_compressed(const PoolUsage& usage, store_statfs_t* report) {
  report->data_compressed = usage.compressed;
  report->data_compressed_allocated = usage.compressed_allocated;
  report->data_compressed_original = usage.compressed_original;
}

store_statfs_t space_report(const vtkv::FileSystemInfo& host, const MetadataHost* metadata_host,
                            const ContainerStatistics& slots, const vtkv::DBStatistics& database, const PoolUsage& sum,
                            const SpaceLimits& limits) {
  const uint64_t metadata_bytes = database.log_file_bytes + database.tree_file_bytes;
  const uint64_t growable_bytes = std::min(slots.growable_bytes, host.available_bytes);
  const uint64_t held_bytes = slots.file_bytes + slots.reserve_bytes + (metadata_host ? 0 : metadata_bytes);
  store_statfs_t report;
  // Files may have grown since the host was asked.
  report.total = std::min(held_bytes + host.available_bytes, host.total_bytes);
  const uint64_t on_its_way = std::min(limits.on_its_way_bytes, report.total / 16) + slots.kept_bytes;
  const uint64_t room = slots.free_bytes + growable_bytes;
  report.available = std::min(room - std::min(room, on_its_way), report.total);
  // The reserve takes deletes as long as there is a host to write to.
  const double left = 1.0 - (limits.failsafe_full_ratio - kBelowFailsafe);
  const auto full_for_clients = static_cast<uint64_t>(left * report.total);
  report.available = is_low(host, slots, limits) ? full_for_clients : std::max(report.available, full_for_clients);
  if (metadata_host) {
    const double room_there = room_for_metadata(metadata_host->file_system, limits);
    report.available = full_for_clients + static_cast<uint64_t>(room_there * (report.available - full_for_clients));
  }
  if (host.read_only || (metadata_host && metadata_host->file_system.read_only)) {
    report.available = 0;
  }
  const uint64_t reserved = slots.reserve_bytes + host.available_bytes - growable_bytes + std::min(room, on_its_way);
  report.internally_reserved = std::min(reserved, report.total - report.available);
  report.allocated = slots.owned_bytes;
  report.data_stored = sum.stored;
  add_compressed(sum, &report);
  report.omap_allocated = sum.omap;
  report.internal_metadata = std::max<int64_t>(0, static_cast<int64_t>(metadata_bytes) - sum.omap);
  return report;
}

void add_space_alerts(const std::string& path, const vtkv::FileSystemInfo& host, const ContainerStatistics& slots,
                      const SpaceLimits& limits, const SpaceWaiters& waiters, osd_alert_list_t* alerts) {
  add_read_only_alert(path, host, alerts);
  if (waiters.count > 0) {
    alerts->emplace(
        "SWIMSTORE_NO_SPACE",
        fmt::format("{} writes wait for free space of the store at {}, the longest for {} s; deletes go on: "
                    "remove objects, free space on {} or enlarge it",
                    waiters.count, path, waiters.longest_s, host.mount_point));
  }
  if (!slots.growth_error.empty()) {
    alerts->emplace("SWIMSTORE_CANNOT_GROW", slots.growth_error);
  }
  if (is_low(host, slots, limits)) {
    const uint64_t least = host_free_min(host, limits);
    alerts->emplace("SWIMSTORE_HOST_FULL",
                    fmt::format("the host file system of {} has {} MiB free, less than {} MiB: the store reports "
                                "itself full; free space on {} or remove objects",
                                path, host.available_bytes >> 20, least >> 20, host.mount_point));
  }
}

void add_metadata_alerts(const MetadataHost& metadata_host, const SpaceLimits& limits, osd_alert_list_t* alerts) {
  const vtkv::FileSystemInfo& host = metadata_host.file_system;
  add_read_only_alert(metadata_host.directory, host, alerts);
  const double room = room_for_metadata(host, limits);
  if (room < 1) {
    alerts->emplace(room == 0 ? "SWIMSTORE_METADATA_FULL" : "SWIMSTORE_METADATA_NEARLY_FULL",
                    fmt::format("the file system of {}, which has log and tree, has {} MiB free; with {} MiB the store "
                                "reports itself full: enlarge {}, or free space there",
                                metadata_host.directory, host.available_bytes >> 20, host_free_min(host, limits) >> 20,
                                host.mount_point));
    if (const auto waiting = alerts->find("SWIMSTORE_NO_SPACE"); waiting != alerts->end()) {
      waiting->second +=
          fmt::format("; where log and tree lie there is little room, too: first of all on {}", host.mount_point);
    }
  }
}

}  // namespace swimstore
