// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/model_store.h"

#include <sstream>

#include <fmt/format.h>

namespace swimstore {

namespace {

std::string name_of(const ghobject_t& oid) {
  std::ostringstream text;
  text << oid;
  return text.str();
}

std::string object_difference(const ModelObject& expected, const ModelObject& found) {
  if (expected.data.size() != found.data.size()) {
    return fmt::format("has {} bytes instead of {}", found.data.size(), expected.data.size());
  }
  for (size_t i = 0; i < expected.data.size(); ++i) {
    if (expected.data[i] != found.data[i]) {
      return fmt::format("differs at byte {}", i);
    }
  }
  if (expected.attrs != found.attrs) {
    return "has other attributes";
  }
  if (expected.omap != found.omap) {
    return fmt::format("has {} omap keys, other than the {} expected", found.omap.size(), expected.omap.size());
  }
  return expected.omap_header != found.omap_header ? "has another omap header" : "";
}

int read_object(ObjectStore& store, ObjectStore::CollectionHandle& collection, const ghobject_t& oid,
                ModelObject* object) {
  ceph::bufferlist data;
  if (const int r = store.read(collection, oid, 0, 0, data); r < 0) {
    return r;
  }
  object->data = data.to_str();
  std::map<std::string, ceph::bufferptr, std::less<>> attrs;
  if (const int r = store.getattrs(collection, oid, attrs); r < 0) {
    return r;
  }
  for (const auto& [name, value] : attrs) {
    object->attrs[name] = std::string(value.c_str(), value.length());
  }
  ceph::bufferlist header;
  std::map<std::string, ceph::bufferlist> values;
  if (const int r = store.omap_get(collection, oid, &header, &values); r < 0) {
    return r;
  }
  object->omap_header = header.to_str();
  for (const auto& [key, value] : values) {
    object->omap[key] = value.to_str();
  }
  return 0;
}

}  // namespace

std::string difference(const ModelCollection& expected, const ModelCollection& found) {
  for (const auto& [oid, object] : expected) {
    const auto at = found.find(oid);
    if (at == found.end()) {
      return name_of(oid) + " is missing";
    }
    if (const std::string what = object_difference(object, at->second); !what.empty()) {
      return name_of(oid) + " " + what;
    }
  }
  for (const auto& [oid, object] : found) {
    if (!expected.contains(oid)) {
      return name_of(oid) + " should not be there";
    }
  }
  return {};
}

std::string difference(const ModelState& expected, const ModelState& found) {
  if (expected.size() != found.size()) {
    return fmt::format("there are {} collections instead of {}", found.size(), expected.size());
  }
  for (const auto& [cid, objects] : expected) {
    const auto at = found.find(cid);
    const std::string what = at == found.end() ? "is missing" : difference(objects, at->second);
    if (!what.empty()) {
      return fmt::format("collection {}: {}", cid.to_str(), what);
    }
  }
  return {};
}

ModelCollection read_collection(ObjectStore& store, ObjectStore::CollectionHandle& collection, std::string* error) {
  ModelCollection found;
  std::vector<ghobject_t> oids;
  ghobject_t next;
  int r = store.collection_list(collection, ghobject_t(), ghobject_t::get_max(), INT_MAX, &oids, &next);
  if (r < 0) {
    *error = fmt::format("the listing failed: {}", r);
    return found;
  }
  for (const ghobject_t& oid : oids) {
    r = read_object(store, collection, oid, &found[oid]);
    if (r < 0) {
      *error = fmt::format("{} cannot be read: {}", name_of(oid), r);
    }
  }
  return found;
}

ModelState read_store(ObjectStore& store, std::string* error) {
  ModelState state;
  std::vector<coll_t> cids;
  if (const int r = store.list_collections(cids); r < 0) {
    *error = fmt::format("the collections cannot be listed: {}", r);
    return state;
  }
  for (const coll_t& cid : cids) {
    auto handle = store.open_collection(cid);
    state[cid] = read_collection(store, handle, error);
    if (!error->empty()) {
      return state;
    }
  }
  return state;
}

}  // namespace swimstore
