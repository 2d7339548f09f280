#include "swimstore/fsck/fsck.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/debug.h"
#include "include/rados.h"
#include "swimstore/format/key_codec.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.fsck "

namespace swimstore {

namespace {

constexpr uint64_t kDeepReadBytes = 1u << 20;
constexpr size_t kFindingsMax = 1000;  // kept and printed; all are counted

std::string kind_begin(char prefix) { return std::string(1, prefix); }
std::string kind_end(char prefix) { return std::string(1, static_cast<char>(prefix + 1)); }

// A PG's temporary objects lie in pool -2-N and count for N.
int64_t pool_counted_for(const ghobject_t& oid) {
  const int64_t pool = oid.hobj.pool;
  return pool < -1 ? -2 - pool : pool;
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace

std::string describe_object_key(std::string_view key) {
  ghobject_t oid;
  if (!decode_object_key(key, &oid)) {
    return "with key " + to_hex(key);
  }
  std::ostringstream text;
  text << oid;
  return text.str();
}

void Fsck::found(std::string sentence) {
  if (++m_errors <= kFindingsMax) {
    derr << sentence << dendl;
    m_findings.push_back(std::move(sentence));
  }
}

template <typename Visit>
void Fsck::for_each(std::string_view lower, std::string_view upper, const char* what, const Visit& visit) {
  const auto it = m_store.cube.database().new_iterator(lower, upper);
  for (it->seek_to_first(); it->valid(); it->next()) {
    visit(it->key(), it->value());
  }
  if (!it->status().ok()) {
    found(fmt::format("{} cannot all be read: {}", what, it->status().to_string()));
  }
}

int Fsck::run() {
  const uint64_t began_us = m_store.env->now_us();
  check_collections();
  check_objects();
  check_extents();
  check_omap(key_prefix::omap_header);
  check_omap(key_prefix::omap);
  check_slots();
  check_usage();
  if (m_options.deep) {
    check_data();
    check_database();
  }
  dout(1) << (m_options.deep ? "deep, " : "") << m_objects.size() << " objects, " << m_slots.entries().size()
          << " slots, " << m_errors << " errors, " << (m_store.env->now_us() - began_us) / 1000 << " ms" << dendl;
  return static_cast<int>(std::min<size_t>(m_errors, INT_MAX));
}

void Fsck::check_collections() {
  for_each(kind_begin(key_prefix::collection), kind_end(key_prefix::collection), "collections",
           [this](std::string_view key, std::string_view value) {
             coll_t cid;
             CollectionRecord record;
             if (!decode_collection_key(key, &cid) || !decode_collection(value, &record)) {
               found(fmt::format("collection record {} is damaged", to_hex(key)));
               return;
             }
             for (ObjectRange& range : object_ranges(cid, record.bits)) {
               m_ranges.push_back(std::move(range));
             }
           });
  std::sort(m_ranges.begin(), m_ranges.end(),
            [](const ObjectRange& a, const ObjectRange& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < m_ranges.size(); ++i) {
    if (m_ranges[i].begin < m_ranges[i - 1].end) {
      std::ostringstream at;
      at << m_ranges[i].begin;
      found(fmt::format("two collections overlap at {}", at.str()));
    }
  }
}

bool Fsck::lies_in_a_collection(const ghobject_t& oid) const {
  const auto after = std::upper_bound(m_ranges.begin(), m_ranges.end(), oid,
                                      [](const ghobject_t& o, const ObjectRange& r) { return o < r.begin; });
  return after != m_ranges.begin() && oid < std::prev(after)->end;
}

void Fsck::check_objects() {
  for_each(kind_begin(key_prefix::object), kind_end(key_prefix::object), "objects",
           [this](std::string_view key, std::string_view value) { check_object(std::string(key), value); });
}

void Fsck::check_object(const std::string& key, std::string_view value) {
  ghobject_t oid;
  if (!decode_object_key(key, &oid) || object_key(oid) != key) {
    found(fmt::format("an object's key is damaged: {}", to_hex(key)));
    return;
  }
  OnodeRecord record;
  ExtentChunk chunk;
  if (!decode_onode(value, &record, &chunk)) {
    found(fmt::format("the record of object {} is damaged", describe_object_key(key)));
    return;
  }
  if (!lies_in_a_collection(oid)) {
    found(fmt::format("object {} lies in no collection", describe_object_key(key)));
  }
  const int64_t pool = pool_counted_for(oid);
  m_usage[pool].objects += 1;
  const auto [entry, unique] = m_objects.try_emplace(record.nid, Object{key, record.size, record.flags, pool});
  if (!unique) {
    found(fmt::format("objects {} and {} have the same id {}", describe_object_key(entry->second.key),
                      describe_object_key(key), record.nid));
    return;
  }
  if (record.test(OnodeRecord::chunk_inline)) {
    check_chunk(entry->second, 0, chunk);
  }
}

void Fsck::check_extents() {
  for_each(kind_begin(key_prefix::extent), kind_end(key_prefix::extent), "extents",
           [this](std::string_view key, std::string_view value) {
             uint64_t nid = 0;
             uint32_t number = 0;
             ExtentChunk chunk;
             if (!decode_extent_key(key, &nid, &number)) {
               found(fmt::format("the key of an extent chunk is damaged: {}", to_hex(key)));
               return;
             }
             const auto object = m_objects.find(nid);
             if (object == m_objects.end()) {
               found(fmt::format("extent chunk {} belongs to object id {}, which does not exist", number, nid));
             } else if (object->second.flags & OnodeRecord::chunk_inline) {
               found(fmt::format("object {} has extent chunk {} beside an inline one",
                                 describe_object_key(object->second.key), number));
             } else if (!decode_extent_chunk(value, &chunk)) {
               found(fmt::format("extent chunk {} of object {} is damaged", number,
                                 describe_object_key(object->second.key)));
             } else {
               check_chunk(object->second, number, chunk);
             }
           });
}

void Fsck::check_chunk(const Object& object, uint32_t number, const ExtentChunk& chunk) {
  for (const Extent& extent : chunk.extents) {
    const uint64_t end_block = uint64_t{number} * kChunkBlocks + extent.block + extent.count;
    if (end_block > blocks_for(object.size)) {
      found(fmt::format("object {} of {} bytes has data up to block {}", describe_object_key(object.key), object.size,
                        end_block));
    }
    PoolUsage& usage = m_usage[object.pool];
    usage.stored += int64_t{extent.count} * kBlockBytes;
    if (end_block * kBlockBytes > object.size) {
      usage.stored -= end_block * kBlockBytes - object.size;
    }
    if (const std::string conflict = m_slots.add(extent); !conflict.empty()) {
      found(fmt::format("object {}, chunk {}: {}", describe_object_key(object.key), number, conflict));
    }
    if (!m_store.cube.containers().is_owned(extent.slot)) {
      found(fmt::format("object {}, chunk {}: {} is not marked as owned", describe_object_key(object.key), number,
                        describe_slot(extent.slot)));
    }
  }
}

void Fsck::check_omap(char prefix) {
  const char* what = prefix == key_prefix::omap ? "omap keys" : "omap headers";
  uint64_t last_nid = UINT64_MAX;
  for_each(kind_begin(prefix), kind_end(prefix), what,
           [&, this](std::string_view key, std::string_view) {
             uint64_t nid = 0;
             std::string_view user_key;
             if (!(prefix == key_prefix::omap ? decode_omap_key(key, &nid, &user_key)
                                              : decode_omap_header_key(key, &nid))) {
               found(fmt::format("a key among the {} is damaged: {}", what, to_hex(key)));
               return;
             }
             if (nid == last_nid) {
               return;
             }
             last_nid = nid;
             const auto object = m_objects.find(nid);
             if (object == m_objects.end()) {
               found(fmt::format("there are {} of object id {}, which does not exist", what, nid));
             } else if (!(object->second.flags & OnodeRecord::has_omap)) {
               found(fmt::format("there are {} of object {}, which says it has none", what,
                                 describe_object_key(object->second.key)));
             }
           });
}

void Fsck::check_slots() {
  for_each(kind_begin(key_prefix::slot_reference), kind_end(key_prefix::slot_reference), "slot references",
           [this](std::string_view key, std::string_view value) {
             SlotAddress slot;
             uint32_t references = 0;
             if (!decode_slot_reference_key(key, &slot) || !decode_slot_references(value, &references)) {
               found(fmt::format("slot reference {} is damaged", to_hex(key)));
               return;
             }
             m_slots.add_count(slot, references);
           });
  std::array<uint64_t, kSizeClasses> used{};
  for (const auto& [packed, entry] : m_slots.entries()) {
    const SlotAddress slot = SlotAddress::unpack(packed);
    const uint64_t expected = entry.has_count ? entry.counted : entry.written_blocks;
    if (entry.references != expected) {
      found(fmt::format("{} has {} block references, {} says {}", describe_slot(slot), entry.references,
                        entry.has_count ? "its count" : "what was written to it", expected));
    }
    if (slot.size_class < kSizeClasses) {
      used[slot.size_class] += entry.references > 0;
    }
  }
  const ContainerStatistics statistics = m_store.cube.containers().statistics();
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    if (statistics.classes[size_class].owned != used[size_class]) {
      found(fmt::format("{} slots of {} KiB are marked as owned, objects use {}",
                        statistics.classes[size_class].owned, slot_bytes(size_class) >> 10, used[size_class]));
    }
  }
}

void Fsck::check_usage() {
  int64_t allocated = 0;
  for (const auto& [pool, usage] : m_store.cube.pool_usage()) {
    const PoolUsage& counted = m_usage[pool];
    allocated += usage.allocated;
    if (usage.objects != counted.objects || usage.stored != counted.stored) {
      found(fmt::format("pool {} is said to have {} objects of {} bytes, counted were {} of {}", pool, usage.objects,
                        usage.stored, counted.objects, counted.stored));
    }
  }
  const uint64_t owned = m_store.cube.containers().statistics().owned_bytes;
  if (allocated != static_cast<int64_t>(owned)) {
    found(fmt::format("the pools are said to have {} bytes of slots, {} are owned", allocated, owned));
  }
}

void Fsck::check_data() {
  for (const auto& [nid, object] : m_objects) {
    check_object_data(object);
  }
}

void Fsck::check_object_data(const Object& object) {
  ghobject_t oid;
  OnodeRef onode;
  if (!decode_object_key(object.key, &oid) || !m_store.onodes.find(oid, &onode).ok()) {
    found(fmt::format("object {} cannot be loaded", describe_object_key(object.key)));
    return;
  }
  for (uint64_t offset = 0; offset < object.size; offset += kDeepReadBytes) {
    ceph::bufferlist data;
    const uint64_t bytes = std::min(kDeepReadBytes, object.size - offset);
    if (m_reader.read_range(*onode, offset, bytes, CEPH_OSD_OP_FLAG_FADVISE_DONTNEED, &data) < 0) {
      found(fmt::format("object {}: bytes {} to {} cannot be read", describe_object_key(object.key), offset,
                        offset + bytes));
    }
  }
}

void Fsck::check_database() {
  std::vector<std::string> findings;
  const vtkv::Status status = m_store.cube.database().verify(&findings);
  for (std::string& finding : findings) {
    found(std::move(finding));
  }
  if (!status.ok() && findings.empty()) {
    found(fmt::format("the database cannot be verified: {}", status.to_string()));
  }
}

}  // namespace swimstore
