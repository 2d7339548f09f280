// SPDX-License-Identifier: LGPL-2.1-or-later
// What a store should hold, kept in memory the simplest way: the oracle of the store's tests.
//
// Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/hobject.h"
#include "os/ObjectStore.h"

namespace swimstore {

struct ModelObject {
  std::string data;
  std::map<std::string, std::string> attrs;
  std::map<std::string, std::string> omap;
  std::string omap_header;
  bool operator==(const ModelObject&) const = default;
};

using ModelCollection = std::map<ghobject_t, ModelObject>;
using ModelState = std::map<coll_t, ModelCollection>;

// Where they differ, as one sentence; empty when equal.
std::string difference(const ModelCollection& expected, const ModelCollection& found);
std::string difference(const ModelState& expected, const ModelState& found);

// Everything a store says of one collection, or of all, up to the first that cannot be read. A call that fails becomes
// *error, one sentence.
ModelCollection read_collection(ObjectStore& store, ObjectStore::CollectionHandle& collection, std::string* error);
ModelState read_store(ObjectStore& store, std::string* error);

}  // namespace swimstore
