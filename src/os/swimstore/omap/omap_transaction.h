// SPDX-License-Identifier: LGPL-2.1-or-later
// What a transaction that is being planned lends those who write omaps for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "swimstore/object/store_context.h"

namespace swimstore {

struct OmapTransaction {
  StoreContext& store;
  StoreCube& home;  // that it commits in
  vtkv::WriteBatch& batch;
  std::vector<std::string>& removed_rows;   // for PartsInDoubt
  std::function<uint64_t()> new_object_id;  // one that becomes durable with the transaction
};

}  // namespace swimstore
