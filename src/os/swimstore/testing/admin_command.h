// SPDX-License-Identifier: LGPL-2.1-or-later
// Commands of the admin socket, as `ceph daemon` sends them.
#pragma once

#include <sstream>
#include <string>

#include "common/admin_socket.h"
#include "common/ceph_context.h"
#include "global/global_context.h"

namespace swimstore {

// `members` of the JSON object that it is, as in R"("prefix": "swimstore status")". Its result; *printed: its output,
// and behind that what it says of an error.
inline int admin_command(const std::string& members, std::string* printed) {
  ceph::bufferlist in, out;
  std::ostringstream errors;
  const int r = g_ceph_context->get_admin_socket()->execute_command({"{" + members + "}"}, in, errors, &out);
  *printed = out.to_str() + errors.str();
  return r;
}

}  // namespace swimstore
