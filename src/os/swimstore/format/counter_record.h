// SPDX-License-Identifier: LGPL-2.1-or-later
// Counters of a cube, as of a checkpoint. Entries of the tree.
// doc/on_disk_format.md, "N: object ids", "N: counters of a pool", "Key of a pool's counters".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "swimstore/format/note_record.h"
#include "vtkv/status.h"

namespace swimstore {

inline constexpr char kCounterKeyPrefix = 'N';

struct Counters {
  uint64_t next_object_id = 1;
  std::map<int64_t, PoolUsage> pools;

  static std::string next_object_id_key();
  std::string next_object_id_value() const;
  static std::string pool_key(int64_t pool);
  static std::string pool_value(const PoolUsage& usage);
  // Takes over what one entry says. Code::corruption, Code::unsupported.
  vtkv::Status load(std::string_view key, std::string_view value);
};

}  // namespace swimstore
