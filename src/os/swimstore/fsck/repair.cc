// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/repair.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>

#include "swimstore/format/key_codec.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr size_t kTransactionBytes = 256u << 10;

bool needs_all_owners(FindingClass kind) {
  switch (kind) {
    case FindingClass::slot_claimed_twice:
    case FindingClass::slot_count_wrong:
    case FindingClass::slot_leaked:
    case FindingClass::usage_wrong:
      return true;
    default:
      return false;
  }
}

}  // namespace

// One that is waited for.
class Repair::Transaction final : public CubeTransaction {
 public:
  explicit Transaction(vtkv::Env* env) : m_signal(env->new_signal()) {}

  bool empty() const { return batch.empty() && delta.empty(); }
  Status commit(Cube& cube) {
    cube.submit(this);
    vtkv::MutexLock lock(m_mutex);
    m_signal->wait(lock, [this]() REQUIRES(m_mutex) { return m_done; });
    return m_status;
  }

 private:
  void data_written() override {}
  void committed(const Status& status) override {
    vtkv::MutexLock lock(m_mutex);
    m_status = status;
    m_done = true;
    m_signal->notify_all();
  }

  vtkv::Mutex m_mutex;
  std::unique_ptr<vtkv::Signal> m_signal;
  bool m_done GUARDED_BY(m_mutex) = false;
  Status m_status GUARDED_BY(m_mutex);
};

Repair::Repair(StoreContext& store, StoreCube& cube, const Fsck& fsck) : m_store(store), m_cube(cube), m_fsck(fsck) {}

Repair::~Repair() = default;

bool Repair::next(FindingClass* kind) const {
  bool found = false;
  for (const Finding& finding : m_fsck.findings()) {
    if (is_repairable(finding.kind) && (m_fsck.knows_all_owners() || !needs_all_owners(finding.kind)) &&
        (!found || finding.kind < *kind)) {
      *kind = finding.kind;
      found = true;
    }
  }
  return found;
}

Status Repair::apply(FindingClass kind, std::vector<Repaired>* changes) {
  m_kind = kind;
  m_changes = changes;
  m_transaction = std::make_unique<Transaction>(m_store.env);
  if (kind == FindingClass::slot_claimed_twice) {
    share_conflicts();
  } else if (kind == FindingClass::usage_wrong) {
    recount_usage();
  } else {
    for (const Finding& finding : m_fsck.findings()) {
      if (finding.kind == kind && m_status.ok()) {
        repair_one(finding);
        flush(false);
      }
    }
  }
  flush(true);
  return m_status;
}

void Repair::repair_one(const Finding& finding) {
  switch (finding.kind) {
    case FindingClass::object_undecodable:
    case FindingClass::only_copy_undecodable:
    case FindingClass::extents_undecodable:
    case FindingClass::extents_orphaned:
      quarantine(finding.key);
      break;
    case FindingClass::omap_orphaned:
      quarantine_omap(finding);
      break;
    case FindingClass::omap_unannounced:
      announce_omap(finding);
      break;
    case FindingClass::slot_not_owned:
      claim(finding.blocks);
      break;
    case FindingClass::slot_count_wrong: {
      SlotAddress slot;
      uint32_t group = 0;
      const auto entry = m_fsck.damaged_references().find(finding.blocks.slot.packed());
      if (!decode_slot_reference_key(finding.key, &slot, &group)) {
        quarantine(finding.key);
      } else {
        put_count(slot, entry != m_fsck.damaged_references().end() ? entry->second : ReferenceAudit::Entry());
      }
      break;
    }
    case FindingClass::slot_leaked:
      m_transaction->delta.allocation.freed.push_back(finding.blocks);
      changed(fmt::format("{} was freed", describe_blocks(finding.blocks)));
      break;
    default:
      break;
  }
}

// ---- entries

bool Repair::get(const std::string& key, std::string* value) {
  const Status status = m_cube.database().get(key, value);
  if (!status.ok() && !status.is_not_found()) {
    m_status = status;
  }
  return status.ok();
}

// Beside, not over, what was quarantined before under the same key.
void Repair::move_to_quarantine(std::string_view key, std::string_view value) {
  uint32_t number = 0;
  for (std::string earlier; get(quarantined_key(number, key), &earlier);) {
    ++number;
  }
  m_transaction->batch.put(quarantined_key(number, key), value);
  m_transaction->batch.remove(key);
}

void Repair::quarantine(const std::string& key) {
  std::string value;
  if (!get(key, &value)) {
    return;  // with an earlier finding
  }
  move_to_quarantine(key, value);
  changed(fmt::format("the entry of {} was quarantined", describe_object_key(key)));
  flush(true);  // so that a second finding about it sees that it is gone
}

void Repair::quarantine_omap(const Finding& finding) {
  uint64_t nid = 0;
  std::string_view user_key;
  const bool is_row = decode_omap_row_key(finding.key, &nid, &user_key);
  if (!is_row && !decode_omap_key(finding.key, &nid, &user_key)) {
    quarantine(finding.key);
    return;
  }
  uint64_t entries = 0;
  const auto it = is_row ? m_cube.database().new_iterator(omap_row_key(nid, ""), omap_row_range_end(nid))
                         : m_cube.database().new_iterator(omap_key(nid, ""), omap_range_end(nid));
  for (it->seek_to_first(); it->valid() && m_status.ok(); it->next()) {
    move_to_quarantine(it->key(), it->value());
    ++entries;
    flush(false);
  }
  if (!it->status().ok()) {
    m_status = it->status();
  }
  changed(fmt::format("{} omap entries of object id {} were quarantined", entries, nid));
}

void Repair::announce_omap(const Finding& finding) {
  std::string value;
  OnodeRecord record;
  ExtentShard shard;
  if (!get(finding.key, &value) || !decode_onode(value, &record, &shard) || record.test(OnodeRecord::has_omap)) {
    return;
  }
  record.set(OnodeRecord::has_omap, true);
  std::string encoded;
  encode_onode(record, shard, &encoded);
  m_transaction->batch.put(finding.key, encoded);
  changed(fmt::format("object {} has its omap again", finding.object));
  flush(true);
}

// ---- slots

// All extents in such a slot get to name it in one way, as blocks of the whole slot that may be shared; so their
// references are counted together, whichever write filled the blocks.
void Repair::share_conflicts() {
  SharedSlots slots = conflicting_slots();
  vtkv::DB& database = m_cube.database();
  for (const char prefix : {key_prefix::object, key_prefix::extent}) {
    const auto it = database.new_iterator(std::string(1, prefix), std::string(1, static_cast<char>(prefix + 1)));
    for (it->seek_to_first(); it->valid(); it->next()) {
      OnodeRecord record;
      ExtentShard shard;
      std::string encoded;
      if (prefix == key_prefix::object) {
        if (decode_onode(it->value(), &record, &shard) && share(&shard, &slots)) {
          encode_onode(record, shard, &encoded);
        }
      } else if (decode_extent_shard(it->value(), &shard) && share(&shard, &slots)) {
        encode_extent_shard(shard, &encoded);
      }
      if (!encoded.empty()) {
        m_transaction->batch.put(it->key(), encoded);
      }
    }
    if (!it->status().ok()) {
      m_status = it->status();
      return;
    }
  }
  for (auto& [packed, counts] : slots) {
    for (uint32_t& count : counts) {
      count += count > 0 ? quarantined_references() : 0;
    }
    put_counts(SlotAddress::unpack(packed), counts);
  }
}

Repair::SharedSlots Repair::conflicting_slots() {
  SharedSlots slots;
  for (const auto& [packed, entry] : m_fsck.damaged_references()) {
    if (entry.conflict) {
      slots[SlotAddress::unpack(packed).whole().packed()];
    }
  }
  for (const auto& [packed, entry] : m_fsck.damaged_references()) {
    const SlotAddress slot = SlotAddress::unpack(packed);
    const auto found = slots.find(slot.whole().packed());
    if (found == slots.end()) {
      continue;
    }
    const size_t written = slot == slot.whole() ? entry.written_blocks : slot_blocks(slot.container());
    found->second.resize(std::max(found->second.size(), written));
    if (!entry.kept.empty() && slot != slot.whole()) {
      put_counts(slot, {});
    }
  }
  return slots;
}

bool Repair::share(ExtentShard* shard, SharedSlots* slots) {
  bool any = false;
  ExtentShard::for_each_extent(*shard, [&](Extent& extent) {
    const auto found = slots->find(extent.slot.whole().packed());
    if (found == slots->end()) {
      return;
    }
    SlotReferences::Counts& counts = found->second;
    if (extent.slot.first_block() + extent.slot_block + extent.count > counts.size()) {
      return;  // of an orphaned shard, which nothing counted
    }
    extent.shared = true;
    extent.slot_block += extent.slot.first_block();
    extent.slot = extent.slot.whole();
    extent.slot_written_blocks = static_cast<uint32_t>(counts.size());
    for (uint32_t i = 0; i < extent.count; ++i) {
      ++counts[extent.slot_block + i];
    }
    any = true;
  });
  return any;
}

// While something is quarantined that may own blocks, a count is not lowered; and where the count was lost, too, or was
// too low, the quarantined one may be among those that refer to the block.
void Repair::put_count(SlotAddress slot, const ReferenceAudit::Entry& entry) {
  SlotReferences::Counts counts = entry.counts();
  for (uint32_t block = 0; m_fsck.has_quarantined_owners() && block < counts.size(); ++block) {
    const bool shared = counts[block] > 0 && !(block < entry.exclusive.size() && entry.exclusive[block]);
    const bool unknown = entry.kept.empty() || counts[block] > entry.kept_of(block);
    counts[block] = std::max(counts[block] + (shared && unknown ? quarantined_references() : 0), entry.kept_of(block));
  }
  put_counts(slot, counts);
}

void Repair::put_counts(SlotAddress slot, SlotReferences::Counts counts) {
  counts.resize(slot_blocks(slot.size_class));
  for (uint32_t first = 0; first < counts.size(); first += kReferenceGroupBlocks) {
    const size_t blocks = std::min<size_t>(kReferenceGroupBlocks, counts.size() - first);
    const std::string key = slot_reference_key(slot, first / kReferenceGroupBlocks);
    const std::string value = SlotReferences::encode(std::span(counts).subspan(first, blocks));
    value.empty() ? m_transaction->batch.remove(key) : m_transaction->batch.put(key, value);
  }
  changed(fmt::format("the references to the blocks of {} were counted", describe_slot(slot)));
}

void Repair::claim(const SlotBlocks& blocks) {
  std::vector<SlotBlocks> claimed;
  if (const Status status = m_cube.containers().claim(blocks, &claimed); !status.ok()) {
    m_status = status.is_no_space() && m_status.ok() ? status : m_status;
    // Claimed with an earlier finding; or past the container's end, say: there is nothing to be owned. Reads of it
    // fail.
    return;
  }
  for (const SlotBlocks& one : claimed) {
    m_transaction->delta.allocation.allocated.push_back(one);
    changed(fmt::format("{} was marked as owned", describe_blocks(one)));
  }
}

// What was counted names every pool that is said to have something, too.
void Repair::recount_usage() {
  std::map<int64_t, PoolUsage> said = m_cube.cube.pool_usage();
  for (const auto& [pool, counted] : m_fsck.usage()) {
    const PoolUsage& before = said[pool];
    PoolUsage difference;
    for (const auto sum : PoolUsage::kSums) {
      difference.*sum = sum == &PoolUsage::omap ? 0 : counted.*sum - before.*sum;
    }
    if (!difference.is_zero()) {
      m_transaction->delta.pools[pool] = difference;
      changed(fmt::format("pool {} has {} objects of {} bytes in {} bytes of slots now", pool, counted.objects,
                          counted.stored, counted.allocated));
    }
  }
}

// ---- transactions

void Repair::changed(std::string text) { m_changes->push_back({m_kind, std::move(text)}); }

void Repair::flush(bool all) {
  const CubeDelta& delta = m_transaction->delta;
  const size_t slots = delta.allocation.allocated.size() + delta.allocation.freed.size();
  const size_t bytes = m_transaction->batch.encoded_bytes() + slots * sizeof(SlotBlocks);
  if (!m_status.ok() || m_transaction->empty() || (!all && bytes < kTransactionBytes)) {
    return;
  }
  m_status = m_transaction->commit(m_cube.cube);
  m_transaction = std::make_unique<Transaction>(m_store.env);
}

Status Repair::put_back(StoreContext& store, StoreCube& cube, uint64_t* entries, uint64_t* left) {
  vtkv::DB& database = cube.database();
  const std::string lower(1, key_prefix::quarantined);
  const std::string upper(1, static_cast<char>(key_prefix::quarantined + 1));
  std::map<std::string, uint32_t> newest;  // they ascend by number
  const auto it = database.new_iterator(lower, upper);
  uint32_t number = 0;
  std::string_view key;
  for (it->seek_to_first(); it->valid(); it->next()) {
    if (decode_quarantined_key(it->key(), &number, &key)) {
      newest[std::string(key)] = number;
    }
  }
  VTKV_RETURN_IF_ERROR(it->status());
  auto transaction = std::make_unique<Transaction>(store.env);
  for (it->seek_to_first(); it->valid(); it->next()) {
    std::string present;
    const bool is_newest = decode_quarantined_key(it->key(), &number, &key) && newest[std::string(key)] == number;
    const Status status = is_newest ? database.get(std::string(key), &present) : Status();
    if (!status.is_not_found()) {
      VTKV_RETURN_IF_ERROR(status);
      ++*left;
      continue;
    }
    transaction->batch.put(key, it->value());
    transaction->batch.remove(it->key());
    ++*entries;
    if (transaction->batch.encoded_bytes() >= kTransactionBytes) {
      VTKV_RETURN_IF_ERROR(transaction->commit(cube.cube));
      transaction = std::make_unique<Transaction>(store.env);
    }
  }
  VTKV_RETURN_IF_ERROR(it->status());
  return transaction->empty() ? Status() : transaction->commit(cube.cube);
}

Status Repair::forget_quarantined(StoreContext& store, StoreCube& cube, uint64_t* entries) {
  const std::string lower(1, key_prefix::quarantined);
  const std::string upper(1, static_cast<char>(key_prefix::quarantined + 1));
  const auto it = cube.database().new_iterator(lower, upper);
  uint64_t found = 0;
  for (it->seek_to_first(); it->valid(); it->next()) {
    ++found;
  }
  VTKV_RETURN_IF_ERROR(it->status());
  Transaction transaction(store.env);
  transaction.batch.remove_range(lower, upper);
  *entries += found;
  return found > 0 ? transaction.commit(cube.cube) : Status();
}

}  // namespace swimstore
