// SPDX-License-Identifier: LGPL-2.1-or-later
// Changes of omap, as part of a transaction. Keys go straight into the batch, under the object's nid; those of an omap
// in parts by way of the PartWriter.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "include/buffer.h"

#include "swimstore/omap/omap_transaction.h"
#include "swimstore/omap/part_writer.h"

namespace swimstore {

class OmapWriter {
 public:
  explicit OmapWriter(OmapTransaction txn) : m_txn(std::move(txn)), m_parts(m_txn) {}

  // Those with a result return 0, or -EIO.

  // `encoded`: a map of strings to buffers, as Transaction::omap_setkeys makes it.
  int set(Onode& onode, const ceph::bufferlist& encoded);
  void set_header(Onode& onode, const ceph::bufferlist& header);
  // `encoded`: a set of strings.
  int remove(Onode& onode, const ceph::bufferlist& encoded);
  int remove_range(Onode& onode, std::string_view first, std::string_view last);
  // Ends the omap, header included.
  int clear(Onode& onode);
  // The same, of an object that is being removed.
  int end(Onode& onode);
  // REQUIRES: the target has no omap.
  int clone(const Onode& source, Onode& target);

  OmapWriter(const OmapWriter&) = delete;
  OmapWriter& operator=(const OmapWriter&) = delete;

 private:
  class Overlay;

  void touch(Onode& onode);
  int read(const Onode& source, OmapContents* contents);

  OmapTransaction m_txn;
  PartWriter m_parts;
  std::unordered_set<uint64_t> m_touched;  // nids whose omap this transaction changed
};

}  // namespace swimstore
