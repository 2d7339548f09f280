// SPDX-License-Identifier: LGPL-2.1-or-later
// What was done without when a database was opened to be salvaged (salvage.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vtkv {

// What cannot be read of a run.
struct LostKeys {
  // entries: from first_key to last_key, and the run's filter knows them. tombstones: of ranges, wherever these lie.
  // run: all of it.
  enum class Kind { entries, tombstones, run };

  Kind kind = Kind::entries;
  uint64_t run_id = 0;
  std::string first_key, last_key;
  uint64_t entries = 0;
  std::string reason;
};

// The manifest has two.
enum class CheckpointCopy { newest, older };

struct Salvaged {
  CheckpointCopy copy = CheckpointCopy::newest;  // to begin with
  std::vector<std::string> notes;                // a sentence each, of what is no LostKeys
  std::vector<LostKeys> lost;
};

}  // namespace vtkv
