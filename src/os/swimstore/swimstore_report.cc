// SPDX-License-Identifier: LGPL-2.1-or-later
// What SwimStore tells about itself and its host, and the few knobs that come with it.

#include <fmt/format.h>

#include "common/Formatter.h"
#include "common/debug.h"
#include "swimstore/defragment/data_defragmenter.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/format_version.h"
#include "swimstore/host/host_alert.h"
#include "swimstore/host/osd_limits.h"
#include "swimstore/host/unknown_options.h"
#include "swimstore/ops/background_alert.h"
#include "swimstore/ops/host_device.h"
#include "swimstore/ops/space_report.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"
#include "vtkv/env/ring_refusal.h"
#include "vtkv/program_version.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::PoolUsage;

namespace {

swimstore::SpaceWaiters space_waiters(const swimstore::SpaceGate& gate, uint64_t now_us) {
  const uint64_t oldest_us = gate.oldest_us();
  const uint64_t waited_us = oldest_us == 0 ? 0 : now_us - std::min(now_us, oldest_us);
  return waited_us < gate.patience_us() ? swimstore::SpaceWaiters{}
                                        : swimstore::SpaceWaiters{gate.waiting(), waited_us / 1000000};
}

swimstore::MemoryGauges memory_gauges(const swimstore::StoreContext& store, const swimstore::CommitThrottle& throttle) {
  const auto& cubes = store.cubes;
  return {.onodes = cubes.sum([](const auto& cube) { return cube.onodes.size(); }),
          .onode_bytes = cubes.onode_bytes(),
          .onode_hits = cubes.sum([](const auto& cube) { return cube.onodes.hits(); }),
          .onode_misses = cubes.sum([](const auto& cube) { return cube.onodes.misses(); }),
          .data_bytes = cubes.data_bytes(),
          .throttle_bytes = throttle.taken_bytes()};
}

// Ceph's tests set the option of the store they know, or that of each store.
bool may_inject_errors(CephContext* cct) {
  return cct->_conf.get_val<bool>("swimstore_debug_inject_read_err") ||
         cct->_conf.get_val<bool>("bluestore_debug_inject_read_err");
}

}  // namespace

// What is applied is readable at once, and nobody waits for it: as other stores that apply when they commit, the time
// until a transaction is durable is told for both.
objectstore_perf_stat_t SwimStore::get_cur_stats() {
  m_commit_latency_ns.consume_next(m_counters->get()->get_tavg_ns(swimstore::l_swimstore_commit_latency));
  objectstore_perf_stat_t stat;
  stat.os_commit_latency_ns = m_commit_latency_ns.current_avg();
  stat.os_apply_latency_ns = stat.os_commit_latency_ns;
  return stat;
}

void SwimStore::refresh_perf_counters() {
  if (m_mounted) {
    m_counters->refresh_gauges(m_mounted->cubes->database_statistics(), m_mounted->cubes->container_statistics(),
                               memory_gauges(m_mounted->context, m_mounted->pipeline.throttle()));
  }
}

const PerfCounters* SwimStore::get_perf_counters() const { return m_counters->get(); }

void SwimStore::dump_perf_counters(ceph::Formatter* formatter) {
  refresh_perf_counters();
  formatter->open_object_section("perf_counters");
  m_counters->get()->dump_formatted(formatter, false, SWIM_CEPH_UNLABELED);
  formatter->close_section();
}

void SwimStore::get_db_statistics(ceph::Formatter* formatter) {
  formatter->open_object_section("vtkv");
  swimstore::dump_database(m_mounted->cubes->database_statistics(), formatter);
  formatter->close_section();
}

void SwimStore::dump_cache_stats(ceph::Formatter* formatter) { swimstore::dump_caches(m_mounted->context, formatter); }

void SwimStore::dump_cache_stats(std::ostream& out) {
  const auto gauges = memory_gauges(m_mounted->context, m_mounted->pipeline.throttle());
  out << "swimstore_onodes: " << gauges.onodes << " swimstore_onode_bytes: " << gauges.onode_bytes
      << " swimstore_data_bytes: " << gauges.data_bytes << " swimstore_throttle_bytes: " << gauges.throttle_bytes;
}

int SwimStore::flush_cache(std::ostream*) {
  for (const auto& cube : m_mounted->context.cubes) {
    cube->onodes.clear();
    cube->data.clear();
    cube->database().set_block_cache_bytes(0);
  }
  m_mounted->memory.adjust();  // gives the trees' caches their capacity back
  return 0;
}

int SwimStore::compact() {
  vtkv::Status status = m_mounted->cubes->flush();
  if (status.ok()) {
    status = m_mounted->cubes->compact();
  }
  return status.ok() ? 0 : fail("compact", status);
}

vtkv::Status SwimStore::defragment_in_use(bool only_measure, const std::function<void()>& between,
                                          swimstore::DefragmentCounts* counts) {
  using swimstore::DataDefragmenter;
  DataDefragmenter defragmenter(m_mounted->context, m_mounted->pipeline,
                                {.only_measure = only_measure, .between = between});
  uint64_t cost = 0;
  DataDefragmenter::Outcome outcome{};
  do {
    outcome = defragmenter.step(&cost);
    *counts = defragmenter.counts();
    for (const auto& cube : m_mounted->context.cubes) {
      vtkv::DB& database = cube->database();
      VTKV_RETURN_IF_ERROR(database.wait_durable(database.statistics().last_sequence));
    }
  } while (outcome == DataDefragmenter::Outcome::more || outcome == DataDefragmenter::Outcome::not_now);
  return outcome == DataDefragmenter::Outcome::done ? vtkv::Status() : vtkv::Status::failed(defragmenter.error());
}

int SwimStore::statfs(store_statfs_t* report, osd_alert_list_t* alerts) {
  refresh_perf_counters();  // the OSD asks every few seconds, and nobody tells before a "perf dump"
  vtkv::FileSystemInfo host;
  if (const vtkv::Status status = m_env->file_system_info(path, &host); !status.ok()) {
    return fail("statfs", status);
  }
  PoolUsage sum;
  for (const auto& [pool, usage] : m_mounted->cubes->pool_usage()) {
    sum += usage;
  }
  const auto limits = swimstore::SpaceLimits::read(cct->_conf);
  const swimstore::ContainerStatistics slots = m_mounted->cubes->container_statistics();
  const vtkv::DBStatistics database = m_mounted->cubes->database_statistics();
  swimstore::MetadataHost metadata_host{m_mounted->layout.metadata_directory, {}};
  const bool has_metadata_host = !metadata_host.directory.empty();
  if (has_metadata_host) {
    const vtkv::Status status = m_env->file_system_info(metadata_host.directory, &metadata_host.file_system);
    if (!status.ok()) {
      return fail("statfs", status);
    }
  }
  *report = swimstore::space_report(host, has_metadata_host ? &metadata_host : nullptr, slots, database, sum, limits);
  if (alerts != nullptr) {
    alerts->clear();
    swimstore::add_space_alerts(path, host, slots, limits, space_waiters(m_mounted->pipeline.space(), m_env->now_us()),
                                alerts);
    if (has_metadata_host) {
      swimstore::add_metadata_alerts(metadata_host, limits, alerts);
    }
    swimstore::add_background_alert(path, host.mount_point,
                                    (has_metadata_host ? metadata_host.file_system : host).mount_point,
                                    m_mounted->cubes->background_errors(), alerts);
    swimstore::add_quarantine_alert(path, m_mounted->cubes->quarantined(), alerts);
    if (const swimstore::RelaxedPools& relaxed = m_mounted->pipeline.relaxed_pools(); relaxed.any()) {
      relaxed.add_alert(path, m_mounted->context.collections.list(), alerts);
    }
    swimstore::add_abandoned_alert(path, m_mounted->cubes->missing(), alerts);
    if (const uint64_t errors = m_counters->get()->get(swimstore::l_swimstore_read_errors); errors > 0) {
      alerts->emplace(
          "SWIMSTORE_READ_ERRORS",
          fmt::format("{} reads failed since the OSD at {} started: deep scrub its PGs, check the disk", errors, path));
    }
    swimstore::add_limits_alert(path, cct->_conf, alerts);
    swimstore::add_unsafe_host_alert(host_dangers(), alerts);
    swimstore::add_blocking_io_alert(path, vtkv::ring_refusal(), alerts);
    swimstore::add_unknown_options_alert(path, m_mounted->unknown_options, alerts);
    m_mounted->context.slow.add_alert(path, host, alerts);
    m_mounted->context.compression.add_alert(path, m_mounted->context.collections.list(), alerts);
    m_mounted->ignored_options.add_alert(path, m_mounted->context.collections.list(), alerts);
    if (const std::string text = m_mounted->fsck.alert(); !text.empty()) {
      alerts->emplace("SWIMSTORE_FSCK_FINDINGS", fmt::format("store at {}: {}", path, text));
    }
    if (const std::string text = m_mounted->verify.alert(); !text.empty()) {
      alerts->emplace("SWIMSTORE_VERIFY_FINDINGS", fmt::format("store at {}: {}", path, text));
    }
  }
  return 0;
}

// Omap is not counted by pool: where an OSD says so, monitors reckon it from what the last deep scrub of each PG found.
int SwimStore::pool_statfs(uint64_t pool_id, store_statfs_t* report, bool* per_pool_omap) {
  const auto usage_by_pool = m_mounted->cubes->pool_usage();
  report->reset();
  *per_pool_omap = false;
  const auto found = usage_by_pool.find(static_cast<int64_t>(pool_id));
  if (found != usage_by_pool.end()) {
    report->allocated = found->second.allocated;
    report->data_stored = found->second.stored;
    swimstore::add_compressed(found->second, report);
  }
  return 0;
}

uint64_t SwimStore::estimate_objects_overhead(uint64_t num_objects) {
  // On average half a block of each object's tail is waste.
  return num_objects * swimstore::kBlockBytes / 2;
}

int SwimStore::validate_hobject_key(const hobject_t& object) const { return swimstore::check_object_name(object); }

uint64_t SwimStore::get_min_alloc_size() const { return swimstore::kBlockBytes; }

void SwimStore::collect_metadata(std::map<std::string, std::string>* metadata) {
  vtkv::FileSystemInfo host;
  if (m_env->file_system_info(path, &host).ok()) {
    (*metadata)["swimstore_host_file_system"] = vtkv::to_string(host.kind);
    (*metadata)["swimstore_host_device"] = host.device;
    (*metadata)["swimstore_host_mount_point"] = host.mount_point;
    (*metadata)["swimstore_rotational"] = host.rotational ? "1" : "0";
  }
  (*metadata)["swimstore_version"] = vtkv::program_version();
  (*metadata)["swimstore_path"] = path;
  (*metadata)["swimstore_min_alloc_size"] = std::to_string(swimstore::kBlockBytes);
  if (m_mounted) {
    (*metadata)["swimstore_format_version"] = std::to_string(m_mounted->superblock.version);
    const bool upgradable = m_mounted->superblock.is_upgradable() || m_mounted->cubes->is_upgradable();
    (*metadata)["swimstore_upgradable"] = upgradable ? "1" : "0";
    (*metadata)["swimstore_flush_mode"] = m_mounted->layout.single_flush ? "single" : "per-file";
    (*metadata)["swimstore_io"] = vtkv::ring_refusal().empty() ? "io_uring" : "blocking";
    (*metadata)["swimstore_cubes"] = std::to_string(m_mounted->superblock.cubes);
    const std::string& directory = m_mounted->layout.metadata_directory;
    if (!directory.empty() && m_env->file_system_info(directory, &host).ok()) {
      (*metadata)["swimstore_metadata_path"] = directory;
      (*metadata)["swimstore_metadata_file_system"] = vtkv::to_string(host.kind);
      (*metadata)["swimstore_metadata_device"] = host.device;
      (*metadata)["swimstore_metadata_rotational"] = host.rotational ? "1" : "0";
    }
  }
  const auto devices = swimstore::find_host_devices(path);
  if (devices.numa_nodes.size() == 1) {
    (*metadata)["objectstore_numa_node"] = std::to_string(*devices.numa_nodes.begin());
  }
}

int SwimStore::get_devices(std::set<std::string>* names) {
  const auto devices = swimstore::find_host_devices(path);
  names->insert(devices.names.begin(), devices.names.end());
  if (m_mounted && !m_mounted->layout.metadata_directory.empty()) {
    names->merge(swimstore::find_host_devices(m_mounted->layout.metadata_directory).names);
  }
  return 0;
}

int SwimStore::get_numa_node(int* node, std::set<int>* nodes, std::set<std::string>* failed) {
  const auto devices = swimstore::find_host_devices(path);
  if (devices.numa_nodes.size() == 1 && devices.without_numa_node.empty()) {
    *node = *devices.numa_nodes.begin();
  }
  if (nodes != nullptr) {
    *nodes = devices.numa_nodes;
  }
  if (failed != nullptr) {
    *failed = devices.without_numa_node;
  }
  return 0;
}

// As the kernel says of the device that the file system lies on. It may know better than the disks below: a loop
// device or a mapping in front of them can be told not to spin.
bool SwimStore::is_rotational() {
  vtkv::FileSystemInfo host;
  return m_env->file_system_info(path, &host).ok() && host.rotational;
}

// An OSD asks before it mounts, too.
bool SwimStore::is_journal_rotational() {
  swimstore::StoreDirectory directory(m_env, path);
  swimstore::Superblock superblock;
  vtkv::FileSystemInfo host;
  return directory.read_superblock(&superblock).ok() && !directory.metadata_directory().empty()
             ? m_env->file_system_info(directory.metadata_directory(), &host).ok() && host.rotational
             : is_rotational();
}

void SwimStore::inject_data_error(const ghobject_t& oid) {
  if (may_inject_errors(cct)) {
    m_mounted->context.injected.add_data_error(oid);
  } else {
    derr << "no error injected: set swimstore_debug_inject_read_err" << dendl;
  }
}

void SwimStore::inject_mdata_error(const ghobject_t& oid) {
  if (may_inject_errors(cct)) {
    m_mounted->context.injected.add_metadata_error(oid);
  } else {
    derr << "no error injected: set swimstore_debug_inject_read_err" << dendl;
  }
}
