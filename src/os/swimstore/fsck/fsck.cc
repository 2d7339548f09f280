// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/fsck.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/format/format_version.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/newer_entry.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.fsck "

namespace swimstore {

namespace {

// A PG's temporary objects lie in pool -2-N and count for N.
int64_t pool_counted_for(const ghobject_t& oid) {
  const int64_t pool = oid.hobj.pool;
  return pool < -1 ? -2 - pool : pool;
}

constexpr size_t kUsualKeyBytes = 100;

// The OSD's own superblock, its maps, what is to be trimmed; a PG's own record.
bool is_on_this_osd_only(const ghobject_t& oid) { return oid.hobj.is_meta() || oid.is_pgmeta(); }

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

std::string describe_object_key(std::string_view key) {
  ghobject_t oid;
  if (!decode_object_key(key, &oid)) {
    return "with key " + to_hex(key);
  }
  std::ostringstream text;
  text << oid;
  return text.str();
}

// A phase that visits all entries of one kind.
struct Fsck::TreePhase {
  Phase phase;
  char prefix;
  const char* what;
  void (Fsck::*visit)(std::string_view key, std::string_view value);
  void (Fsck::*end)();
};

const Fsck::TreePhase* Fsck::tree_phase(Phase phase) {
  static constexpr TreePhase kPhases[] = {
      {Phase::collections, key_prefix::collection, "collections", &Fsck::visit_collection, nullptr},
      {Phase::unowned, key_prefix::unowned, "unowned ranges", &Fsck::visit_unowned, &Fsck::sort_ranges},
      {Phase::witnesses, key_prefix::witness, "witnesses", &Fsck::visit_witness, nullptr},
      {Phase::objects, key_prefix::object, "objects", &Fsck::visit_object, nullptr},
      {Phase::extents, key_prefix::extent, "extents", &Fsck::visit_extents, nullptr},
      {Phase::omap_headers, key_prefix::omap_header, "omap headers", &Fsck::visit_omap_header, nullptr},
      {Phase::omap, key_prefix::omap, "omap keys", &Fsck::visit_omap, nullptr},
      {Phase::omap_rows, key_prefix::omap_row, "omap rows", &Fsck::visit_omap_row, nullptr},
      {Phase::quarantined, key_prefix::quarantined, "quarantined entries", &Fsck::visit_quarantined, nullptr},
      {Phase::slot_counts, key_prefix::slot_reference, "slot references", &Fsck::visit_slot_count, nullptr},
  };
  const auto found = std::find_if(std::begin(kPhases), std::end(kPhases),
                                  [phase](const TreePhase& one) { return one.phase == phase; });
  return found == std::end(kPhases) ? nullptr : found;
}

Fsck::Fsck(StoreContext& store, StoreCube& cube, FsckOptions options)
    : m_store(store),
      m_cube(cube),
      m_options(options),
      m_began_us(store.env->now_us()),
      m_passes(std::max(1u, options.passes)) {
  take_snapshots();
}

Fsck::~Fsck() {
  m_iterator.reset();
  release_snapshots();
}

CheckResult Fsck::counts() const {
  return {.errors = m_errors,
          .objects = m_objects_before + m_objects.size(),
          .slots = m_slots_before + m_references.entries().size(),
          .unclear = m_unclear,
          .quarantined_entries = m_quarantined_entries,
          .passes = m_passes,
          .memory_bytes = m_memory_bytes_max};
}

CheckResult Fsck::result() const {
  CheckResult all = counts();
  all.findings = m_findings;
  all.quarantined_slots = m_cube.containers().quarantined();
  return all;
}

const char* Fsck::phase() const {
  if (const TreePhase* const phase = tree_phase(m_phase)) {
    return phase->what;
  }
  switch (m_phase) {
    case Phase::slots:
      return "slots";
    case Phase::usage:
      return "usage";
    case Phase::data:
      return "data";
    case Phase::database:
      return "database";
    default:
      return "done";
  }
}

void Fsck::found(Finding finding) {
  ++m_errors;
  finding.cube = m_cube.number;
  const auto kind = static_cast<size_t>(finding.kind);
  const uint64_t number = m_errors_of_class[kind]++;
  const uint64_t first_kept = m_options.passed_over[kind];
  if (number >= first_kept && number - first_kept < kFindingsOfClassMax) {
    derr << finding.text << dendl;
    m_findings.push_back(std::move(finding));
  }
}

void Fsck::found_undecodable(const ghobject_t& oid, Finding finding) {
  if (is_on_this_osd_only(oid)) {
    finding.kind = FindingClass::only_copy_undecodable;
    finding.text += ", and no other OSD has a copy of it";
  }
  found(std::move(finding));
}

void Fsck::found_newer(const std::string& what, std::string object) {
  found({.kind = FindingClass::entry_newer,
         .object = std::move(object),
         .text = fmt::format("{} was written by a newer program, which is to be used for this store", what)});
}

void Fsck::add_unknown_object() {
  ++m_unknown_objects;
  ++m_unknown_owners;
}

// Each pass meets the same block again.
void Fsck::found_unreadable(std::string text) {
  const bool said = std::any_of(m_findings.begin(), m_findings.end(), [&](const Finding& one) {
    return one.kind == FindingClass::metadata_unreadable && one.text == text;
  });
  if (!said) {
    found(FindingClass::metadata_unreadable, std::move(text));
  }
}

bool Fsck::step(uint64_t work) {
  if (const TreePhase* const phase = tree_phase(m_phase)) {
    step_tree(*phase, work);
    return true;
  }
  switch (m_phase) {
    case Phase::slots:
      check_slots();
      next_phase();
      return true;
    case Phase::usage:
      check_usage();
      end_references();
      m_next_object = m_objects.begin();
      next_phase();
      return true;
    case Phase::data:
      check_data(work);
      return true;
    case Phase::database:
      check_database();
      next_phase();
      return true;
    default:
      return false;
  }
}

void Fsck::next_phase() {
  m_phase = static_cast<Phase>(static_cast<int>(m_phase) + 1);
  if (m_phase == Phase::witnesses && (m_store.cubes.size() == 1 || m_cube.number != 0)) {
    m_phase = Phase::objects;  // cube 0 has them, of a store with several
  }
  if (m_phase == Phase::data && !m_options.deep) {
    m_phase = Phase::done;
  }
  if (m_phase == Phase::database && (m_options.online || !is_last_pass())) {
    m_phase = Phase::done;  // online, 'swimstore verify' is that; it cannot be done a little at a time
  }
  if (m_phase >= Phase::data) {
    release_snapshots();
  }
  if (m_phase == Phase::done && !is_last_pass()) {
    next_pass();
  }
  if (m_phase == Phase::done) {
    judge_withheld();
    const CheckResult all = counts();
    dout(1) << (m_options.deep ? "deep, " : "") << all.objects << " objects, " << all.slots << " slots, " << m_errors
            << " errors, " << m_passes << " passes, " << (m_store.env->now_us() - m_began_us) / 1000 << " ms" << dendl;
  }
}

void Fsck::next_pass() {
  ++m_pass;
  m_objects_before += m_objects.size();
  m_objects = {};
  m_object_bytes = 0;
  m_ranges.clear();
  m_last_omap_nid = m_last_row_nid = UINT64_MAX;
  if (m_options.online) {
    m_row_owners.reset();
  }
  m_foreign_undecodable = 0;
  take_snapshots();
  m_phase = Phase::collections;
}

// Hashed: ids and slots in use may all be multiples of the number of passes.
bool Fsck::is_mine(uint64_t number) const {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // Knuth, TAOCP 3, 6.4
  return ((number * kGolden) >> 32) % m_passes == m_pass;
}

void Fsck::step_tree(const TreePhase& phase, uint64_t work) {
  if (!m_iterator) {
    m_iterator = m_cube.database().new_iterator(std::string(1, phase.prefix),
                                                std::string(1, static_cast<char>(phase.prefix + 1)), m_snapshot);
    m_iterator->seek_to_first();
  }
  for (; m_iterator->valid() && work > 0; --work) {
    (this->*phase.visit)(m_iterator->key(), m_iterator->value());
    m_iterator->next();
    ++m_work_done;
  }
  if (!m_iterator->valid()) {
    end_tree(phase);
  }
}

void Fsck::end_tree(const TreePhase& phase) {
  if (const vtkv::Status status = m_iterator->status(); !status.ok()) {
    found_unreadable(fmt::format("{} cannot all be read: {}", phase.what, status.to_string()));
    ++m_unknown_owners;
    m_unknown_objects += phase.phase == Phase::objects;
  }
  m_iterator.reset();
  if (phase.end != nullptr) {
    (this->*phase.end)();
  }
  next_phase();
}

// ---- objects

void Fsck::visit_object(std::string_view key_bytes, std::string_view value) {
  const std::string key(key_bytes);
  ghobject_t oid;
  if (!decode_object_key(key, &oid) || object_key(oid) != key) {
    if (m_pass > 0) {
      return;
    }
    add_unknown_object();
    found({.kind = FindingClass::object_undecodable,
           .text = fmt::format("an object's key is damaged: {}", to_hex(key)),
           .key = key});
    return;
  }
  OnodeRecord record;
  ExtentShard shard;
  if (!decode_onode(value, &record, &shard)) {
    if (m_pass > 0) {
      return;
    }
    add_unknown_object();
    const std::string name = describe_object_key(key);
    if (m_options.may_hold_newer && is_newer_onode(value)) {
      found_newer(fmt::format("the record of object {}", name), name);
      return;
    }
    found_undecodable(oid, {.kind = FindingClass::object_undecodable,
                            .object = name,
                            .text = fmt::format("the record of object {} is damaged", name),
                            .key = key});
    return;
  }
  const int64_t pool = pool_counted_for(oid);
  if (record.test(OnodeRecord::shard_inline)) {
    check_shard({key, record.size, record.flags, pool}, record.nid, 0, key, shard);
  }
  if (knows_pools() && m_pass == 0 && !record.test(OnodeRecord::shard_inline)) {
    m_pools.try_emplace(record.nid, pool);
  }
  if (!is_mine(record.nid)) {
    return;
  }
  if (!lies_in_a_collection(oid) && m_newer_collections) {
    ++m_unclear;
  } else if (!lies_in_a_collection(oid)) {
    const std::string name = describe_object_key(key);
    found({.kind = FindingClass::object_in_no_collection,
           .object = name,
           .text = fmt::format("object {} lies in no collection", name)});
  }
  m_usage[pool].objects += 1;
  const auto [entry, unique] = m_objects.try_emplace(record.nid, Object{key, record.size, record.flags, pool});
  m_object_bytes += kCheckedObjectBytes + key.size() - std::min(key.size(), kUsualKeyBytes);
  if (!unique) {
    const std::string name = describe_object_key(key);
    // Its extents, if they are in its record, are counted all the same.
    found({.kind = FindingClass::object_id_twice,
           .object = name,
           .text = fmt::format("objects {} and {} have the same id {}", describe_object_key(entry->second.key), name,
                               record.nid)});
  }
}

// ---- extents and omap

void Fsck::visit_extents(std::string_view key_bytes, std::string_view value) {
  const std::string key(key_bytes);
  uint64_t nid = 0;
  uint32_t number = 0;
  const bool has_key = decode_extent_key(key, &nid, &number);
  ExtentShard shard;
  if (!is_mine(has_key ? nid : 0)) {
    if (has_key) {
      visit_foreign_extents(nid, number, key, value);
    }
    return;
  }
  const auto object = has_key ? m_objects.find(nid) : m_objects.end();
  if (object == m_objects.end()) {
    if (m_unknown_objects > 0) {
      ++m_unclear;
      return;
    }
    found({.kind = FindingClass::extents_orphaned,
           .text = has_key ? fmt::format("extent shard {} belongs to object id {}, which does not exist", number, nid)
                           : fmt::format("the key of an extent shard is damaged: {}", to_hex(key)),
           .key = key});
    return;
  }
  const std::string name = describe_object_key(object->second.key);
  if (object->second.flags & OnodeRecord::shard_inline) {
    found({.kind = FindingClass::extents_orphaned,
           .object = name,
           .text = fmt::format("object {} has extent shard {} beside an inline one", name, number),
           .key = key});
  } else if (m_options.may_hold_newer && is_newer_entry(value, kExtentRecordVersion)) {
    ++m_unknown_owners;
    found_newer(fmt::format("extent shard {} of object {}", number, name), name);
    m_newer_extents.insert(nid);
  } else if (!decode_extent_shard(value, &shard)) {
    ++m_unknown_owners;
    ghobject_t oid;
    (void)decode_object_key(object->second.key, &oid);
    found_undecodable(oid, {.kind = FindingClass::extents_undecodable,
                            .object = name,
                            .offset = uint64_t{number} * kShardBytes,
                            .text = fmt::format("extent shard {} of object {} is damaged", number, name),
                            .key = object->second.key});
  } else {
    check_shard(object->second, nid, number, key, shard);
  }
}

// A shard that belongs to no object refers to nothing; where that is not known it counts.
void Fsck::visit_foreign_extents(uint64_t nid, uint32_t number, const std::string& key, std::string_view value) {
  Object object;
  if (knows_pools()) {
    const auto found = m_pools.find(nid);
    if (found == m_pools.end()) {
      return;
    }
    object.pool = found->second;
  }
  if (ExtentShard shard; decode_extent_shard(value, &shard)) {
    check_shard(object, nid, number, key, shard);
  } else {
    ++m_foreign_undecodable;
  }
}

void Fsck::check_shard(const Object& object, uint64_t nid, uint32_t number, const std::string& key,
                       const ExtentShard& shard) {
  for (const Extent& extent : shard.extents) {
    check_slot(object, nid, number, key, extent.block, extent);
  }
  for (const CompressedBlob& blob : shard.blobs) {
    for (const Extent& extent : blob.extents) {
      check_slot(object, nid, number, key, blob.block, extent);
    }
  }
  if (!is_mine(nid)) {
    return;
  }
  for (const Extent& extent : shard.extents) {
    count_stored(object, number, block_bits(extent.block, extent.block + extent.count));
  }
  PoolUsage& usage = m_usage[object.pool];
  for (const CompressedBlob& blob : shard.blobs) {
    count_stored(object, number, blob.live);
    usage.compressed_original += int64_t{blob.live_blocks()} * kBlockBytes;
    usage.compressed += blob.bytes;
    usage.compressed_allocated += int64_t{blob.stored_blocks()} * kBlockBytes;
  }
}

void Fsck::count_stored(const Object& object, uint32_t number, uint16_t blocks) {
  const uint64_t first_block = uint64_t{number} * kShardBlocks + std::countr_zero(blocks);
  const uint64_t end_block = uint64_t{number} * kShardBlocks + std::bit_width(blocks);
  if (end_block > blocks_for(object.size)) {
    const std::string name = describe_object_key(object.key);
    found({.kind = FindingClass::extents_past_end,
           .object = name,
           .offset = first_block * kBlockBytes,
           .text = fmt::format("object {} of {} bytes has data up to block {}", name, object.size, end_block)});
  }
  PoolUsage& usage = m_usage[object.pool];
  usage.stored += int64_t{std::popcount(blocks)} * kBlockBytes;
  if (end_block * kBlockBytes > object.size) {
    usage.stored -= end_block * kBlockBytes - object.size;
  }
}

void Fsck::check_slot(const Object& object, uint64_t nid, uint32_t number, const std::string& key, uint32_t block,
                      const Extent& extent) {
  if (!is_mine(extent.slot)) {
    return;
  }
  const std::string conflict = m_references.add(extent, object.pool);
  const bool is_owned = m_options.online || m_cube.containers().is_owned(extent.blocks());
  if (conflict.empty() && is_owned) {
    return;
  }
  const std::string known = object.key.empty() ? std::string() : describe_object_key(object.key);
  const std::string name = known.empty() ? fmt::format("with id {}", nid) : known;
  const uint64_t offset = (uint64_t{number} * kShardBlocks + block) * kBlockBytes;
  if (!conflict.empty()) {
    found({.kind = FindingClass::slot_claimed_twice,
           .object = known,
           .offset = offset,
           .text = fmt::format("object {}, extent shard {}: {}", name, number, conflict),
           .key = key,
           .blocks = extent.blocks()});
  }
  if (!is_owned) {
    found({.kind = FindingClass::slot_not_owned,
           .object = known,
           .offset = offset,
           .text = fmt::format("object {}, extent shard {}: {} is not marked as owned", name, number,
                               describe_blocks(extent.blocks())),
           .blocks = extent.blocks()});
  }
}

void Fsck::visit_omap_header(std::string_view key, std::string_view) {
  uint64_t nid = 0;
  const bool has_key = decode_omap_header_key(key, &nid);
  if (is_mine(has_key ? nid : 0)) {
    check_omap_owner("an omap header", key, has_key ? nid : UINT64_MAX);
  }
}

void Fsck::visit_omap(std::string_view key, std::string_view) {
  uint64_t nid = UINT64_MAX;
  std::string_view user_key;
  const bool has_key = decode_omap_key(key, &nid, &user_key);
  if ((has_key && nid == m_last_omap_nid) || !is_mine(has_key ? nid : 0)) {
    return;  // said of its first key
  }
  m_last_omap_nid = nid;
  check_omap_owner("omap keys", key, nid);
}

// nid UINT64_MAX, which no object has: the key is none.
void Fsck::check_omap_owner(const char* what, std::string_view key, uint64_t nid) {
  const auto object = m_objects.find(nid);
  if (object == m_objects.end()) {
    if (m_unknown_objects > 0) {
      ++m_unclear;
      return;
    }
    found({.kind = FindingClass::omap_orphaned,
           .text = nid == UINT64_MAX ? fmt::format("the key of {} is damaged: {}", what, to_hex(key))
                                     : fmt::format("there is {} of object id {}, which does not exist", what, nid),
           .key = std::string(key)});
  } else if (!(object->second.flags & OnodeRecord::has_omap)) {
    const std::string name = describe_object_key(object->second.key);
    found({.kind = FindingClass::omap_unannounced,
           .object = name,
           .text = fmt::format("there is {} of object {}, which says it has none", what, name),
           .key = object->second.key});
  }
}

void Fsck::visit_quarantined(std::string_view key, std::string_view) {
  if (m_pass > 0) {
    return;
  }
  ++m_quarantined_entries;
  uint32_t number = 0;
  std::string_view entry;
  m_quarantined_owners += !decode_quarantined_key(key, &number, &entry) || entry.front() == key_prefix::object ||
                          entry.front() == key_prefix::extent;
}

void Fsck::visit_slot_count(std::string_view key, std::string_view value) {
  SlotAddress slot;
  uint32_t group = 0;
  const bool has_key = decode_slot_reference_key(key, &slot, &group);
  if (has_key ? !is_mine(slot) : m_pass > 0) {
    return;
  }
  SlotReferences::Counts counts(has_key ? std::min(kReferenceGroupBlocks, slot_blocks(slot.size_class)) : 0, 1);
  if (!has_key || !SlotReferences::decode(value, counts)) {
    if (m_options.may_hold_newer && has_key && is_newer_entry(value, kSlotReferencesVersion)) {
      m_newer_counts.insert(slot.packed());
      found_newer(fmt::format("slot reference {}", to_hex(key)));
      return;
    }
    found({.kind = FindingClass::slot_count_wrong,
           .text = fmt::format("slot reference {} is damaged", to_hex(key)),
           .key = std::string(key),
           .blocks = {.slot = slot}});
    return;
  }
  m_references.add_counts(slot, group, counts);
}

}  // namespace swimstore
