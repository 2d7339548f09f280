// SPDX-License-Identifier: LGPL-2.1-or-later
// `ceph daemon osd.N swimstore move` and `… balance`: placement groups go to other cubes while the OSD serves.
//
//   swimstore move COLLECTION CUBE   begins to move one
//   swimstore move stop              ends what is under way
//   swimstore balance [--dry-run]    measures all, plans, and unless it is dry, moves
//
// How far it is, and what was planned, `swimstore status` says. Thread-safe.
#pragma once

#include "common/admin_socket.h"
#include "include/common_fwd.h"

#include "swimstore/move/online_mover.h"

namespace swimstore {

class MoveCommands final : public AdminSocketHook {
 public:
  MoveCommands(CephContext* cct, OnlineMover& mover);
  ~MoveCommands() override;

  int call(std::string_view command, const cmdmap_t& arguments, const ceph::bufferlist& input,
           ceph::Formatter* formatter, std::ostream& errors, ceph::bufferlist& output) override;

 private:
  vtkv::Status carry_out(std::string_view command, const cmdmap_t& arguments);

  CephContext* const m_cct;
  OnlineMover& m_mover;
};

}  // namespace swimstore
