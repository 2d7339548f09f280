// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/admin_commands.h"

#include "common/Formatter.h"
#include "common/ceph_context.h"
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

void dump_containers(const ContainerSet& containers, ceph::Formatter* formatter) {
  const ContainerStatistics statistics = containers.statistics();
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
  for (const SlotAddress& slot : containers.quarantined()) {
    formatter->open_object_section("slot");
    formatter->dump_unsigned("slot_bytes", slot_bytes(slot.size_class));
    formatter->dump_unsigned("slot_index", slot.index);
    formatter->close_section();
  }
  formatter->close_section();
}

void dump_caches(StoreContext& store, ceph::Formatter* formatter) {
  formatter->dump_unsigned("onodes", store.onodes.size());
  formatter->dump_unsigned("onode_bytes", store.onodes.memory_bytes());
  formatter->dump_unsigned("onode_capacity_bytes", store.onodes.capacity());
  formatter->dump_unsigned("onode_hits", store.onodes.hits());
  formatter->dump_unsigned("onode_misses", store.onodes.misses());
  formatter->dump_unsigned("data_bytes", store.data.memory_bytes());
  formatter->dump_unsigned("data_capacity_bytes", store.data.capacity());
  formatter->dump_unsigned("slots_in_flight", store.in_flight.size());
}

void dump_throttle(const CommitThrottle& throttle, ceph::Formatter* formatter) {
  formatter->dump_unsigned("limit_bytes", throttle.limit_bytes());
  formatter->dump_unsigned("taken_bytes", throttle.taken_bytes());
  formatter->dump_unsigned("waiting", throttle.waiting());
}

AdminCommands::AdminCommands(StoreContext& store, const CommitThrottle& throttle)
    : m_store(store), m_throttle(throttle) {
  AdminSocket* socket = store.cct->get_admin_socket();
  socket->register_command("swimstore status", this, "show version, log, tree, containers, caches and throttle");
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

int AdminCommands::call(std::string_view command, const cmdmap_t&, const ceph::bufferlist&, ceph::Formatter* formatter,
                        std::ostream& errors, ceph::bufferlist& output) {
  if (command == "swimstore flush") {
    const vtkv::Status status = m_store.cube.database().flush();
    if (!status.ok()) {
      return fail_command(-status.error_number(), status.to_string(), formatter, errors, output);
    }
    formatter->open_object_section("flush");
    formatter->dump_unsigned("durable_sequence", m_store.cube.database().statistics().durable_sequence);
    formatter->close_section();
    return 0;
  }
  formatter->open_object_section("swimstore");
  formatter->dump_string("swimstore_version", vtkv::program_version());
  formatter->open_object_section("database");
  dump_database(m_store.cube.database().statistics(), formatter);
  formatter->close_section();
  formatter->open_object_section("containers");
  dump_containers(m_store.cube.containers(), formatter);
  formatter->close_section();
  formatter->open_object_section("caches");
  dump_caches(m_store, formatter);
  formatter->close_section();
  formatter->open_object_section("throttle");
  dump_throttle(m_throttle, formatter);
  formatter->close_section();
  formatter->close_section();
  return 0;
}

}  // namespace swimstore
