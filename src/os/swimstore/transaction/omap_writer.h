// SPDX-License-Identifier: LGPL-2.1-or-later
// Changes of omap, as part of a transaction. Keys go straight into the batch, under the object's nid.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "include/buffer.h"

#include "swimstore/transaction/txn_plan.h"

namespace swimstore {

class OmapWriter {
 public:
  explicit OmapWriter(TxnPlan& plan) : m_plan(plan) {}

  // `encoded`: a map of strings to buffers, as Transaction::omap_setkeys makes it.
  void set(Onode& onode, const ceph::bufferlist& encoded);
  void set_header(Onode& onode, const ceph::bufferlist& header);
  // `encoded`: a set of strings.
  void remove(Onode& onode, const ceph::bufferlist& encoded);
  void remove_range(Onode& onode, std::string_view first, std::string_view last);
  // Ends the omap, header included.
  void clear(Onode& onode);
  // 0, or -EIO. REQUIRES: the target has no omap.
  int clone(const Onode& source, Onode& target);

 private:
  struct Contents {
    std::optional<std::string> header;
    std::map<std::string, std::string> values;
  };
  class Overlay;

  void touch(Onode& onode);
  int read(const Onode& source, Contents* contents);

  TxnPlan& m_plan;
  std::unordered_set<uint64_t> m_touched;  // nids whose omap this transaction changed
};

}  // namespace swimstore
