// SPDX-License-Identifier: LGPL-2.1-or-later
// Changes of an omap that is kept in parts (omap/object_omap.h), as part of a transaction of any cube. What is written
// lies in the transaction's own cube: no transaction spans cubes, so after a crash each cube has lost a tail of its
// own, or nothing.
//
// What holds after a crash: the omap is what the transactions make of it that are left, in the order in which they were
// queued. Per key, the last of them that touched the key decides.
//
//   Sets. A row has a write id greater than that of every row before it. The transaction's note carries the id, so what
//     is given after the crash is greater than that of any row that is left.
//   Removals. Where nothing but the transaction's own cube can have a row of the key, the row goes, without a trace:
//     the removal and the row come and go together, in one log. Where another cube has one, whatever it says, a
//     tombstone takes the key's place: that row may outlive this removal, or come after it in the order, and write ids
//     tell. And where another cube had one, and its removal is not durable yet, a tombstone as well: else this removal
//     might outlive that one, and the row that both removed would count again. (PartsInDoubt knows these.) So a key
//     that is in two cubes keeps a row in each that had one, until the sweeper ends them (part_sweeper.h).
//   Clearing, by a transaction of cube 0 alone, writes a floor there: rows with a smaller write id do not count, in
//     whatever cube they are, and whenever they come back. The transaction's later rows get an id that is not below it.
//   Removal of the object, by a transaction of cube 0 alone, too: its id is never given again, so its rows are never
//     found. A floor says that the other cubes may have such rows.
//   Making the object, or giving it another name: another cube writes rows of it only when that is durable.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "include/buffer.h"

#include "swimstore/omap/omap_contents.h"
#include "swimstore/omap/omap_transaction.h"

namespace swimstore {

class PartWriter {
 public:
  explicit PartWriter(OmapTransaction& txn) : m_txn(txn) {}

  // All return 0, or -EIO.

  // `encoded`: a map of strings to buffers.
  int set(const Onode& onode, const ceph::bufferlist& encoded);
  // `encoded`: a set of strings.
  int remove(const Onode& onode, const ceph::bufferlist& encoded);
  int remove_range(const Onode& onode, std::string_view first, std::string_view last);

  // REQUIRES of all that follow: the transaction commits in cube 0.

  void set_header(const Onode& onode, const ceph::bufferlist& header);
  int clear(const Onode& onode);
  // The object is being removed.
  int end(const Onode& onode);
  // REQUIRES: the target has no omap.
  int clone(const Onode& source, const Onode& target);

 private:
  class Overlay;

  // The id of what the transaction writes.
  uint64_t write_id();
  void put_value(const Onode& onode, std::string_view key, std::string_view value);
  void put_tombstone(uint64_t nid, std::string_view key);
  vtkv::Status remove_key(uint64_t nid, std::string_view key);
  vtkv::Status is_elsewhere(const std::string& row_key, bool* elsewhere);
  // Is there a row of the object in a cube, this one or another, or may there be one again?
  vtkv::Status find_rows(uint64_t nid, bool* here, bool* elsewhere);
  vtkv::Status keys_in_range(uint64_t nid, std::string_view first, std::string_view last, std::set<std::string>* keys);
  vtkv::Status make_sure_it_lasts(const Onode& onode);
  vtkv::Status read(const Onode& source, OmapContents* contents);
  int failed(const Onode& onode, const vtkv::Status& status);

  OmapTransaction& m_txn;
  uint64_t m_write_id = 0;  // 0: none taken yet
  std::unordered_set<uint64_t> m_written;  // nids whose rows this transaction wrote or removed
};

}  // namespace swimstore
