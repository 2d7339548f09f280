// SPDX-License-Identifier: LGPL-2.1-or-later
// Statuses of the peers as ours: LevelDB's and RocksDB's have the same shape.
#pragma once

#include <string>

#include "vtkv/status.h"

namespace vtkv::bench {

template <class PeerStatus>
Status translate(const char* engine, const PeerStatus& status) {
  if (status.ok()) {
    return {};
  }
  if (status.IsNotFound()) {
    return Status::not_found("no such key");
  }
  return Status::failed(std::string(engine) + ": " + status.ToString());
}

}  // namespace vtkv::bench
