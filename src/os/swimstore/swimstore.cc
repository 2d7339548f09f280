// SPDX-License-Identifier: LGPL-2.1-or-later
// The forwarding calls: collections, transactions, objects, omap.

#include "swimstore/swimstore.h"

#include "common/debug.h"

#if SWIM_CEPH_HAS_OMAP_ITERATOR
#include "swimstore/ceph/object_map_iterator.h"
#endif
#include "swimstore/host/process_limits.h"
#include "swimstore/omap/omap_iterator.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/swimstore_mounted.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::Collection;
using swimstore::CollectionRef;

namespace {

Collection& collection_of(ObjectStore::CollectionHandle& c) { return *static_cast<Collection*>(c.get()); }

}  // namespace

SwimStore::SwimStore(CephContext* cct, const std::string& path, vtkv::Env* env)
    : ObjectStore(cct, path), m_env(env), m_counters(std::make_unique<swimstore::StoreCounters>(cct)) {
  swimstore::ignore_file_size_signal();
}

SwimStore::~SwimStore() {
  if (m_mounted) {
    close();
  }
}

ObjectStore::CollectionHandle SwimStore::open_collection(const coll_t& cid) {
  return m_mounted->context.collections.find(cid);
}

ObjectStore::CollectionHandle SwimStore::create_new_collection(const coll_t& cid) {
  return m_mounted->context.collections.prepare(cid);
}

void SwimStore::set_collection_commit_queue(const coll_t& cid, ContextQueue* commit_queue) {
  m_mounted->context.collections.set_commit_queue(cid, commit_queue);
}

// Also of one that a transaction is still to make: so an OSD tells them of a group that is new here.
int SwimStore::set_collection_opts(CollectionHandle& c, const pool_opts_t& opts) {
  const Collection& collection = collection_of(c);
  if (spg_t pgid; collection.cid.is_pg(&pgid)) {
    m_mounted->context.compression.set_pool(static_cast<int64_t>(pgid.pool()), opts);
    const std::string ignored = m_mounted->ignored_options.note(pgid.pool(), opts);
    if (!ignored.empty()) {
      derr << "pool " << pgid.pool() << " has options that this store does not obey: " << ignored << dendl;
    }
  }
  return 0;
}

int SwimStore::list_collections(std::vector<coll_t>& collections) {
  collections = m_mounted->context.collections.list();
  return 0;
}

bool SwimStore::collection_exists(const coll_t& cid) { return m_mounted->context.collections.find(cid) != nullptr; }

int SwimStore::collection_empty(CollectionHandle& c, bool* empty) {
  std::vector<ghobject_t> objects;
  const int r = m_mounted->lister.list(collection_of(c), ghobject_t(), ghobject_t::get_max(), 1, &objects, nullptr);
  if (r == 0) {
    *empty = objects.empty();
  }
  return r;
}

int SwimStore::collection_bits(CollectionHandle& c) {
  Collection& collection = collection_of(c);
  swimstore::SharedLock lock(collection.lock);
  return collection.record.bits;
}

int SwimStore::collection_list(CollectionHandle& c, const ghobject_t& start, const ghobject_t& end, int max,
                               std::vector<ghobject_t>* objects, ghobject_t* next) {
  return m_mounted->lister.list(collection_of(c), start, end, max, objects, next);
}

// For Ceph's own tests, before they kill the OSD: never applied, and nobody hears of it.
void SwimStore::throw_away(std::vector<Transaction>& transactions) {
  derr << "objectstore_blackhole is set: " << transactions.size() << " transactions are thrown away" << dendl;
  Context* on_apply = nullptr;
  Context* on_commit = nullptr;
  Context* on_apply_sync = nullptr;
  Transaction::collect_contexts(transactions, &on_apply, &on_commit, &on_apply_sync);
  for (Context* context : {on_apply, on_commit, on_apply_sync}) {
    delete context;
  }
}

int SwimStore::queue_transactions(CollectionHandle& c, std::vector<Transaction>& transactions, TrackedOpRef,
                                  ThreadPool::TPHandle* handle) {
  if (cct->_conf->objectstore_blackhole) {
    throw_away(transactions);
    return 0;
  }
  return m_mounted->pipeline.queue(CollectionRef(&collection_of(c)), transactions, handle);
}

bool SwimStore::exists(CollectionHandle& c, const ghobject_t& oid) {
  return m_mounted->objects.exists(collection_of(c), oid);
}

int SwimStore::stat(CollectionHandle& c, const ghobject_t& oid, struct stat* st, bool) {
  return m_mounted->objects.stat(collection_of(c), oid, st);
}

int SwimStore::read(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t length, ceph::bufferlist& out,
                    uint32_t op_flags) {
  return m_mounted->objects.read(collection_of(c), oid, offset, length, out, op_flags);
}

int SwimStore::readv(CollectionHandle& c, const ghobject_t& oid, interval_set<uint64_t>& intervals,
                     ceph::bufferlist& out, uint32_t op_flags) {
  return m_mounted->objects.readv(collection_of(c), oid, intervals, out, op_flags);
}

int SwimStore::fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t length,
                      ceph::bufferlist& out) {
  std::map<uint64_t, uint64_t> extents;
  const int r = fiemap(c, oid, offset, length, extents);
  if (r >= 0) {
    encode(extents, out);
  }
  return r;
}

int SwimStore::fiemap(CollectionHandle& c, const ghobject_t& oid, uint64_t offset, size_t length,
                      std::map<uint64_t, uint64_t>& extents) {
  return m_mounted->objects.fiemap(collection_of(c), oid, offset, length, &extents);
}

int SwimStore::getattr(CollectionHandle& c, const ghobject_t& oid, const char* name, ceph::bufferptr& value) {
  return m_mounted->objects.getattr(collection_of(c), oid, name, value);
}

int SwimStore::getattrs(CollectionHandle& c, const ghobject_t& oid,
                        std::map<std::string, ceph::bufferptr, std::less<>>& attrs) {
  return m_mounted->objects.getattrs(collection_of(c), oid, attrs);
}

int SwimStore::dump_onode(CollectionHandle& c, const ghobject_t& oid, const std::string& section,
                          ceph::Formatter* formatter) {
  return m_mounted->objects.dump_onode(collection_of(c), oid, section, formatter);
}

int SwimStore::omap_get(CollectionHandle& c, const ghobject_t& oid, ceph::bufferlist* header,
                        std::map<std::string, ceph::bufferlist>* values) {
  return m_mounted->omaps.get(collection_of(c), oid, header, values);
}

int SwimStore::omap_get_header(CollectionHandle& c, const ghobject_t& oid, ceph::bufferlist* header, bool) {
  return m_mounted->omaps.get_header(collection_of(c), oid, header);
}

int SwimStore::omap_get_keys(CollectionHandle& c, const ghobject_t& oid, std::set<std::string>* keys) {
  return m_mounted->omaps.get_keys(collection_of(c), oid, keys);
}

int SwimStore::omap_get_values(CollectionHandle& c, const ghobject_t& oid, const std::set<std::string>& keys,
                               std::map<std::string, ceph::bufferlist>* values) {
  return m_mounted->omaps.get_values(collection_of(c), oid, keys, values);
}

int SwimStore::omap_check_keys(CollectionHandle& c, const ghobject_t& oid, const std::set<std::string>& keys,
                               std::set<std::string>* found) {
  return m_mounted->omaps.check_keys(collection_of(c), oid, keys, found);
}

std::unique_ptr<swimstore::OmapIterator> SwimStore::omap_iterator(CollectionHandle& c, const ghobject_t& oid,
                                                                  int* error) {
  std::unique_ptr<swimstore::OmapIterator> iterator;
  const int r = m_mounted->omaps.iterator(collection_of(c), oid, &iterator);
  if (error != nullptr) {
    *error = r;
  }
  return iterator;
}

#if SWIM_CEPH_HAS_OMAP_ITERATOR
ObjectMap::ObjectMapIterator SwimStore::get_omap_iterator(CollectionHandle& c, const ghobject_t& oid) {
  auto iterator = omap_iterator(c, oid);
  return iterator ? std::make_shared<swimstore::ObjectMapIterator>(std::move(iterator)) : nullptr;
}
#endif

#if SWIM_CEPH_HAS_OMAP_ITERATE
int SwimStore::omap_iterate(CollectionHandle& c, const ghobject_t& oid, omap_iter_seek_t start_from,
                            std::function<omap_iter_ret_t(std::string_view, std::string_view)> visitor) {
  int r;
  const auto iterator = omap_iterator(c, oid, &r);
  if (!iterator) {
    return r;
  }
  r = start_from.seek_type == omap_iter_seek_t::UPPER_BOUND ? iterator->upper_bound(start_from.seek_position)
                                                            : iterator->lower_bound(start_from.seek_position);
  for (; r == 0 && iterator->valid(); r = iterator->next()) {
    if (visitor(iterator->key(), iterator->value()) == omap_iter_ret_t::STOP) {
      return 1;
    }
  }
  return r;
}
#endif
