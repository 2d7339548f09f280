// SPDX-License-Identifier: LGPL-2.1-or-later
// What cannot be read ends the process.
//
// Ceph's users of a KeyValueDB take an iterator that is no longer valid for the end of the keys, and any error of a
// lookup for "there is no such key"; they rely on a store that aborts instead. A monitor that goes on without half of
// its keys does harm to the whole cluster; one that ends leaves it to its peers.
//
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "include/common_fwd.h"
#include "vtkv/status.h"

namespace vtkv {

class FatalReads {
 public:
  FatalReads(CephContext* context, std::string directory) : cct(context), m_directory(std::move(directory)) {}
  // Says what could not be read, where that lies and what to do. `what`: as in "cannot read ...".
  [[noreturn]] void end(std::string_view what, const Status& status) const;

 private:
  CephContext* const cct;  // Ceph's logging macros want the name
  const std::string m_directory;
};

}  // namespace vtkv
