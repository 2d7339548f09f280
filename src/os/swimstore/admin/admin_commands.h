// SPDX-License-Identifier: LGPL-2.1-or-later
// `ceph daemon osd.N swimstore ...`: commands of the store's own on the admin socket.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "common/admin_socket.h"
#include "include/common_fwd.h"

#include "swimstore/move/online_mover.h"
#include "swimstore/object/store_context.h"
#include "swimstore/transaction/commit_throttle.h"

namespace swimstore {

// Registered as long as it lives. A second store of the same process gets none: the first keeps its own.
class AdminCommands final : public AdminSocketHook {
 public:
  AdminCommands(StoreContext& store, const CommitThrottle& throttle, const OnlineMover& mover);
  ~AdminCommands() override;

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

 private:
  using Homes = std::map<unsigned, std::vector<coll_t>>;  // by cube
  Homes find_homes() const;
  static void dump_cube(StoreCube& cube, const std::vector<coll_t>& collections, ceph::Formatter* formatter);

  StoreContext& m_store;
  const CommitThrottle& m_throttle;
  const OnlineMover& m_mover;
};

// What a command returns that cannot be carried out: the error, as it is. The reason goes to the caller in words, and
// as an object with one member, "error", where Ceph would send nothing.
int fail_command(int error, const std::string& reason, ceph::Formatter* formatter, std::ostream& errors,
                 ceph::bufferlist& output);

void dump_database(const vtkv::DBStatistics& statistics, ceph::Formatter* formatter);
void dump_containers(const ContainerStatistics& statistics, const std::vector<SlotAddress>& quarantined,
                     ceph::Formatter* formatter);
// Of the free space of containers, and of the zones of the tree: what of those in use nothing live fills.
void dump_fragmentation(const FreePieces& pieces, const vtkv::DBStatistics& database, ceph::Formatter* formatter);
void dump_caches(StoreContext& store, ceph::Formatter* formatter);
void dump_move(const OnlineMover::Report& report, ceph::Formatter* formatter);
void dump_throttle(const CommitThrottle& throttle, ceph::Formatter* formatter);

}  // namespace swimstore
