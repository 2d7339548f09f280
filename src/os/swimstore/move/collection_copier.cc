// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/collection_copier.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/debug.h"
#include "include/rados.h"

#include "swimstore/container/best_fit.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/move/objects_by_hash.h"
#include "swimstore/object/collection_list.h"

#define dout_context m_copier.m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.move "

namespace swimstore {

namespace {

constexpr uint64_t kRunBlocksMax = kSlotBytesMax / kBlockBytes;  // as much as one slot holds
constexpr uint64_t kStepBytesMax = kSlotBytesMax + (256u << 10);  // data and metadata of a transaction
constexpr uint32_t kLoadedShards = 64;  // of extents, at once
constexpr uint64_t kObjectBytes = 512;  // metadata of a small object, about, but for attributes
constexpr uint64_t kRunBytes = 32;      // of a run of blocks that lie together, but for their checksums

uint64_t metadata_bytes_of(const Onode& source) {
  uint64_t bytes = kObjectBytes;
  for (const auto& [name, value] : source.record.attrs) {
    bytes += name.size() + value.length();
  }
  return bytes;
}

}  // namespace

bool CollectionCopier::Run::continues_with(uint64_t block, const Block& source, const Place* place) const {
  if (empty() || end() != block || shared.size() == kRunBlocksMax || places.empty() != (place == nullptr)) {
    return false;
  }
  if (place != nullptr) {
    return place->slot == places.back().slot && place->number == places.back().number + 1;
  }
  return source.is_unshared() || std::find(shared.begin(), shared.end(), source) == shared.end();
}

// What is done with each object, and with its blocks.
class CollectionCopier::Visitor {
 public:
  virtual ~Visitor() = default;
  virtual int begin(Onode& source) = 0;
  virtual int run(Onode& source, const Run& run) = 0;
  virtual int blob(Onode& source, uint32_t shard, const CompressedBlob& blob) = 0;
  virtual int end(Onode& source) = 0;
  virtual int pause() = 0;
  // The object under way is left as it is.
  virtual void abandon() {}
};

class CollectionCopier::Measure final : public Visitor {
 public:
  Measure(CollectionCopier& copier, bool reads_omap) : m_copier(copier), m_reads_omap(reads_omap) {}
  uint64_t slot_bytes() const { return m_slot_bytes; }
  uint64_t metadata_bytes() const { return m_metadata_bytes; }

 private:
  int begin(Onode& source) override {
    m_metadata_bytes += metadata_bytes_of(source);
    return 0;
  }
  int run(Onode&, const Run& run) override {
    m_metadata_bytes += kRunBytes + run.shared.size() * sizeof(uint32_t);
    if (run.places.empty()) {
      m_slot_bytes += most_slot_bytes(run.shared.size() * kBlockBytes);
      for (const Block& block : run.shared) {
        if (!block.is_unshared()) {
          m_copier.m_copied.emplace(block, Place());
        }
      }
    }
    return 0;
  }
  int blob(Onode&, uint32_t, const CompressedBlob& blob) override {
    m_metadata_bytes += blob.extents.size() * kRunBytes + blob.stored_blocks() * sizeof(uint32_t);
    if (m_copier.find_copied(blob) == nullptr) {
      if (blob.is_shared()) {
        m_copier.m_copied_blobs.try_emplace(first_block(blob), CopiedBlob{blob, {}});
      }
      m_slot_bytes += most_slot_bytes(uint64_t{blob.stored_blocks()} * kBlockBytes);
    }
    return 0;
  }
  int end(Onode& source) override {
    const auto add = [this](std::string_view key, std::string_view value) {
      m_metadata_bytes += key.size() + value.size();
      return 0;
    };
    return m_reads_omap && source.has_omap() ? m_copier.for_each_entry(source, add) : 0;
  }
  int pause() override { return m_copier.m_pace.pause(*m_copier.m_hash); }

  CollectionCopier& m_copier;
  const bool m_reads_omap;
  uint64_t m_slot_bytes = 0;
  uint64_t m_metadata_bytes = 0;
};

class CollectionCopier::Copy final : public Visitor {
 public:
  explicit Copy(CollectionCopier& copier)
      : m_copier(copier), m_reader(copier.m_store, copier.m_from), m_pool(pool_of(copier.m_collection)) {}
  // What is planned and not yet submitted.
  int finish() { return m_step ? submit() : 0; }

  // What the copy has in this range.
  int remove(const ObjectRange& range) {
    vtkv::Status status;
    for (const ghobject_t& oid : list(range, &status)) {
      int r = make_room(kObjectBytes);
      r = r < 0 ? r : m_step->remove(oid, m_pool);
      if (r < 0) {
        return r;
      }
    }
    return status.ok() ? 0
                       : m_copier.m_store.metadata_failure.met(m_copier.m_to.number, status, "the copy of collection ",
                                                               m_copier.m_collection.cid);
  }

 private:
  int begin(Onode& source) override {
    if (const int r = make_room(metadata_bytes_of(source)); r < 0) {
      return r;
    }
    if (const int r = m_step->find(source.oid, &m_target); r < 0) {
      return r;
    }
    if (m_target->exists) {
      derr << "object " << source.oid << " lies in cube " << m_copier.m_to.number
           << " already, in no collection: check "
           << "the store with ceph-swimstore-tool fsck" << dendl;
      return -EEXIST;
    }
    touch();
    OnodeRecord& record = m_target->record;
    record.size = source.record.size;
    record.set(OnodeRecord::has_hints, source.record.test(OnodeRecord::has_hints));
    record.expected_object_size = source.record.expected_object_size;
    record.expected_write_size = source.record.expected_write_size;
    record.alloc_hint_flags = source.record.alloc_hint_flags;
    record.attrs = source.record.attrs;
    return 0;
  }

  int run(Onode& source, const Run& run) override { return run.places.empty() ? write(source, run) : refer(run); }

  int blob(Onode& source, uint32_t shard, const CompressedBlob& blob) override {
    const CopiedBlob* copied = m_copier.find_copied(blob);
    if (copied == nullptr) {
      return write_blob(source, shard, blob);
    }
    if (const int r = make_room(kObjectBytes); r < 0) {
      return r;
    }
    CompressedBlob same = copied->copy;
    same.live = blob.live;
    return m_step->planner().data().refer_to_copied(*m_target, shard, std::move(same));
  }

  int end(Onode& source) override {
    const int r = source.has_omap() ? copy_omap(source) : 0;
    m_target.reset();
    ++m_copier.m_objects;
    return r;
  }

  int pause() override {
    const int r = finish();
    m_under_way_bytes = 0;
    return r < 0 ? r : m_copier.m_pace.pause(*m_copier.m_hash);
  }

  void abandon() override { m_target.reset(); }

  std::vector<ghobject_t> list(const ObjectRange& range, vtkv::Status* status) {
    std::vector<ghobject_t> oids;
    const auto iterator = m_copier.m_to.database().new_iterator(object_key(range.begin), object_key(range.end));
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      if (!decode_object_key(iterator->key(), &oids.emplace_back())) {
        *status = vtkv::Status::corruption("an object's key cannot be decoded");
        return {};
      }
    }
    *status = iterator->status();
    return oids;
  }

  int write(Onode& source, const Run& run) {
    const uint64_t count = run.shared.size();
    if (const int r = make_room(count * kBlockBytes); r < 0) {
      return r;
    }
    ceph::bufferlist data;
    std::vector<uint64_t> lost;
    read(source, run.first, count, &data, &lost);
    if (!lost.empty() && !m_copier.m_pace.takes_unreadable()) {
      return -ENODATA;
    }
    ObjectWriter& writer = m_step->planner().data();
    if (const int r = writer.copy_in(*m_target, run.first, std::move(data), lost); r < 0) {
      return r;
    }
    m_copier.m_pace.used(most_slot_bytes(count * kBlockBytes));
    m_copier.m_bytes += count * kBlockBytes;
    remember(run);
    return 0;
  }

  // As it is stored: costs no compression, and is no larger than what it is of.
  int write_blob(Onode& source, uint32_t shard, const CompressedBlob& blob) {
    const uint64_t bytes = uint64_t{blob.stored_blocks()} * kBlockBytes;
    if (const int r = make_room(bytes); r < 0) {
      return r;
    }
    ceph::bufferlist stored;
    std::vector<uint32_t> lost;
    m_reader.read_stored(source, uint64_t{shard} * kShardBlocks, blob, &stored, &lost);
    if (!lost.empty()) {
      m_copier.m_store.counters.inc(l_swimstore_read_errors);
      derr << "object " << source.oid << " shard " << shard << ": compressed data cannot be read to be moved to cube "
           << m_copier.m_to.number << "; it stays unreadable until it is repaired or written as a whole" << dendl;
      if (!m_copier.m_pace.takes_unreadable()) {
        return -ENODATA;
      }
    }
    const int r = m_step->planner().data().copy_in_blob(*m_target, shard, blob, std::move(stored), std::move(lost));
    if (r < 0) {
      return r;
    }
    m_copier.m_pace.used(most_slot_bytes(bytes));
    m_copier.m_bytes += bytes;
    if (blob.is_shared()) {
      const uint32_t first = std::countr_zero(blob.live);
      m_target->extents.share(uint64_t{shard} * kShardBlocks + first, 1);
      m_copier.m_copied_blobs.try_emplace(first_block(blob),
                                          CopiedBlob{blob, *m_target->extents.shard(shard).find_blob(first)});
    }
    return 0;
  }

  // Where the blocks lie now that others may share.
  void remember(const Run& run) {
    for (uint64_t i = 0; i < run.shared.size(); ++i) {
      if (run.shared[i].is_unshared()) {
        continue;
      }
      m_target->extents.share(run.first + i, 1);
    }
    MappedRuns mapped;
    m_target->extents.resolve(run.first, run.shared.size(), &mapped);
    for (const MappedRun& part : mapped) {
      for (uint32_t i = 0; i < part.count; ++i) {
        const Block& block = run.shared[part.block - run.first + i];
        if (!block.is_unshared()) {
          m_copier.m_copied[block] = {part.slot, part.slot_block + i, part.slot_written_blocks, part.crc32c[i]};
        }
      }
    }
  }

  int refer(const Run& run) {
    if (const int r = make_room(kObjectBytes); r < 0) {
      return r;
    }
    std::vector<uint32_t> checksums;
    for (const Place& place : run.places) {
      checksums.push_back(place.crc32c);
    }
    const Place& first = run.places.front();
    const SlotBlocks blocks{first.slot, first.number, static_cast<uint32_t>(run.places.size()), first.written};
    return m_step->planner().data().refer(*m_target, run.first, blocks, checksums.data());
  }

  // *lost: blocks that cannot be read, which are zeros in *data.
  void read(Onode& source, uint64_t first, uint64_t count, ceph::bufferlist* data, std::vector<uint64_t>* lost) {
    constexpr uint32_t kNotAgain = CEPH_OSD_OP_FLAG_FADVISE_DONTNEED;
    if (m_reader.read(source, first * kBlockBytes, count * kBlockBytes, kNotAgain, data) == 0) {
      return;
    }
    data->clear();
    for (uint64_t block = first; block < first + count; ++block) {
      ceph::bufferlist bytes;
      if (m_reader.read(source, block * kBlockBytes, kBlockBytes, kNotAgain, &bytes) == 0) {
        data->claim_append(bytes);
        continue;
      }
      m_copier.m_store.counters.inc(l_swimstore_read_errors);
      derr << "object " << source.oid << " block " << block << " cannot be read to be moved to cube "
           << m_copier.m_to.number << "; it stays unreadable until it is repaired or written as a whole" << dendl;
      data->append_zero(kBlockBytes);
      lost->push_back(block);
    }
  }

  int copy_omap(Onode& source) {
    const uint64_t to = m_target->record.nid;
    m_target->record.set(OnodeRecord::has_omap, true);
    std::string header;
    const vtkv::Status found = m_copier.m_from.database().get(omap_header_key(source.record.nid), &header);
    if (!found.ok() && !found.is_not_found()) {
      return m_copier.m_store.metadata_failure.met(m_copier.m_from.number, found, "the omap of object ", source.oid);
    }
    if (found.ok()) {
      m_step->batch().put(omap_header_key(to), header);
    }
    return m_copier.for_each_entry(source, [this, to](std::string_view key, std::string_view value) {
      const int r = make_room(key.size() + value.size());
      if (r == 0) {
        m_step->batch().put(omap_key(to, key.substr(kOmapPrefixBytes)), value);
      }
      return r;
    });
  }

  // There is a transaction that takes so much more, and the object under way is one that it changes.
  int make_room(uint64_t bytes) {
    if (m_step && m_step_bytes > 0 && m_step_bytes + bytes > kStepBytesMax) {
      if (const int r = submit(); r < 0) {
        return r;
      }
    }
    if (m_copier.m_pace.is_enough(bytes)) {
      if (const int r = pause(); r < 0) {
        return r;
      }
    }
    if (!m_step) {
      m_step.emplace(m_copier.m_store, m_copier.m_pipeline, m_copier.m_to, m_copier.m_account);
      if (m_target) {
        touch();
      }
    }
    m_step_bytes += bytes;
    return 0;
  }

  int submit() {
    const int r = m_step->submit();
    m_step.reset();
    m_under_way_bytes += std::exchange(m_step_bytes, 0);
    if (r == 0 && m_under_way_bytes > kUnderWayBytesMax) {
      m_under_way_bytes = 0;
      return m_copier.m_account.sequencer->wait_for_all() ? 0 : -ESHUTDOWN;
    }
    return r;
  }

  void touch() { m_step->planner().touch(m_target, m_pool); }

  CollectionCopier& m_copier;
  BlockReader m_reader;
  const int64_t m_pool;
  std::optional<OwnTransaction> m_step;
  OnodeRef m_target;  // of the object under way
  uint64_t m_step_bytes = 0;
  uint64_t m_under_way_bytes = 0;
};

CollectionCopier::CollectionCopier(StoreContext& store, TransactionPipeline& pipeline, Collection& collection,
                                   Collection& account, StoreCube& from, StoreCube& to, CopyPace& pace)
    : m_store(store),
      m_pipeline(pipeline),
      m_collection(collection),
      m_account(account),
      m_from(from),
      m_to(to),
      m_pace(pace) {}

CollectionCopier::~CollectionCopier() = default;

int CollectionCopier::measure(uint64_t* slot_bytes, uint64_t* metadata_bytes) {
  m_collection.lock.assert_held_shared();
  Measure measure(*this, metadata_bytes != nullptr);
  const int r = for_each_object(m_collection.cid, m_collection.record.bits, measure);
  *slot_bytes = measure.slot_bytes();
  if (metadata_bytes != nullptr) {
    *metadata_bytes = measure.metadata_bytes();
  }
  return r;
}

int CollectionCopier::copy() {
  m_collection.lock.assert_held_shared();
  Copy copy(*this);
  const int r = for_each_object(m_collection.cid, m_collection.record.bits, copy);
  return r < 0 ? r : copy.finish();
}

int CollectionCopier::copy_again(std::span<const uint32_t> hashes, size_t* done) {
  Copy copy(*this);
  Visitor& visitor = copy;
  for (*done = 0; *done < hashes.size(); ++*done) {
    m_hash = hashes[*done];
    if (!m_pace.wants(*m_hash)) {
      continue;
    }
    // Also where none of its objects is left, which for_each_object() would not notice.
    int r = m_pace.is_enough(0) ? visitor.pause() : 0;
    if (r == -EAGAIN) {
      continue;  // noted once more
    }
    if (r < 0) {
      return r;
    }
    const coll_t group = group_of_hash(*m_hash);
    for (const ObjectRange& range : object_ranges(group, kHashBits)) {
      r = r < 0 ? r : copy.remove(range);
    }
    if (r == 0) {
      r = for_each_object(group, kHashBits, visitor);
    }
    if (r < 0 && r != -EAGAIN) {
      return r;
    }
  }
  return copy.finish();
}

// As if the objects of one hash were a group's.
coll_t CollectionCopier::group_of_hash(uint32_t hash) const {
  spg_t group;
  m_collection.cid.is_pg(&group);
  return coll_t(spg_t(pg_t(hash, group.pool()), group.shard));
}

// While the lock is given up objects come and go, those that are listed already among them. Their hashes are noted.
int CollectionCopier::for_each_object(const coll_t& cid, uint32_t bits, Visitor& visitor) {
  ObjectsByHash objects(m_from.database(), cid, bits);
  ghobject_t oid;
  bool is_wanted = true;
  m_hash.reset();
  while (objects.next(&oid)) {
    if (m_hash != oid.hobj.get_hash()) {
      m_copied.clear();
      m_copied_blobs.clear();
      m_hash = oid.hobj.get_hash();
      is_wanted = m_pace.wants(*m_hash);
    }
    int r = m_pace.is_enough(0) ? visitor.pause() : 0;
    if (r == 0 && is_wanted) {
      r = visit(oid, visitor);
      r = r == -ENOENT ? 0 : r;
    }
    if (r == -EAGAIN) {
      visitor.abandon();
      is_wanted = false;
    } else if (r < 0) {
      return r;
    }
  }
  m_copied.clear();
  m_copied_blobs.clear();
  return objects.status().ok() ? 0
                               : m_store.metadata_failure.met(m_from.number, objects.status(),
                                                              "the list of collection ", m_collection.cid);
}

int CollectionCopier::visit(const ghobject_t& oid, Visitor& visitor) {
  OnodeRef source;
  if (const vtkv::Status status = m_from.onodes.find(oid, &source, OnodeCache::Use::once); !status.ok()) {
    return m_store.metadata_failure.met(m_from.number, status, "object ", oid);
  }
  if (!source->exists) {
    return -ENOENT;
  }
  int r = visitor.begin(*source);
  if (r == 0) {
    r = for_each_run(*source, visitor);
  }
  return r < 0 ? r : visitor.end(*source);
}

int CollectionCopier::for_each_run(Onode& source, Visitor& visitor) {
  const auto shards = static_cast<uint32_t>((blocks_for(source.record.size) + kShardBlocks - 1) / kShardBlocks);
  Run run;
  for (uint32_t number = 0; number < shards; ++number) {
    if (number % kLoadedShards == 0) {
      const vtkv::Status status =
          m_from.onodes.load_extents(source, number, std::min(number + kLoadedShards, shards) - 1);
      if (!status.ok()) {
        return m_store.metadata_failure.met(m_from.number, status, "the extents of object ", source.oid);
      }
    }
    const ExtentShard& shard = source.extents.find_shard(number);
    for (const Extent& extent : shard.extents) {
      for (uint32_t i = 0; i < extent.count; ++i) {
        const uint64_t block = uint64_t{number} * kShardBlocks + extent.block + i;
        const Block shared = extent.shared
                                 ? Block{extent.slot.packed(), extent.slot_block + i, shard.crc32c[extent.block + i]}
                                 : Block();
        const Place* place = find_copied(shared);
        if (!run.continues_with(block, shared, place)) {
          if (const int r = end_run(source, visitor, &run); r < 0) {
            return r;
          }
          run.first = block;
          place = find_copied(shared);  // if the run that ended had it, too
        }
        run.shared.push_back(shared);
        if (place != nullptr) {
          run.places.push_back(*place);
        }
      }
    }
    for (const CompressedBlob& blob : source.extents.blobs(number)) {
      if (const int r = visitor.blob(source, number, blob); r < 0) {
        return r;
      }
    }
  }
  return end_run(source, visitor, &run);
}

int CollectionCopier::for_each_entry(const Onode& source, const EntryFunction& function) {
  const uint64_t nid = source.record.nid;
  const auto iterator = m_from.database().new_iterator(omap_key(nid, ""), omap_range_end(nid));
  for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
    if (const int r = function(iterator->key(), iterator->value()); r < 0) {
      return r;
    }
  }
  const vtkv::Status& read = iterator->status();
  return read.ok() ? 0 : m_store.metadata_failure.met(m_from.number, read, "the omap of object ", source.oid);
}

CollectionCopier::Block CollectionCopier::first_block(const CompressedBlob& blob) {
  return {blob.extents.front().slot.packed(), blob.extents.front().slot_block, blob.crc32c.front()};
}

// Where two objects claimed a slot and repair gave it to both, other blobs may begin with the same block.
const CollectionCopier::CopiedBlob* CollectionCopier::find_copied(const CompressedBlob& blob) const {
  const auto found = blob.is_shared() ? m_copied_blobs.find(first_block(blob)) : m_copied_blobs.end();
  return found != m_copied_blobs.end() && found->second.source.has_data_of(blob) ? &found->second : nullptr;
}

const CollectionCopier::Place* CollectionCopier::find_copied(const Block& block) const {
  const auto found = block.is_unshared() ? m_copied.end() : m_copied.find(block);
  return found == m_copied.end() ? nullptr : &found->second;
}

int CollectionCopier::end_run(Onode& source, Visitor& visitor, Run* run) {
  const int r = run->empty() ? 0 : visitor.run(source, *run);
  *run = {};
  return r;
}

}  // namespace swimstore
