// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/objects_by_hash.h"

#include <algorithm>
#include <utility>

#include "swimstore/format/key_codec.h"
#include "swimstore/object/collection_list.h"

namespace swimstore {

namespace {

constexpr size_t kListedObjects = 256;  // of a range, at once

}  // namespace

ObjectsByHash::ObjectsByHash(vtkv::DB& database, const coll_t& cid, uint32_t bits) : m_database(database) {
  for (const ObjectRange& range : object_ranges(cid, bits)) {
    m_lists.push_back({.next_key = object_key(range.begin), .end_key = object_key(range.end)});
  }
}

bool ObjectsByHash::next(ghobject_t* oid) {
  List* lowest = nullptr;
  for (List& list : m_lists) {
    if (m_status.ok() && list.oids.empty() && !list.is_read) {
      m_status = read(&list);
    }
    if (!list.oids.empty() && (lowest == nullptr || hash_of(list) < hash_of(*lowest))) {
      lowest = &list;
    }
  }
  if (!m_status.ok() || lowest == nullptr) {
    return false;
  }
  *oid = std::move(lowest->oids.back());
  lowest->oids.pop_back();
  return true;
}

vtkv::Status ObjectsByHash::read(List* list) {
  const auto iterator = m_database.new_iterator(list->next_key, list->end_key);
  for (iterator->seek_to_first(); iterator->valid() && list->oids.size() < kListedObjects; iterator->next()) {
    if (!decode_object_key(iterator->key(), &list->oids.emplace_back())) {
      return vtkv::Status::corruption("an object's key cannot be decoded");
    }
  }
  list->is_read = !iterator->valid();
  if (!list->is_read) {
    list->next_key = iterator->key();
  }
  std::reverse(list->oids.begin(), list->oids.end());
  return iterator->status();
}

}  // namespace swimstore
