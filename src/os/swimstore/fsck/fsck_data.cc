// SPDX-License-Identifier: LGPL-2.1-or-later
// What a deep check adds: all data, and every block of log and tree.

#include <algorithm>

#include <fmt/format.h>

#include "include/rados.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/fsck/fsck.h"

namespace swimstore {

namespace {

constexpr uint64_t kDeepReadBytes = 1u << 20;

}  // namespace

void Fsck::check_data(uint64_t work) {
  for (uint64_t done = 0; done < work;) {
    if (m_next_object == m_objects.end()) {
      next_phase();
      return;
    }
    const Object& object = m_next_object->second;
    const bool reads = object.size > 0 && !m_newer_extents.contains(m_next_object->first);
    const uint64_t blocks = std::min(kDeepReadBytes, object.size - std::min(object.size, m_next_offset)) / kBlockBytes;
    const uint64_t units = reads ? std::max(kReadBlocks, blocks) : 1;
    done += units;
    m_work_done += units;
    if (reads && read_slice(object, m_next_offset)) {
      m_next_offset += kDeepReadBytes;
    } else {
      m_next_offset = 0;
      ++m_next_object;
      ++m_objects_read;
    }
  }
}

bool Fsck::read_slice(const Object& object, uint64_t offset) {
  ghobject_t oid;
  if (object.size == 0 || !decode_object_key(object.key, &oid)) {
    return false;
  }
  if (!m_options.online) {
    return read_slice_of(oid, object, offset);
  }
  while (const CollectionRef collection = m_store.collections.find_owner(oid)) {
    SharedLock lock(collection->lock);
    if (collection->exists && collection->contains(oid)) {
      return collection->record.home() == m_cube.number && read_slice_of(oid, object, offset);
    }
    // A split or a merge came before the lock.
  }
  return false;  // it went with its collection
}

bool Fsck::read_slice_of(const ghobject_t& oid, const Object& object, uint64_t offset) {
  const std::string name = describe_object_key(object.key);
  OnodeRef onode;
  if (const vtkv::Status status = m_cube.onodes.find(oid, &onode, OnodeCache::Use::once); !status.ok()) {
    found({.kind = FindingClass::metadata_unreadable,
           .object = name,
           .text = fmt::format("object {} cannot be read: {}", name, status.to_string())});
    return false;
  }
  const uint64_t size = onode->exists ? onode->record.size : 0;
  if (offset >= size) {
    return false;  // removed or cut meanwhile
  }
  const uint64_t bytes = std::min(kDeepReadBytes, size - offset);
  // By itself: a read that cannot load them ends the OSD.
  const auto first = static_cast<uint32_t>(block_of(offset) / kShardBlocks);
  const auto last = static_cast<uint32_t>(block_of(offset + bytes - 1) / kShardBlocks);
  const vtkv::Status loaded = m_cube.onodes.load_extents(*onode, first, last);
  if (!loaded.ok()) {
    found({.kind = FindingClass::metadata_unreadable,
           .object = name,
           .text = fmt::format("the extents of object {} cannot be read: {}", name, loaded.to_string())});
    return false;
  }
  ceph::bufferlist data;
  constexpr uint32_t kFromDisk = CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE | CEPH_OSD_OP_FLAG_FADVISE_DONTNEED;
  if (BlockReader(m_store, m_cube).read(*onode, offset, bytes, kFromDisk, &data) < 0) {
    found({.kind = FindingClass::data_unreadable,
           .object = name,
           .offset = offset,
           .text = fmt::format("object {}: bytes {} to {} cannot be read", name, offset, offset + bytes)});
  }
  return offset + bytes < size;
}

void Fsck::check_database() {
  std::vector<std::string> findings;
  m_cube.database().verify(&findings);
  for (std::string& finding : findings) {
    found(FindingClass::database_damaged, std::move(finding));
  }
}

}  // namespace swimstore
