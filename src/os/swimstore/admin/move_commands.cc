// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/admin/move_commands.h"

#include <limits>

#include <fmt/format.h>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/cmdparse.h"
#include "swimstore/admin/admin_commands.h"
#include "swimstore/format/collection_name.h"

namespace swimstore {

using vtkv::Status;

MoveCommands::MoveCommands(CephContext* cct, OnlineMover& mover) : m_cct(cct), m_mover(mover) {
  AdminSocket* const socket = cct->get_admin_socket();
  socket->register_command("swimstore move name=collection,type=CephString name=cube,type=CephInt", this,
                           "move a placement group to another cube in the background");
  socket->register_command("swimstore move stop", this, "end the move or balance early");
  socket->register_command("swimstore balance name=dry_run,type=CephBool,req=false", this,
                           "move placement groups in the background, so that the cubes hold about as much each; "
                           "dry_run: only plan");
}

MoveCommands::~MoveCommands() { m_cct->get_admin_socket()->unregister_commands(this); }

Status MoveCommands::carry_out(std::string_view command, const cmdmap_t& arguments) {
  if (command == "swimstore move stop") {
    m_mover.cancel();
    return {};
  }
  if (command == "swimstore balance") {
    bool only_plan = false;
    ceph::common::cmd_getval(arguments, "dry_run", only_plan);
    return m_mover.balance(only_plan);
  }
  std::string name;
  int64_t cube = 0;
  ceph::common::cmd_getval(arguments, "collection", name);
  ceph::common::cmd_getval(arguments, "cube", cube);
  coll_t cid;
  if (!decode_collection_name(name, &cid) && !decode_collection_name(name + "_head", &cid)) {
    return Status::invalid_argument(fmt::format("'{}' is no name of a collection", name));
  }
  return cube < 0 || cube > std::numeric_limits<int32_t>::max()
             ? Status::invalid_argument(fmt::format("there is no cube {}", cube))
             : m_mover.move(cid, static_cast<unsigned>(cube));
}

int MoveCommands::call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist&,
                       ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) {
  const Status status = carry_out(command, arguments);
  if (!status.ok()) {
    const int error = status.error_number() != 0 ? status.error_number() : EINVAL;
    return fail_command(-error, std::string(status.message()), formatter, errors, output);
  }
  dump_move(m_mover.report(), formatter);
  return 0;
}

}  // namespace swimstore
