// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/background_alert.h"

#include <cerrno>

#include <fmt/format.h>

#include "vtkv/util/host_remedy.h"

namespace swimstore {

namespace {

std::string remedy(const vtkv::BackgroundError& error, const std::string& mount_point) {
  if (vtkv::is_list_full(error.status)) {
    return "it goes on by itself when compaction or collection has made room; when it stays, take the OSD out and "
           "make it anew, and its peers will fill it";
  }
  if (error.status.error_number() == ENOSPC) {
    return fmt::format("free space on {} or remove objects; it goes on by itself", mount_point);
  }
  if (const std::string of_host = vtkv::host_remedy(error.status.error_number(), mount_point); !of_host.empty()) {
    return of_host + "; it is tried again all the time";
  }
  return "look for errors of the disk in the kernel's log; when it stays, take the OSD out, make it anew on a sound "
         "disk, "
         "and its peers will fill it";
}

}  // namespace

std::string describe(const vtkv::BackgroundError& error, const std::string& mount_point) {
  if (error.status.ok()) {
    return fmt::format("{} works again", error.work->name);
  }
  return fmt::format("{} has failed ({}): {}. Remedy: {}", error.work->name, error.status.message(),
                     error.work->consequence, remedy(error, mount_point));
}

void add_background_alert(const std::string& path, const std::string& data_mount_point,
                          const std::string& metadata_mount_point, const CubeErrors& errors, osd_alert_list_t* alerts) {
  std::string text;
  for (const vtkv::BackgroundError& error : errors.of_databases) {
    text += (text.empty() ? "" : "; ") + describe(error, metadata_mount_point);
  }
  for (const vtkv::BackgroundError& error : errors.of_containers) {
    text += (text.empty() ? "" : "; ") + describe(error, data_mount_point);
  }
  if (!text.empty()) {
    alerts->emplace("SWIMSTORE_BACKGROUND_ERROR", fmt::format("store at {}: {}", path, text));
  }
}

void add_quarantine_alert(const std::string& path, const std::vector<SlotAddress>& slots, osd_alert_list_t* alerts) {
  if (slots.empty()) {
    return;
  }
  uint64_t bytes = 0;
  for (const SlotAddress& slot : slots) {
    bytes += slot_bytes(slot.size_class);
  }
  alerts->emplace("SWIMSTORE_QUARANTINE",
                  fmt::format("store at {}: writes to {} slots of {} KiB in all have failed; they are not used again. "
                              "Remedy: look for errors of the disk in the kernel's log; when there are more, take the "
                              "OSD out and make it anew on a sound disk",
                              path, slots.size(), bytes / 1024));
}

void add_abandoned_alert(const std::string& path, const std::map<unsigned, std::string>& abandoned,
                         osd_alert_list_t* alerts) {
  if (abandoned.empty()) {
    return;
  }
  std::string cubes;
  for (const auto& [cube, why] : abandoned) {
    cubes += fmt::format("{}cube {} ({})", cubes.empty() ? "" : ", ", cube, why);
  }
  alerts->emplace(
      "SWIMSTORE_CUBE_FAILED",
      fmt::format("store at {} goes on without {}; the placement groups that lay there are made anew in its "
                  "other cubes, and filled by their peers. Remedy: check the disk. When all PGs are "
                  "active+clean, stop the OSD, run 'ceph-swimstore-tool reset {} --cube {}' and start it. "
                  "While a PG is incomplete, leave the cube's files and its mark as they are",
                  path, cubes, path, abandoned.begin()->first));
}

}  // namespace swimstore
