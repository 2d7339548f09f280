// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/admin_commands.h"

#include <algorithm>
#include <thread>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "vtkv/env/ring_refusal.h"
#include "vtkv/program_version.h"
#include "vtkv/util/utf8.h"

namespace swimstore {

void dump_database(const vtkv::DBStatistics& statistics, ceph::Formatter* formatter) {
  formatter->dump_unsigned("last_sequence", statistics.last_sequence);
  formatter->dump_unsigned("durable_sequence", statistics.durable_sequence);
  formatter->dump_unsigned("commit_groups", statistics.commit_groups);
  formatter->dump_unsigned("log_bytes", statistics.log_bytes);
  formatter->dump_unsigned("external_bytes", statistics.external_bytes);
  formatter->dump_unsigned("syncs", statistics.syncs);
  formatter->dump_unsigned("memtable_bytes", statistics.memtable_bytes);
  formatter->dump_unsigned("memtable_flushes", statistics.memtable_flushes);
  formatter->dump_unsigned("flush_bytes", statistics.flush_bytes);
  formatter->dump_unsigned("compactions", statistics.compactions);
  formatter->dump_unsigned("compaction_bytes", statistics.compaction_bytes);
  formatter->dump_unsigned("runs", statistics.runs);
  formatter->dump_unsigned("levels", statistics.levels);
  formatter->dump_unsigned("log_segments", statistics.log_segments);
  formatter->dump_unsigned("log_file_bytes", statistics.log_file_bytes);
  formatter->dump_unsigned("tree_file_bytes", statistics.tree_file_bytes);
  formatter->dump_unsigned("tree_live_bytes", statistics.tree_live_bytes);
  formatter->dump_unsigned("block_cache_bytes", statistics.block_cache_bytes);
  formatter->dump_unsigned("block_cache_hits", statistics.block_cache_hits);
  formatter->dump_unsigned("block_cache_misses", statistics.block_cache_misses);
}

void dump_containers(const ContainerStatistics& statistics, const std::vector<SlotAddress>& quarantined,
                     ceph::Formatter* formatter) {
  formatter->dump_unsigned("owned_bytes", statistics.owned_bytes);
  formatter->dump_unsigned("free_bytes", statistics.free_bytes);
  formatter->dump_unsigned("file_bytes", statistics.file_bytes);
  formatter->dump_unsigned("growable_bytes", statistics.growable_bytes);
  formatter->dump_unsigned("promised_bytes", statistics.promised_bytes);
  formatter->dump_unsigned("kept_bytes", statistics.kept_bytes);
  formatter->dump_unsigned("reserve_bytes", statistics.reserve_bytes);
  formatter->dump_unsigned("reserve_lent_bytes", statistics.reserve_lent_bytes);
  formatter->dump_unsigned("hole_bytes", statistics.hole_bytes);
  formatter->dump_unsigned("reserve_target_bytes", statistics.reserve_target_bytes);
  formatter->dump_unsigned("primed_bytes_total", statistics.primed_bytes_total);
  formatter->dump_unsigned("punched_bytes_total", statistics.punched_bytes_total);
  formatter->open_array_section("classes");
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    const ContainerStatistics::Class& one = statistics.classes[size_class];
    formatter->open_object_section("class");
    formatter->dump_unsigned("slot_bytes", slot_bytes(size_class));
    formatter->dump_unsigned("slots", one.slots);
    formatter->dump_unsigned("owned", one.owned);
    formatter->dump_unsigned("free", one.free);
    formatter->dump_unsigned("waiting", one.waiting);
    formatter->dump_unsigned("primed_free", one.primed_free);
    formatter->close_section();
  }
  formatter->close_section();
  formatter->open_array_section("quarantined_slots");
  for (const SlotAddress& slot : quarantined) {
    formatter->open_object_section("slot");
    formatter->dump_unsigned("slot_bytes", slot_bytes(slot.size_class));
    formatter->dump_unsigned("slot_index", slot.index);
    formatter->close_section();
  }
  formatter->close_section();
}

void dump_fragmentation(const FreePieces& pieces, const vtkv::DBStatistics& database, ceph::Formatter* formatter) {
  formatter->open_object_section("data");
  formatter->dump_float("score", pieces.score());
  formatter->dump_unsigned("free_bytes", pieces.bytes());
  formatter->open_array_section("pieces");
  for (unsigned size = 0; size < kSizeClasses; ++size) {
    formatter->open_object_section("size");
    formatter->dump_unsigned("from_bytes", slot_bytes(size));
    formatter->dump_unsigned("pieces", pieces.sizes[size].pieces);
    formatter->dump_unsigned("free_bytes", pieces.sizes[size].bytes);
    formatter->close_section();
  }
  formatter->close_section();
  formatter->close_section();
  const uint64_t zone_bytes = database.zones == 0 ? 0 : database.tree_file_bytes / database.zones;
  const uint64_t used_bytes = database.zones_in_use * zone_bytes;
  const uint64_t live_bytes = std::min(database.tree_live_bytes, used_bytes);
  formatter->open_object_section("metadata");
  formatter->dump_float("score", used_bytes == 0 ? 0 : 1 - static_cast<double>(live_bytes) / used_bytes);
  formatter->dump_unsigned("zones_bytes", used_bytes);
  formatter->dump_unsigned("live_bytes", live_bytes);
  formatter->close_section();
}

void dump_caches(StoreContext& store, ceph::Formatter* formatter) {
  const auto dump = [&](const char* name, const auto& sum) { formatter->dump_unsigned(name, store.cubes.sum(sum)); };
  dump("onodes", [](const StoreCube& cube) { return cube.onodes.size(); });
  dump("onode_bytes", [](const StoreCube& cube) { return cube.onodes.memory_bytes(); });
  dump("onode_capacity_bytes", [](const StoreCube& cube) { return cube.onodes.capacity(); });
  dump("onode_hits", [](const StoreCube& cube) { return cube.onodes.hits(); });
  dump("onode_misses", [](const StoreCube& cube) { return cube.onodes.misses(); });
  dump("data_bytes", [](const StoreCube& cube) { return cube.data.memory_bytes(); });
  dump("data_capacity_bytes", [](const StoreCube& cube) { return cube.data.capacity(); });
  dump("slots_in_flight", [](const StoreCube& cube) { return cube.in_flight.size(); });
}

void dump_throttle(const CommitThrottle& throttle, ceph::Formatter* formatter) {
  formatter->dump_unsigned("limit_bytes", throttle.limit_bytes());
  formatter->dump_unsigned("taken_bytes", throttle.taken_bytes());
  formatter->dump_unsigned("waiting", throttle.waiting());
}

void dump_move(const OnlineMover::Report& report, ceph::Formatter* formatter) {
  formatter->open_object_section("move");
  formatter->dump_string("state", report.state);
  if (!report.error.empty()) {
    formatter->dump_string("error", vtkv::to_utf8(report.error));
  }
  formatter->dump_unsigned("done", report.done);
  formatter->dump_unsigned("failed", report.failed);
  formatter->open_array_section("plan");
  for (const GroupMove& move : report.plan) {
    formatter->open_object_section("move");
    formatter->dump_stream("collection") << move.cid;
    formatter->dump_unsigned("to", move.to);
    formatter->close_section();
  }
  formatter->close_section();
  if (report.passes > 0 || report.is_under_way()) {
    formatter->dump_string("phase", report.phase);
    formatter->dump_unsigned("slot_bytes", report.slot_bytes);
    formatter->dump_unsigned("copied_objects", report.objects);
    formatter->dump_unsigned("copied_bytes", report.bytes);
    formatter->dump_unsigned("pass", report.passes);
    formatter->dump_unsigned("hashes_left", report.hashes_left);
    formatter->dump_unsigned("blocked_ms", report.blocked_us / 1000);
  }
  formatter->close_section();
}

AdminCommands::AdminCommands(StoreContext& store, const CommitThrottle& throttle, const OnlineMover& mover)
    : m_store(store), m_throttle(throttle), m_mover(mover) {
  AdminSocket* socket = store.cct->get_admin_socket();
  socket->register_command("swimstore status", this,
                           "show version, log, tree, containers, fragmentation, caches, throttle, moves");
  socket->register_command("swimstore flush", this, "write the memtable to the tree");
}

AdminCommands::~AdminCommands() { m_store.cct->get_admin_socket()->unregister_commands(this); }

int fail_command(int error, const std::string& reason, ceph::Formatter* formatter, std::ostream& errors,
                 ceph::bufferlist& output) {
  const std::string text = vtkv::to_utf8(reason);
  errors << text;
  formatter->reset();
  formatter->open_object_section("swimstore");
  formatter->dump_string("error", text);
  formatter->close_section();
  formatter->flush(output);
  return error;
}

constexpr unsigned kLockTriesMax = 100'000;  // some milliseconds, or more where others want the processor

// What lies in each cube.
AdminCommands::Homes AdminCommands::find_homes() const {
  Homes homes;
  for (const CollectionRef& collection : m_store.collections.all()) {
    // Transactions hold it for a moment, a move for long: what is being moved is counted nowhere.
    for (unsigned tries = 0; tries < kLockTriesMax; ++tries) {
      if (collection->lock.try_lock_shared()) {
        if (collection->exists) {
          homes[collection->record.home()].push_back(collection->cid);
        }
        collection->lock.unlock_shared();
        break;
      }
      std::this_thread::yield();  // to who has it
    }
  }
  return homes;
}

// Of one among several: what tells it from the others.
void AdminCommands::dump_cube(StoreCube& cube, const std::vector<coll_t>& collections, ceph::Formatter* formatter) {
  const vtkv::DBStatistics database = cube.database().statistics();
  const ContainerStatistics containers = cube.containers().statistics();
  formatter->open_object_section("cube");
  formatter->dump_unsigned("cube", cube.number);
  formatter->dump_unsigned("collections", collections.size());
  formatter->open_array_section("placement_groups");
  for (const coll_t& cid : collections) {
    if (spg_t pgid; cid.is_pg(&pgid)) {
      formatter->dump_stream("pgid") << pgid;
    }
  }
  formatter->close_section();
  formatter->dump_unsigned("durable_sequence", database.durable_sequence);
  formatter->dump_unsigned("commit_groups", database.commit_groups);
  formatter->dump_unsigned("syncs", database.syncs);
  formatter->dump_unsigned("log_file_bytes", database.log_file_bytes);
  formatter->dump_unsigned("tree_file_bytes", database.tree_file_bytes);
  formatter->dump_unsigned("owned_bytes", containers.owned_bytes);
  formatter->dump_unsigned("free_bytes", containers.free_bytes);
  formatter->close_section();
}

int AdminCommands::call(std::string_view command, const cmdmap_t&, const ceph::bufferlist&, ceph::Formatter* formatter,
                        std::ostream& errors, ceph::bufferlist& output) {
  if (command == "swimstore flush") {
    const vtkv::Status status = m_store.cubes.set().flush();
    if (!status.ok()) {
      return fail_command(-status.error_number(), status.to_string(), formatter, errors, output);
    }
    formatter->open_object_section("flush");
    formatter->dump_unsigned("durable_sequence", m_store.cubes.set().database_statistics().durable_sequence);
    formatter->close_section();
    return 0;
  }
  formatter->open_object_section("swimstore");
  formatter->dump_string("swimstore_version", vtkv::program_version());
  const std::string refusal = vtkv::ring_refusal();
  formatter->dump_string("io", refusal.empty() ? "io_uring" : vtkv::to_utf8(refusal));
  formatter->open_object_section("database");
  dump_database(m_store.cubes.set().database_statistics(), formatter);
  formatter->close_section();
  formatter->open_object_section("containers");
  dump_containers(m_store.cubes.set().container_statistics(), m_store.cubes.set().quarantined(), formatter);
  formatter->close_section();
  formatter->open_object_section("fragmentation");
  dump_fragmentation(m_store.cubes.set().free_pieces(), m_store.cubes.set().database_statistics(), formatter);
  formatter->close_section();
  formatter->open_object_section("caches");
  dump_caches(m_store, formatter);
  formatter->close_section();
  formatter->open_object_section("throttle");
  dump_throttle(m_throttle, formatter);
  formatter->close_section();
  dump_move(m_mover.report(), formatter);
  formatter->open_array_section("cubes");
  Homes homes = find_homes();
  for (const auto& cube : m_store.cubes) {
    dump_cube(*cube, homes[cube->number], formatter);
  }
  for (const auto& [cube, why] : m_store.cubes.set().missing()) {
    formatter->open_object_section("cube");
    formatter->dump_unsigned("cube", cube);
    formatter->dump_string("abandoned", vtkv::to_utf8(why));
    formatter->close_section();
  }
  formatter->close_section();
  formatter->close_section();
  return 0;
}

}  // namespace swimstore
