// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/isolation/lost_groups.h"

#include <algorithm>

#include "common/debug.h"
#include "os/ObjectStore.h"
#include "osd/osd_types.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/witness.h"
#include "swimstore/omap/object_omap.h"
#include "swimstore/omap/witness_writer.h"
#include "swimstore/transaction/transaction_pipeline.h"
#include "vtkv/util/invariants.h"

#define dout_context store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.isolation "

namespace swimstore {

using vtkv::Status;

namespace {

using Values = std::map<std::string, std::string>;  // by their omap keys; under "", the group itself

struct Witnesses {
  std::map<coll_t, Values> groups;
  bool are_complete = false;  // no group is without
  std::vector<std::string> damaged;  // keys
};

Status read_witnesses(StoreContext& store, Witnesses* witnesses) {
  const auto entries = store.cubes[0].database().new_iterator(std::string(1, key_prefix::witness),
                                                              std::string(1, key_prefix::witness + 1));
  for (entries->seek_to_first(); entries->valid(); entries->next()) {
    coll_t cid;
    std::string_view item;
    WitnessedGroup group;
    if (!decode_witness_key(entries->key(), &cid, &item) ||
        (item.empty() && !decode_witnessed_group(entries->value(), &group))) {
      witnesses->damaged.emplace_back(entries->key());
    } else {
      witnesses->groups[cid].emplace(item, entries->value());
    }
  }
  witnesses->are_complete = witnesses->groups.erase(coll_t::meta()) > 0;
  return entries->status();
}

ghobject_t pgmeta_of(const coll_t& cid) {
  spg_t pgid;
  VTKV_ASSERT(cid.is_pg(&pgid));
  return pgid.make_pgmeta_oid();
}

// Of the group's own object, those that are there.
Status read_values(StoreContext& store, Collection& collection, Values* values) {
  SharedLock lock(collection.lock);
  StoreCube& home = store.home(collection);
  OnodeRef pgmeta;
  VTKV_RETURN_IF_ERROR(home.onodes.find(pgmeta_of(collection.cid), &pgmeta));
  for (const std::string_view key : kWitnessedKeys) {
    std::string value;
    const Status status = pgmeta->exists ? ObjectOmap(store, home, *pgmeta).get(key, &value) : Status::not_found("");
    if (status.ok()) {
      values->emplace(key, std::move(value));
    } else if (!status.is_not_found()) {
      return status;
    }
  }
  return {};
}

// The group as it is now.
Status witness_of(StoreContext& store, Collection& collection, Values* witness) {
  VTKV_RETURN_IF_ERROR(read_values(store, collection, witness));
  for (auto& [key, value] : *witness) {
    value = witnessed_value(key, value).value_or(value);
  }
  SharedLock lock(collection.lock);
  witness->emplace("", encode_witnessed_group({collection.record.bits, collection.record.home()}));
  return {};
}

// What a copy that has nothing yet is to say.
Status to_lost_group(const coll_t& cid, const WitnessedGroup& witnessed, const Values& values, LostGroup* lost) {
  *lost = {cid, witnessed.bits, {}};
  for (const std::string_view key : kWitnessedKeys) {
    const auto found = values.find(std::string(key));
    const auto value = found == values.end() ? std::nullopt : witnessed_value(key, found->second);
    if (!value || value->empty()) {
      return Status::corruption("placement group '" + cid.to_str() + "' lay in cube " + std::to_string(witnessed.home) +
                                ", and its " + std::string(key) + " as cube 0 has it cannot be decoded");
    }
    lost->values.emplace(key, *value);
  }
  return {};
}

// Not in one of these, from which collections may have been read before they were found damaged.
bool has_record_elsewhere(StoreContext& store, const coll_t& cid, const MissingCubes& cubes) {
  const CollectionRef collection = store.collections.find(cid);
  if (!collection) {
    return false;
  }
  SharedLock lock(collection->lock);
  return !cubes.contains(collection->record.home());
}

// Has the one, with so many bits, all objects that the other would have?
bool covers(const coll_t& one, uint32_t bits, const coll_t& other, uint32_t other_bits) {
  spg_t a, b;
  return one.is_pg(&a) && other.is_pg(&b) && one != other && a.pool() == b.pool() && a.shard == b.shard &&
         bits < other_bits && (b.ps() & ((uint64_t{1} << bits) - 1)) == a.ps();
}

// Those that were merged into another: a crash came before their witnesses were removed.
void remove_merged(StoreContext& store, const MissingCubes& cubes, std::vector<LostGroup>* lost) {
  std::vector<std::pair<coll_t, uint32_t>> groups;
  for (const LostGroup& group : *lost) {
    groups.emplace_back(group.cid, group.bits);
  }
  for (const CollectionRef& collection : store.collections.all()) {
    SharedLock lock(collection->lock);
    if (!cubes.contains(collection->record.home())) {
      groups.emplace_back(collection->cid, collection->record.bits);
    }
  }
  std::erase_if(*lost, [&groups](const LostGroup& group) {
    return std::any_of(groups.begin(), groups.end(), [&group](const auto& other) {
      return covers(other.first, other.second, group.cid, group.bits);
    });
  });
}

}  // namespace

Status find_lost_groups(StoreContext& store, const MissingCubes& cubes, std::vector<LostGroup>* lost) {
  Witnesses witnesses;
  VTKV_RETURN_IF_ERROR(read_witnesses(store, &witnesses));
  if (!witnesses.are_complete || !witnesses.damaged.empty()) {
    return Status::corruption(witnesses.damaged.empty()
                                  ? "cube 0 does not know all placement groups: the store was not mounted as a whole "
                                    "since its upgrade, or since it got more cubes"
                                  : std::to_string(witnesses.damaged.size()) +
                                        " entries of what cube 0 knows of placement groups are damaged");
  }
  for (const auto& [cid, values] : witnesses.groups) {
    const auto group = values.find("");
    WitnessedGroup witnessed;
    if (group == values.end() || !decode_witnessed_group(group->second, &witnessed)) {
      return Status::corruption("what cube 0 knows of placement group '" + cid.to_str() + "' is not whole");
    }
    if (cubes.contains(witnessed.home) && !has_record_elsewhere(store, cid, cubes) &&
        values.contains(std::string(kInfoKey))) {
      VTKV_RETURN_IF_ERROR(to_lost_group(cid, witnessed, values, &lost->emplace_back()));
    }
  }
  remove_merged(store, cubes, lost);
  return {};
}

Status find_groups_without_info(StoreContext& store, std::vector<LostGroup>* found) {
  Witnesses witnesses;
  VTKV_RETURN_IF_ERROR(read_witnesses(store, &witnesses));
  for (const CollectionRef& collection : store.collections.all()) {
    const auto known = witnesses.groups.find(collection->cid);
    if (known == witnesses.groups.end() || !known->second.contains(std::string(kInfoKey))) {
      continue;
    }
    Values values;
    VTKV_RETURN_IF_ERROR(read_values(store, *collection, &values));
    if (!values.contains(std::string(kInfoKey))) {
      SharedLock lock(collection->lock);
      const WitnessedGroup now{collection->record.bits, collection->record.home()};
      VTKV_RETURN_IF_ERROR(to_lost_group(collection->cid, now, known->second, &found->emplace_back()));
    }
  }
  return {};
}

Status make_anew(StoreContext& store, TransactionPipeline& pipeline, const std::vector<LostGroup>& lost) {
  std::vector<CollectionRef> made;
  for (const LostGroup& group : lost) {
    std::map<std::string, ceph::bufferlist> values;
    for (const auto& [key, value] : group.values) {
      values[key].append(value);
    }
    const ghobject_t pgmeta = pgmeta_of(group.cid);
    std::vector<ObjectStore::Transaction> transactions(1);
    made.push_back(store.collections.find(group.cid));
    if (!made.back()) {
      made.back() = store.collections.prepare(group.cid);
      transactions[0].create_collection(group.cid, static_cast<int>(group.bits));
    }
    transactions[0].touch(group.cid, pgmeta);
    transactions[0].omap_clear(group.cid, pgmeta);  // of a log that has lost its info
    transactions[0].omap_setkeys(group.cid, pgmeta, values);
    pipeline.queue(made.back(), transactions, nullptr);
    dout(0) << "placement group " << group.cid << " has lost its info or its cube: it is to be filled anew by its peers"
            << dendl;
  }
  for (const CollectionRef& collection : made) {
    if (!collection->sequencer->wait_for_all()) {
      return Status::failed("nothing can be made durable any more");
    }
  }
  return {};
}

Status check_witnessed_homes(StoreContext& store) {
  Witnesses witnesses;
  VTKV_RETURN_IF_ERROR(read_witnesses(store, &witnesses));
  for (const auto& [cid, values] : witnesses.groups) {
    const auto group = values.find("");
    WitnessedGroup witnessed;
    if (group != values.end() && decode_witnessed_group(group->second, &witnessed) &&
        witnessed.home >= store.cubes.size()) {
      return Status::failed("placement group '" + cid.to_str() + "' lies in cube " + std::to_string(witnessed.home) +
                            ", and the superblock says that there are " + std::to_string(store.cubes.size()) +
                            " cubes: is it an old copy? Nothing was changed: bring back a newer one");
    }
  }
  return {};
}

Status check_readable(StoreContext& store, Collection& collection) {
  Values ignored;
  return read_values(store, collection, &ignored);
}

Status settle_witnesses(StoreContext& store) {
  Witnesses witnesses;
  VTKV_RETURN_IF_ERROR(read_witnesses(store, &witnesses));
  vtkv::WriteBatch batch;
  for (const std::string& key : witnesses.damaged) {
    batch.remove(key);
  }
  for (const CollectionRef& collection : store.collections.all()) {
    if (!collection->cid.is_pg()) {
      continue;
    }
    Values now;
    VTKV_RETURN_IF_ERROR(witness_of(store, *collection, &now));
    const auto known = witnesses.groups.extract(collection->cid);
    const bool is_right = known && known.mapped() == now;
    if (!is_right) {
      remove_witness(collection->cid, &batch);
    }
    for (auto& [key, value] : now) {
      if (!is_right) {
        batch.put(witness_key(collection->cid, key), value);
      }
      store.witnessed.set(collection->cid, key, std::move(value));
    }
  }
  for (const auto& [cid, values] : witnesses.groups) {
    remove_witness(cid, &batch);
  }
  if (!witnesses.are_complete) {
    batch.put(witness_key(coll_t::meta(), ""), encode_witnessed_group({}));
  }
  return batch.empty() ? Status() : store.cubes[0].database().write(std::move(batch));
}

Status witness_homes(StoreContext& store, const std::vector<OutdatedRecord>& outdated) {
  vtkv::WriteBatch batch;
  for (const OutdatedRecord& record : outdated) {
    const CollectionRef collection = store.collections.find(record.cid);
    SharedLock lock(collection->lock);
    if (record.cid.is_pg()) {
      batch.put(witness_key(record.cid, ""),
                encode_witnessed_group({collection->record.bits, collection->record.home()}));
    }
  }
  return batch.empty() ? Status() : store.cubes[0].database().write(std::move(batch));
}

Status find_unfilled_groups(StoreContext& store, std::vector<coll_t>* unfilled) {
  for (const CollectionRef& collection : store.collections.all()) {
    Values values;
    if (collection->cid.is_pg()) {
      VTKV_RETURN_IF_ERROR(read_values(store, *collection, &values));
    }
    const auto encoded = values.find(std::string(kInfoKey));
    if (encoded == values.end()) {
      continue;
    }
    const std::optional<pg_info_t> info = decode_info(encoded->second);
    if (!info) {
      return Status::corruption("the info of placement group '" + collection->cid.to_str() + "' cannot be decoded");
    }
    if (info->is_incomplete()) {
      unfilled->push_back(collection->cid);
    }
  }
  return {};
}

}  // namespace swimstore
