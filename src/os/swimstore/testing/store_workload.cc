// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/store_workload.h"

#include <algorithm>

namespace swimstore {

namespace {

constexpr uint64_t kLargeValueBytes = 8000;

ceph::bufferlist to_bufferlist(const std::string& text) {
  ceph::bufferlist out;
  out.append(text);
  return out;
}

void write_at(std::string* data, uint64_t offset, const std::string& bytes) {
  data->resize(std::max<size_t>(data->size(), offset + bytes.size()));
  data->replace(offset, bytes.size(), bytes);
}

}  // namespace

StoreWorkload::StoreWorkload(const coll_t& cid, const WorkloadOptions& options, ModelCollection model)
    : m_cid(cid), m_options(options), m_random(options.seed), m_model(std::move(model)) {}

ghobject_t StoreWorkload::any_name() {
  spg_t pg;
  m_cid.is_pg(&pg);
  const uint64_t number = pick(m_options.objects);
  const uint32_t hash = pg.ps() | static_cast<uint32_t>(number % m_options.hashes * 2654435761u) << 8;
  return ghobject_t(hobject_t(object_t("object_" + std::to_string(number)), "", CEPH_NOSNAP, hash, pg.pool(), ""));
}

ghobject_t StoreWorkload::existing() { return std::next(m_model.begin(), pick(m_model.size()))->first; }

std::string StoreWorkload::bytes(uint64_t count) {
  std::string out(count, '\0');
  uint64_t word = 0;
  for (uint64_t i = 0; i < count; i += sizeof(uint64_t)) {
    word = m_options.compressible && i % 64 != 0 ? word : m_random();
    std::memcpy(out.data() + i, &word, std::min<uint64_t>(sizeof word, count - i));
  }
  return out;
}

// Blocks, and offsets that are no block's boundary, alike.
uint64_t StoreWorkload::any_offset() {
  const uint64_t offset = pick(m_options.object_bytes_max);
  return pick(2) == 0 ? offset / 4096 * 4096 : offset;
}

uint64_t StoreWorkload::any_length() {
  switch (pick(4)) {
    case 0:
      return 4096;
    case 1:
      return 1 + pick(5000);
    case 2:
      return 4096 * (1 + pick(6));
    default:
      return 1 + pick(m_options.object_bytes_max / 2);
  }
}

ObjectStore::Transaction StoreWorkload::next() {
  Transaction txn;
  const uint64_t count = 1 + pick(m_options.operations_max);
  for (uint64_t i = 0; i < count; ++i) {
    add_operation(&txn);
  }
  return txn;
}

void StoreWorkload::add_operation(Transaction* txn) {
  if (m_model.empty()) {
    write(txn);
    return;
  }
  switch (pick(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return add_data_operation(txn);
    case 5:
      return add_attr_operation(txn);
    case 6:
    case 7:
      return add_omap_operation(txn);
    default:
      return add_copy_operation(txn);
  }
}

void StoreWorkload::write(Transaction* txn) {
  const ghobject_t oid = any_name();
  const uint64_t offset = any_offset();
  const std::string data = bytes(any_length());
  txn->write(m_cid, oid, offset, data.size(), to_bufferlist(data));
  write_at(&m_model[oid].data, offset, data);
}

void StoreWorkload::zero(Transaction* txn, const ghobject_t& oid) {
  const uint64_t offset = any_offset();
  const uint64_t length = any_length();
  txn->zero(m_cid, oid, offset, length);
  write_at(&m_model[oid].data, offset, std::string(length, '\0'));
}

void StoreWorkload::truncate(Transaction* txn, const ghobject_t& oid) {
  const uint64_t size = pick(4) == 0 ? 0 : any_offset();
  txn->truncate(m_cid, oid, size);
  m_model[oid].data.resize(size);
}

void StoreWorkload::add_data_operation(Transaction* txn) {
  switch (pick(8)) {
    case 0:
      return zero(txn, existing());
    case 1:
      return truncate(txn, existing());
    case 2: {
      const ghobject_t oid = any_name();
      txn->touch(m_cid, oid);
      m_model[oid];
      return;
    }
    case 3: {
      const ghobject_t oid = existing();
      txn->remove(m_cid, oid);
      m_model.erase(oid);
      return;
    }
    default:
      return write(txn);
  }
}

void StoreWorkload::add_attr_operation(Transaction* txn) {
  const ghobject_t oid = existing();
  ModelObject& object = m_model[oid];
  const std::string name = any_key();
  switch (pick(4)) {
    case 0:
      txn->rmattrs(m_cid, oid);
      object.attrs.clear();
      return;
    case 1:
      txn->rmattr(m_cid, oid, name);
      object.attrs.erase(name);
      return;
    default: {
      const std::string value = bytes(1 + pick(300));
      ceph::bufferlist bl = to_bufferlist(value);
      txn->setattr(m_cid, oid, name, bl);
      object.attrs[name] = value;
      return;
    }
  }
}

void StoreWorkload::add_omap_operation(Transaction* txn) {
  const ghobject_t oid = existing();
  ModelObject& object = m_model[oid];
  const std::string key = any_key();
  switch (pick(8)) {
    case 0:
      txn->omap_clear(m_cid, oid);
      object.omap.clear();
      object.omap_header.clear();
      return;
    case 1:
      txn->omap_rmkeys(m_cid, oid, std::set<std::string>{key});
      object.omap.erase(key);
      return;
    case 2: {
      const std::string last = any_key();
      const auto [low, high] = std::minmax(key, last);
      txn->omap_rmkeyrange(m_cid, oid, low, high);
      object.omap.erase(object.omap.lower_bound(low), object.omap.lower_bound(high));
      return;
    }
    case 3: {
      object.omap_header = bytes(1 + pick(100));
      txn->omap_setheader(m_cid, oid, to_bufferlist(object.omap_header));
      return;
    }
    default: {
      std::map<std::string, ceph::bufferlist> values;
      const bool large = pick(16) == 0;  // a batch that no segment of a small log holds
      for (uint64_t i = 0; large ? i < kKeys : i <= pick(4); ++i) {
        const std::string one = large ? key_of(i) : any_key();
        object.omap[one] = bytes(large ? kLargeValueBytes : pick(500));
        values[one] = to_bufferlist(object.omap[one]);
      }
      txn->omap_setkeys(m_cid, oid, values);
      return;
    }
  }
}

void StoreWorkload::clone_range(Transaction* txn, const ghobject_t& from) {
  const ghobject_t to = any_name();
  const std::string& source = m_model[from].data;
  if (to == from || source.empty()) {
    return write(txn);
  }
  const uint64_t offset = pick(source.size());
  const uint64_t length = 1 + pick(source.size() - offset);
  const uint64_t target = any_offset();
  txn->clone_range(m_cid, from, to, offset, length, target);
  const std::string slice = source.substr(offset, length);
  write_at(&m_model[to].data, target, slice);
}

void StoreWorkload::add_copy_operation(Transaction* txn) {
  const ghobject_t from = existing();
  const ghobject_t to = any_name();
  if (to == from) {
    return write(txn);
  }
  switch (pick(3)) {
    case 0:
      if (to.hobj.get_hash() != from.hobj.get_hash()) {
        return clone_range(txn, from);
      }
      txn->clone(m_cid, from, to);
      m_model[to] = m_model[from];
      return;
    case 1:
      return clone_range(txn, from);
    default:
      if (m_model.contains(to)) {
        txn->remove(m_cid, to);
      }
      txn->collection_move_rename(m_cid, from, m_cid, to);
      m_model[to] = m_model[from];
      m_model.erase(from);
      return;
  }
}

}  // namespace swimstore
