// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/txn_planner.h"

#include "common/debug.h"

#define dout_context m_plan.store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.plan "

namespace swimstore {

namespace {

// No overflow: both come from 64-bit fields of a message.
bool too_big(uint64_t offset, uint64_t length) {
  return offset >= kObjectBytesMax || length >= kObjectBytesMax - offset;
}

}  // namespace

void TxnPlanner::touch(OnodeRef& onode, int64_t pool) {
  m_plan.change(onode, pool);
  if (onode->exists) {
    return;
  }
  onode->exists = true;
  onode->record = OnodeRecord();
  onode->record.nid = m_plan.new_object_id();
  onode->record.set(OnodeRecord::shard_inline, true);
  if (pool < 0 && m_plan.store.cubes.size() > 1) {
    // What other cubes' transactions do to its omap cannot be told to the record.
    onode->record.set(OnodeRecord::omap_in_parts, true);
    onode->record.set(OnodeRecord::has_omap, true);
  }
  onode->extents.clear();
  m_plan.usage.of(pool).objects += 1;
}

int TxnPlanner::write(OnodeRef& onode, uint64_t offset, uint64_t length, ceph::bufferlist& data) {
  if (too_big(offset, length)) {
    return -E2BIG;
  }
  if (data.length() != length) {
    derr << "a write of " << length << " bytes to object " << onode->oid << " carries " << data.length() << dendl;
    return -EINVAL;
  }
  return m_data.write(*onode, offset, data);
}

int TxnPlanner::zero(OnodeRef& onode, uint64_t offset, uint64_t length) {
  return too_big(offset, length) ? -E2BIG : m_data.zero(*onode, offset, length);
}

int TxnPlanner::truncate(OnodeRef& onode, uint64_t size) {
  return too_big(size, 0) ? -E2BIG : m_data.truncate(*onode, size);
}

int TxnPlanner::remove(OnodeRef& onode) {
  m_plan.store.injected.forget(onode->oid);
  m_witnesses.remove_object(onode->oid);
  return discard(onode);
}

int TxnPlanner::discard(OnodeRef& onode) {
  int r = m_data.remove(*onode);
  if (r == 0) {
    r = m_omap.end(*onode);
  }
  if (r < 0) {
    return r;
  }
  onode->exists = false;
  onode->record = OnodeRecord();
  m_plan.usage.of(m_plan.change(onode, 0).pool).objects -= 1;
  return 0;
}

void TxnPlanner::set_attr(OnodeRef& onode, std::string name, ceph::bufferptr value) {
  if (value.length() == 0) {
    value = ceph::bufferptr("", 0);  // what a message holds of it has no memory at all
  } else if (value.is_partial()) {
    // Else the attribute would keep the whole message in memory.
    value = ceph::bufferptr(value.c_str(), value.length());
  }
  onode->record.attrs[std::move(name)] = std::move(value);
}

int TxnPlanner::clone(OnodeRef& source, OnodeRef& target, int64_t pool) {
  if (source == target) {
    return 0;
  }
  m_plan.change(source, pool);
  touch(target, pool);
  int r = m_data.truncate(*target, 0);
  if (r == 0) {
    r = m_data.clone_range(*source, *target, 0, source->record.size, 0);
  }
  if (r == 0) {
    target->record.attrs = source->record.attrs;
    r = m_omap.clear(*target);
  }
  return r < 0 ? r : m_omap.clone(*source, *target);
}

int TxnPlanner::clone_range(OnodeRef& source, OnodeRef& target, int64_t pool, uint64_t source_offset, uint64_t length,
                            uint64_t target_offset) {
  if (too_big(source_offset, length) || too_big(target_offset, length)) {
    return -E2BIG;
  }
  if (source_offset + length > source->record.size) {
    return -EINVAL;
  }
  m_plan.change(source, pool);
  touch(target, pool);
  return m_data.clone_range(*source, *target, source_offset, length, target_offset);
}

int TxnPlanner::rename(OnodeRef& source, OnodeRef& target, int64_t pool) {
  if (target->exists) {
    return -EEXIST;
  }
  m_plan.change(source, pool);
  m_plan.change(target, pool);
  // Extents and omap hang on the nid: they move with the record. The padding counted for the source is
  // the target's from now on.
  if (source->has_omap_in_parts()) {
    m_plan.store.parts_in_doubt.object_changes(source->record.nid);
  }
  TxnPlan::ChangedObject& from = m_plan.changed[source->change - 1];
  TxnPlan::ChangedObject& to = m_plan.changed[target->change - 1];
  target->record = std::exchange(source->record, OnodeRecord());
  target->extents.take(&source->extents);
  target->exists = true;
  source->exists = false;
  if (from.counts_data || to.counts_data) {
    if (!from.counts_data) {
      // Not touched so far: what it has now is what it had.
      const int r = m_data.tail_padding(*target, &from.tail_padding);
      if (r < 0) {
        return r;
      }
    }
    to.tail_padding += std::exchange(from.tail_padding, 0);
    to.worn_shards = std::exchange(from.worn_shards, {});
    from.counts_data = to.counts_data = true;
  }
  m_plan.store.injected.forget(source->oid);
  return 0;
}

int TxnPlanner::encode(TxnPlan::ChangedObject& changed) {
  Onode& onode = *changed.onode;
  vtkv::WriteBatch& batch = m_plan.batch();
  int r = m_data.settle(changed);
  if (r < 0) {
    return r;
  }
  if (!onode.exists) {
    if (changed.existed) {
      batch.remove(onode.key);
    }
    m_plan.home.onodes.resized(onode);  // of a removed object, or the source of a rename: its extents are gone
    return 0;
  }
  OnodeRecord& record = onode.record;
  const bool was_inline = record.test(OnodeRecord::shard_inline);
  const bool is_inline = record.size <= kShardBytes;
  if (is_inline && !was_inline) {
    const vtkv::Status status = m_plan.home.onodes.load_extents(onode, 0, 0);
    if (!status.ok()) {
      return m_plan.store.metadata_failure.met(m_plan.home.number, status, "the extents of object ", onode.oid);
    }
    batch.remove_range(extent_key(record.nid, 0), extent_range_end(record.nid));
    onode.extents.set_all_loaded();
  } else if (was_inline && !is_inline) {
    onode.extents.mark_dirty(0);
  }
  record.set(OnodeRecord::shard_inline, is_inline);
  std::string value;
  for (const uint32_t number : onode.extents.take_dirty()) {
    if (is_inline) {
      continue;
    }
    const ExtentShard& shard = onode.extents.shard(number);
    if (shard.empty()) {
      batch.remove(extent_key(record.nid, number));
      continue;
    }
    value.clear();
    encode_extent_shard(shard, &value);
    batch.put(extent_key(record.nid, number), value);
  }
  value.clear();
  static const ExtentShard no_extents;
  encode_onode(record, is_inline ? onode.extents.shard(0) : no_extents, &value);
  batch.put(onode.key, value);
  m_plan.home.onodes.resized(onode);
  return 0;
}

}  // namespace swimstore
