// What was done without when a database was opened to be salvaged (salvage.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vtkv/tree/tree.h"

namespace vtkv {

// A part of a run that cannot be read.
struct LostKeys {
  // entries: from first_key to last_key, and the run's filter knows them. removals: of ranges, wherever these lie. run:
  // all of it.
  enum class Kind { entries, removals, run };

  Kind kind = Kind::entries;
  uint64_t run_id = 0;
  std::string first_key, last_key;
  uint64_t entries = 0;
  std::string reason;
};

// The manifest has two.
enum class CheckpointSlot { newest, older };

struct Salvaged {
  CheckpointSlot slot = CheckpointSlot::newest;  // to begin with
  std::vector<std::string> notes;                // a sentence each, of what is no LostKeys
  std::vector<LostKeys> lost;
};

// As Tree::open, without what cannot be read, and to be read only. Code::not_found: there is no older slot.
Status salvage_tree(Env* env, const std::string& directory, const Options& options, Salvaged* salvaged,
                    std::unique_ptr<Tree>* tree);

}  // namespace vtkv
