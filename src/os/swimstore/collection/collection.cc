// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/collection.h"

#include <algorithm>
#include <bit>

#include "osd/osd_types.h"

#include "swimstore/format/key_codec.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

Collection::Collection(CephContext* cct, const coll_t& cid, OpSequencerRef sequencer)
    : CollectionImpl(cct, cid), sequencer(std::move(sequencer)), m_is_pg(cid.is_pg(&m_pgid)) {}

bool Collection::contains(const ghobject_t& oid) const { return !m_is_pg || oid.match(record.bits, m_pgid.ps()); }

void Collection::give_up_copy(const char* why) {
  if (m_changes) {
    m_changes->given_up = why;
    m_changes.reset();
  }
}

void Collection::note_change(const ghobject_t& oid) {
  if (m_changes && !vtkv::mutated(vtkv::Mutation::changes_not_copied)) {
    m_changes->hashes.insert(oid.hobj.get_hash());
  }
}

bool Collection::is_of_pool_of(const ghobject_t& oid) const {
  if (!m_is_pg) {
    return oid.hobj.pool == -1;
  }
  const auto pool = static_cast<int64_t>(m_pgid.pool());
  return oid.shard_id == m_pgid.shard && (oid.hobj.pool == pool || oid.hobj.pool == -2 - pool);
}

vtkv::Status CollectionTable::load(vtkv::DB& database, unsigned cube, unsigned cubes,
                                   std::vector<OutdatedRecord>* outdated) {
  const auto iterator =
      database.new_iterator(std::string(1, key_prefix::collection), std::string(1, key_prefix::collection + 1));
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    coll_t cid;
    CollectionRecord record;
    if (!decode_collection_key(iterator->key(), &cid) || !decode_collection(iterator->value(), &record)) {
      return vtkv::Status::corruption("the record of collection '" + std::string(iterator->key().substr(1)) +
                                      "' cannot be decoded");
    }
    // Without a generation: of a store that had one cube, and got others just now.
    if (record.home() != cube || (cubes == 1 ? record.generation > 0 : record.generation == 0 && cube != 0)) {
      return vtkv::Status::corruption(
          "the record of collection '" + cid.to_str() + "' in cube " + std::to_string(cube) +
          " says that it lies in cube " + std::to_string(record.home()) + ", generation " +
          std::to_string(record.generation) + ", of a store with " + std::to_string(cubes) + " cubes");
    }
    m_generation = std::max(m_generation.load(), record.generation);
    VTKV_RETURN_IF_ERROR(add(cid, std::move(record), outdated));
  }
  return iterator->status();
}

vtkv::Status CollectionTable::add(const coll_t& cid, CollectionRecord record, std::vector<OutdatedRecord>* outdated) {
  const CollectionRef known = find(cid);
  const CollectionRef collection = known ? known : prepare(cid);
  {
    ExclusiveLock lock(collection->lock);
    if (known && record.generation == collection->record.generation) {
      return vtkv::Status::corruption("cubes " + std::to_string(collection->record.home()) + " and " +
                                      std::to_string(record.home()) + " both have a record of collection '" +
                                      cid.to_str() + "', of generation " + std::to_string(record.generation));
    }
    if (known && record.generation < collection->record.generation) {
      outdated->push_back({cid, record.home(), record.bits});
      return {};
    }
    if (known) {
      outdated->push_back({cid, collection->record.home(), collection->record.bits});
    }
    collection->record = std::move(record);
    collection->exists = true;
  }
  publish(collection);
  return {};
}

uint64_t CollectionTable::new_generation(const std::function<uint64_t()>& new_id) {
  for (;;) {
    const uint64_t id = new_id();
    for (uint64_t before = m_generation; before < id;) {
      if (m_generation.compare_exchange_weak(before, id)) {
        return id;
      }
    }
  }
}

CollectionTable::~CollectionTable() {
  for (const auto& [cid, collection] : m_collections) {
    collection->is_published = false;
  }
}

CollectionRef CollectionTable::find(const coll_t& cid) const {
  SharedLock lock(m_mutex);
  const auto found = m_collections.find(cid);
  return found == m_collections.end() ? CollectionRef() : found->second;
}

CollectionRef CollectionTable::find_owner(const ghobject_t& oid) const {
  for (const CollectionRef& collection : all()) {
    if (collection->is_of_pool_of(oid)) {
      SharedLock lock(collection->lock);
      if (collection->exists && collection->contains(oid)) {
        return collection;
      }
    }
  }
  return {};
}

CollectionRef CollectionTable::prepare(const coll_t& cid) {
  ExclusiveLock lock(m_mutex);
  auto collection = ceph::make_ref<Collection>(m_cct, cid, sequencer_of(cid));
  m_prepared[cid] = collection;
  m_has_prepared = true;
  return collection;
}

std::vector<coll_t> CollectionTable::list() const {
  SharedLock lock(m_mutex);
  std::vector<coll_t> cids;
  cids.reserve(m_collections.size());
  for (const auto& [cid, collection] : m_collections) {
    cids.push_back(cid);
  }
  return cids;
}

std::vector<CollectionRef> CollectionTable::all() const {
  SharedLock lock(m_mutex);
  std::vector<CollectionRef> collections;
  collections.reserve(m_collections.size());
  for (const auto& [cid, collection] : m_collections) {
    collections.push_back(collection);
  }
  return collections;
}

void CollectionTable::set_commit_queue(const coll_t& cid, ContextQueue* queue) {
  SharedLock lock(m_mutex);
  if (const auto found = m_collections.find(cid); found != m_collections.end()) {
    found->second->commit_queue = queue;
  } else if (const auto prepared = m_prepared.find(cid); prepared != m_prepared.end()) {
    prepared->second->commit_queue = queue;
  }
}

CollectionRef CollectionTable::find_prepared(const coll_t& cid) const {
  SharedLock lock(m_mutex);
  const auto found = m_prepared.find(cid);
  return found == m_prepared.end() ? CollectionRef() : found->second;
}

void CollectionTable::publish(const CollectionRef& collection) {
  ExclusiveLock lock(m_mutex);
  m_prepared.erase(collection->cid);
  m_has_prepared = !m_prepared.empty();
  CollectionRef& found = m_collections[collection->cid];
  if (found) {
    found->is_published = false;
  }
  found = collection;
  found->is_published = true;
}

void CollectionTable::withdraw(const coll_t& cid) {
  ExclusiveLock lock(m_mutex);
  if (const auto found = m_collections.find(cid); found != m_collections.end()) {
    found->second->is_published = false;
    m_collections.erase(found);
  }
}

OpSequencerRef CollectionTable::sequencer_of(const coll_t& cid) {
  std::weak_ptr<OpSequencer>& known = m_sequencers[cid];
  OpSequencerRef sequencer = known.lock();
  if (!sequencer) {
    sequencer = std::make_shared<OpSequencer>(m_env);
    known = sequencer;
  }
  return sequencer;
}

void UnownedCopies::add(unsigned cube, const coll_t& cid, uint32_t bits) {
  Range range{.cube = cube, .group = {}, .bits = bits};
  if (cid.is_pg(&range.group)) {
    vtkv::MutexLock lock(m_mutex);
    m_ranges.push_back(range);
    m_any = true;
  }
}

void UnownedCopies::remove(unsigned cube, const coll_t& cid) {
  spg_t group;
  if (cid.is_pg(&group)) {
    vtkv::MutexLock lock(m_mutex);
    std::erase_if(m_ranges, [&](const Range& range) { return range.cube == cube && range.group == group; });
    m_any = !m_ranges.empty();
  }
}

// A group's number has no more bits than the group: so many are sure.
bool UnownedCopies::could_meet(unsigned cube, const coll_t& cid) const {
  spg_t group;
  return cid.is_pg(&group) && meet(cube, cid, std::bit_width(group.ps()));
}

// Two groups are apart if their numbers differ in the bits that both have.
bool UnownedCopies::meet(unsigned cube, const coll_t& cid, uint32_t bits) const {
  spg_t group;
  if (!m_any || !cid.is_pg(&group)) {
    return false;
  }
  vtkv::MutexLock lock(m_mutex);
  return std::any_of(m_ranges.begin(), m_ranges.end(), [&](const Range& range) {
    const uint32_t common = std::min(range.bits, bits);
    const auto mask = static_cast<uint32_t>((uint64_t{1} << common) - 1);
    return range.cube == cube && range.group.pool() == group.pool() && range.group.shard == group.shard &&
           (range.group.ps() & mask) == (group.ps() & mask);
  });
}

}  // namespace swimstore
