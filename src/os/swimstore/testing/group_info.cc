// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/group_info.h"

namespace swimstore {

using ceph::decode;
using ceph::encode;

namespace {

ghobject_t pgmeta_of(const coll_t& cid) {
  spg_t pgid;
  cid.is_pg(&pgid);
  return pgid.make_pgmeta_oid();
}

}  // namespace

pg_info_t info_started_in(const coll_t& cid, epoch_t epoch) {
  spg_t pgid;
  cid.is_pg(&pgid);
  pg_info_t info(pgid);
  info.history.epoch_created = 1;
  info.history.last_epoch_started = epoch - 1;
  info.history.last_interval_started = epoch - 1;
  info.last_epoch_started = info.last_interval_started = epoch;
  info.last_update = info.last_complete = eversion_t(epoch, epoch);
  return info;
}

void put_info(const coll_t& cid, epoch_t epoch, ObjectStore::Transaction* transaction, eversion_t last_update) {
  std::map<std::string, ceph::bufferlist> values;
  encode(uint8_t{10}, values["_infover"]);
  pg_info_t info = info_started_in(cid, epoch);
  info.last_update = std::max(info.last_update, last_update);
  info.encode(values["_info"]);
  PastIntervals().encode(values["_biginfo"]);
  encode(interval_set<snapid_t>(), values["_biginfo"]);
  encode(epoch, values["_epoch"]);
  transaction->touch(cid, pgmeta_of(cid));
  transaction->omap_setkeys(cid, pgmeta_of(cid), values);
}

std::optional<pg_info_t> read_info(ObjectStore& store, const coll_t& cid) {
  auto handle = store.open_collection(cid);
  std::map<std::string, ceph::bufferlist> values;
  if (!handle ||
      store.omap_get_values(handle, pgmeta_of(cid), {"_infover", "_info", "_biginfo", "_epoch"}, &values) < 0 ||
      values.size() != 4) {
    return {};
  }
  pg_info_t info;
  PastIntervals intervals;
  interval_set<snapid_t> purged;
  auto at = values["_info"].cbegin();
  info.decode(at);
  auto big = values["_biginfo"].cbegin();
  intervals.decode(big);
  decode(purged, big);
  return info;
}

}  // namespace swimstore
