// SPDX-License-Identifier: LGPL-2.1-or-later
// The swimstore_* options as one checked value, read once per mkfs or mount.
#pragma once

#include <cstdint>
#include <string>

#include "include/common_fwd.h"
#include "swimstore/cube/cube.h"
#include "vtkv/env.h"
#include "vtkv/status.h"

namespace swimstore {

enum class FlushMode { automatic, single, per_file };

struct Settings {
  vtkv::Geometry geometry;     // of a store to be made
  uint64_t chunk_bytes = 0;    // likewise
  unsigned cubes = 1;          // likewise: that placement groups are spread over
  std::string metadata_path;   // likewise: where log and tree shall lie; empty: in the store's directory
  FlushMode flush_mode = FlushMode::automatic;
  uint64_t memtable_bytes = 0;
  bool compress_metadata = false;
  unsigned io_depth = 0;
  unsigned callback_threads = 0;
  uint64_t prime_slot_bytes_max = 0;
  uint64_t primed_ahead_bytes = 0;
  uint64_t reserve_bytes = 0;
  bool allow_unproven_file_system = false;

  // Code::invalid_argument names the option, its value and what would be accepted; or the new name of one that is set
  // by an old one.
  static vtkv::Status read(CephContext* cct, Settings* settings);
  vtkv::Status validate() const;

  // Code::invalid_argument when a single flush was demanded where it is not proven.
  vtkv::Status choose_single_flush(const vtkv::FileSystemInfo& host, bool* single_flush) const;
  CubeOptions cube_options(bool single_flush) const;
};

}  // namespace swimstore
