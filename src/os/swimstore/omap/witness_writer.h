// SPDX-License-Identifier: LGPL-2.1-or-later
// What a transaction changes of the witnesses of placement groups (format/witness.h).
//
// A witness is no older than what it witnesses: cube 0 has it before the group's own cube has the transaction. One that
// is newer, for a crash came between, only makes Ceph stricter when it looks for the newest copy of the group. A
// group's removal is the other way round: durable in its cube first.
//
// Of an info only that is witnessed which a copy without objects would say, and it is written when it is another than
// before: when the group peers, not when clients write. An epoch alone is not waited for. The map that it names goes by
// a transaction of cube 0, too, and that comes later.
//
// Not thread-safe: one transaction's.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "osd/osd_types.h"

#include "swimstore/object/store_context.h"
#include "vtkv/write_batch.h"

namespace swimstore {

class WitnessWriter {
 public:
  // Of a transaction that commits in `home`.
  WitnessWriter(StoreContext& store, StoreCube& home) : m_store(store), m_home(home) {}

  // A group was made, has other bits now, or moved to this home.
  void set_group(const coll_t& cid, uint32_t bits);
  // Omap keys of an object are set: `encoded` as in Transaction::omap_setkeys.
  void set_keys(const ghobject_t& oid, const ceph::bufferlist& encoded);
  void remove(const coll_t& cid);
  // A group's own object goes first where an OSD, or a tool, removes all of it step by step: then it is no lost one.
  void remove_object(const ghobject_t& oid);

  bool has_news() const { return !m_news.empty(); }
  bool has_removals() const { return !m_removed.empty(); }
  // Before the transaction is submitted. Waits until it is durable, unless there is only an epoch. False: nothing
  // becomes durable any more.
  bool write();
  // After the transaction was submitted, with this sequence in its home; 0: that refused it. Waits when a group or its
  // own object was removed. Does nothing where nothing becomes durable any more: the process is about to end.
  void write_removals(vtkv::SequenceNumber sequence);

 private:
  struct News {
    coll_t cid;
    std::string item, value;
  };

  bool keeps() const { return m_store.keeps_witnesses; }
  void add(const coll_t& cid, std::string item, std::string value);

  StoreContext& m_store;
  StoreCube& m_home;
  std::vector<News> m_news;
  std::set<coll_t> m_removed;
};

// Of a group that is gone.
void remove_witness(const coll_t& cid, vtkv::WriteBatch* batch);

// Nothing: it cannot be decoded.
std::optional<pg_info_t> decode_info(const std::string& encoded);

// What is witnessed of the value of such an omap key: of an info, what a copy that has nothing yet would say, and
// remember when this one was last in use; of the intervals, those alone; of others all. Nothing: it cannot be decoded.
std::optional<std::string> witnessed_value(std::string_view key, const std::string& value);

}  // namespace swimstore
