// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/omap/omap_reader.h"

#include "common/ceph_time.h"
#include "include/scope_guard.h"

namespace swimstore {

namespace {

// Counts the time of a scope as that of a lookup.
auto measure(StoreContext& store, const ghobject_t& oid) {
  return make_scope_guard([&store, &oid, start = ceph::mono_clock::now()] {
    store.took(l_swimstore_omap_latency, "omap lookup", ceph::mono_clock::now() - start, oid);
  });
}

ceph::bufferlist to_bufferlist(std::string_view bytes) {
  ceph::bufferlist out;
  out.append(bytes.data(), bytes.size());
  return out;
}

}  // namespace

int OmapReader::find(Collection& collection, const ghobject_t& oid, OnodeRef* onode) {
  if (!collection.exists) {
    return -ENOENT;
  }
  return m_objects.find(collection, oid, onode);
}

int OmapReader::failed(const ObjectOmap& omap, const Onode& onode, const vtkv::Status& status) const {
  return m_store.metadata_failure.met(omap.cube(), status, "the omap of object ", onode.oid);
}

int OmapReader::header_of(ObjectOmap omap, const Onode& onode, ceph::bufferlist* header) {
  header->clear();
  if (!onode.has_omap()) {
    return 0;
  }
  std::string value;
  const vtkv::Status status = omap.get_header(&value);
  if (status.is_not_found()) {
    return 0;
  }
  if (!status.ok()) {
    return failed(omap, onode, status);
  }
  *header = to_bufferlist(value);
  return 0;
}

template <typename Visit>
int OmapReader::for_each(ObjectOmap omap, const Onode& onode, const Visit& visit) {
  if (!onode.has_omap()) {
    return 0;
  }
  const auto it = omap.new_cursor();
  for (it->seek(""); it->valid(); it->next()) {
    visit(it->key(), it->value());
  }
  return it->status().ok() ? 0 : failed(omap, onode, it->status());
}

template <typename Visit>
int OmapReader::look_up(ObjectOmap omap, const Onode& onode, const std::set<std::string>& keys, const Visit& visit) {
  if (!onode.has_omap()) {
    return 0;
  }
  std::string value;
  for (const std::string& key : keys) {
    const vtkv::Status status = omap.get(key, &value);
    if (status.ok()) {
      visit(key, value);
    } else if (!status.is_not_found()) {
      return failed(omap, onode, status);
    }
  }
  return 0;
}

int OmapReader::get(Collection& collection, const ghobject_t& oid, ceph::bufferlist* header, Values* values) {
  const auto timer = measure(m_store, oid);
  SharedLock lock(collection.lock);
  OnodeRef onode;
  if (const int r = find(collection, oid, &onode); r < 0) {
    return r;
  }
  if (const int r = header_of(omap_of(collection, *onode), *onode, header); r < 0) {
    return r;
  }
  return for_each(omap_of(collection, *onode), *onode, [values](std::string_view key, std::string_view value) {
    values->emplace_hint(values->end(), key, to_bufferlist(value));
  });
}

int OmapReader::get_header(Collection& collection, const ghobject_t& oid, ceph::bufferlist* header) {
  const auto timer = measure(m_store, oid);
  SharedLock lock(collection.lock);
  OnodeRef onode;
  if (const int r = find(collection, oid, &onode); r < 0) {
    return r;
  }
  return header_of(omap_of(collection, *onode), *onode, header);
}

int OmapReader::get_keys(Collection& collection, const ghobject_t& oid, std::set<std::string>* keys) {
  const auto timer = measure(m_store, oid);
  SharedLock lock(collection.lock);
  OnodeRef onode;
  if (const int r = find(collection, oid, &onode); r < 0) {
    return r;
  }
  return for_each(omap_of(collection, *onode), *onode,
                  [keys](std::string_view key, std::string_view) { keys->emplace_hint(keys->end(), key); });
}

int OmapReader::get_values(Collection& collection, const ghobject_t& oid, const std::set<std::string>& keys,
                           Values* values) {
  const auto timer = measure(m_store, oid);
  SharedLock lock(collection.lock);
  OnodeRef onode;
  if (const int r = find(collection, oid, &onode); r < 0) {
    return r;
  }
  return look_up(omap_of(collection, *onode), *onode, keys,
                 [values](const std::string& key, const std::string& value) { (*values)[key] = to_bufferlist(value); });
}

int OmapReader::check_keys(Collection& collection, const ghobject_t& oid, const std::set<std::string>& keys,
                           std::set<std::string>* found) {
  const auto timer = measure(m_store, oid);
  SharedLock lock(collection.lock);
  OnodeRef onode;
  if (const int r = find(collection, oid, &onode); r < 0) {
    return r;
  }
  return look_up(omap_of(collection, *onode), *onode, keys,
                 [found](const std::string& key, const std::string&) { found->insert(key); });
}

int OmapReader::iterator(Collection& collection, const ghobject_t& oid, std::unique_ptr<OmapIterator>* iterator) {
  SharedLock lock(collection.lock);
  OnodeRef onode;
  if (const int r = find(collection, oid, &onode); r < 0) {
    return r;
  }
  ObjectOmap omap = omap_of(collection, *onode);
  *iterator =
      std::make_unique<OmapIterator>(m_store, oid, omap.cube(), onode->has_omap() ? omap.new_cursor() : nullptr);
  return 0;
}

}  // namespace swimstore
