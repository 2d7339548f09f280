// SPDX-License-Identifier: LGPL-2.1-or-later
// The file systems that a store lies on: whether they will do, and what a flush covers there.

#include <fmt/format.h>

#include "common/code_environment.h"
#include "common/debug.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/host/osd_limits.h"
#include "swimstore/host/process_limits.h"
#include "swimstore/host/unknown_options.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"
#include "vtkv/env/posix/fast_commit.h"     // tidy: allow it: a mount asks what kind of host it is on
#include "vtkv/env/posix/flush_obstacle.h"  // tidy: allow it: a mount asks what kind of host it is on
#include "vtkv/env/posix/sync_loss.h"       // tidy: allow it: a mount asks what kind of host it is on
#include "vtkv/env/ring_refusal.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::Settings;
using swimstore::StoreDirectory;
using swimstore::StoreLayout;
using vtkv::Status;

Status SwimStore::find_layout(StoreDirectory& directory, const Settings& settings, vtkv::FileSystemInfo host,
                              StoreLayout* layout) const {
  layout->metadata_directory = directory.metadata_directory();
  VTKV_RETURN_IF_ERROR(consider_obstacles(path, &host));
  if (!layout->metadata_directory.empty()) {
    vtkv::FileSystemInfo other;
    VTKV_RETURN_IF_ERROR(directory.check_file_system(layout->metadata_directory, settings, &other));
    VTKV_RETURN_IF_ERROR(consider_obstacles(layout->metadata_directory, &other));
    host = host.single_flush ? other : host;  // the one where more syncs are needed decides for both
  }
  return settings.choose_single_flush(host, &layout->single_flush);
}

// The host's file system may be one where a flush covers all files, and a file of this store one that it does not
// cover.
Status SwimStore::consider_obstacles(const std::string& directory, vtkv::FileSystemInfo* host) const {
  std::string obstacle;
  if (!host->single_flush || m_env != vtkv::posix_env()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(vtkv::find_flush_obstacle(directory, &obstacle));
  if (!obstacle.empty()) {
    derr << obstacle << ": one flush does not cover it, so each file is flushed by itself, which is slower" << dendl;
    host->single_flush = false;
  }
  return {};
}

// What it is started with: options of the OSD's, limits of the process.
Status SwimStore::check_surroundings() const {
  VTKV_RETURN_IF_ERROR(swimstore::check_osd_limits(cct->_conf));
  return swimstore::check_file_size_limit();
}

Status SwimStore::refuse_to_osd(const Status& refused) const {
  if (refused.ok() || g_code_env == CODE_ENVIRONMENT_DAEMON) {
    return refused;
  }
  derr << refused.message() << dendl;
  return {};
}

Status SwimStore::refuse_unsafe_host(const StoreDirectory& directory, const Settings& settings) const {
  for (const std::string& file : directory.file_of_each_host()) {
    VTKV_RETURN_IF_ERROR(refuse_unsafe_host(file, settings));
  }
  return {};
}

Status SwimStore::refuse_unsafe_host(const std::string& file, const Settings& settings) const {
  if (settings.allow_unproven_file_system || m_env != vtkv::posix_env()) {
    return {};
  }
  const std::string directory = file.substr(0, file.rfind('/'));
  if (const std::string loss = vtkv::find_sync_loss(directory); !loss.empty()) {
    return Status::unsupported(fmt::format("{} lies on {}", directory, loss));
  }
  const std::string device = vtkv::find_fast_commit(file);
  return device.empty() ? Status()
                        : Status::unsupported(fmt::format(
                              "{} lies on an ext4 with the feature fast_commit, with which Linux loses what was synced "
                              "when the power fails: unmount it, take the feature away with 'tune2fs -O ^fast_commit "
                              "/dev/{}', and mount it again",
                              directory, device));
}

// A file system may be mounted anew, and a cache told not to be flushed, while the store is in use.
std::vector<std::string> SwimStore::host_dangers() const {
  std::vector<std::string> dangers;
  if (m_env != vtkv::posix_env()) {
    return dangers;
  }
  std::vector<std::string> directories{path};
  if (!m_mounted->layout.metadata_directory.empty()) {
    directories.push_back(m_mounted->layout.metadata_directory);
  }
  for (const std::string& directory : directories) {
    if (const std::string loss = vtkv::find_sync_loss(directory); !loss.empty()) {
      dangers.push_back(fmt::format("{} lies on {}", directory, loss));
    }
    if (std::string unflushed = vtkv::find_unflushed_cache(directory); !unflushed.empty()) {
      dangers.push_back(std::move(unflushed));
    }
  }
  return dangers;
}

// What no mount is refused for. The same stands in the alerts.
void SwimStore::tell_of_the_host() {
  for (const std::string& danger : host_dangers()) {
    derr << danger << dendl;
  }
  if (const std::string refusal = vtkv::ring_refusal(); !refusal.empty()) {
    derr << refusal << dendl;
  }
  m_mounted->unknown_options = swimstore::find_unknown_options(cct->_conf);
  for (const std::string& option : m_mounted->unknown_options) {
    derr << option << dendl;
  }
}

// There they would take two flushes where one would do, and their room is not what the reserve is for.
Status SwimStore::refuse_same_file_system(const std::string& metadata_directory, const Settings& settings) const {
  if (metadata_directory.empty() || settings.allow_unproven_file_system) {
    return {};
  }
  vtkv::FileSystemInfo host, other;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(path, &host));
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(metadata_directory, &other));
  return other.device != host.device || other.mount_point != host.mount_point
             ? Status()
             : Status::invalid_argument(fmt::format("{} lies on the file system of {} itself, mounted at {}: mount the "
                                                    "one that log and tree shall lie on, or leave them where they are",
                                                    metadata_directory, path, host.mount_point));
}
