// SPDX-License-Identifier: LGPL-2.1-or-later
// What a read needs, pinned together: the memtables, newest first, and the tree's runs below them.
#pragma once

#include <memory>
#include <vector>

#include "vtkv/mem/memtable.h"
#include "vtkv/tree/tree.h"

namespace vtkv {

struct ReadState {
  std::vector<std::shared_ptr<MemTable>> memtables;  // newest first; the first one is written to
  std::shared_ptr<const Version> version;
  // Shared by the states that readers may have taken before a certain moment: see ReadStates.
  std::shared_ptr<const int> reader_epoch = std::make_shared<const int>(0);
};

}  // namespace vtkv
