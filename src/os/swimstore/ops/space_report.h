// SPDX-License-Identifier: LGPL-2.1-or-later
// How full the store is, as Ceph's full ratios must see it.
//
//   total      the host's space that the store's files have, and its free space: the host's size where nothing else
//              lies there. A hole of a file is part of the host's free space, and of nothing else.
//   available  free slots, and what the host could give less the reserve; less what may be on its way when clients
//              are stopped. When that ends, so little that clients must stop (the cluster's full ratio), but more
//              than what makes an OSD drop deletes too (osd_failsafe_full_ratio): the reserve is there for them. The
//              same when the host's free space is below swimstore_host_free_min_* and log and tree, or others on the
//              host, took a quarter of the reserve, or less than half of it is left: then log and tree are short of
//              room, however many slots are free. What data was lent of the reserve does not count, for these slots
//              serve new data when they are free. 0 on a read-only host.
//
// Where log and tree lie on a file system of their own, that one is looked at, too: below swimstore_host_free_min_* of
// it the store is full for clients, whatever its data has; from twice that on, `available` falls towards it, so that
// backfill ends before. A reserve there is for deletes.
#pragma once

#include "common/config_proxy.h"
#include "osd/osd_types.h"

#include "swimstore/cube/cube.h"
#include "vtkv/env.h"

namespace swimstore {

struct SpaceLimits {
  uint64_t host_free_min_bytes = 0;
  double host_free_min_ratio = 0;
  double failsafe_full_ratio = 0.97;  // from 0.952 to 1
  // What clients may have on its way to this OSD; of a small store, a sixteenth is enough.
  uint64_t on_its_way_bytes = 0;

  static SpaceLimits read(const ConfigProxy& conf);
};

// Transactions that wait for room.
struct SpaceWaiters {
  uint64_t count = 0;
  uint64_t longest_s = 0;
};

// The host file system of log and tree.
struct MetadataHost {
  std::string directory;
  vtkv::FileSystemInfo file_system;
};

// `metadata_host`: null where log and tree lie in the store's directory.
store_statfs_t space_report(const vtkv::FileSystemInfo& host, const MetadataHost* metadata_host,
                            const ContainerStatistics& slots, const vtkv::DBStatistics& database, const PoolUsage& sum,
                            const SpaceLimits& limits);

// What of the usage is about compressed blobs.
void add_compressed(const PoolUsage& usage, store_statfs_t* report);

// Sentences that stand alone: monitors print those of names they do not know as they are.
void add_space_alerts(const std::string& path, const vtkv::FileSystemInfo& host, const ContainerStatistics& slots,
                      const SpaceLimits& limits, const SpaceWaiters& waiters, osd_alert_list_t* alerts);
// Of the file system of log and tree: when it is full, and when it soon will be.
void add_metadata_alerts(const MetadataHost& metadata_host, const SpaceLimits& limits, osd_alert_list_t* alerts);

}  // namespace swimstore
