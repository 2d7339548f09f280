// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_need.h"

#include "include/page.h"

#include "swimstore/container/best_fit.h"
#include "swimstore/format/extent_record.h"
#include "swimstore/format/onode_record.h"

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;

constexpr uint32_t in_block(uint64_t offset) { return offset % kBlockBytes; }

// Of the whole blocks that hold the bytes. A write that no object can hold is refused, and needs none.
uint64_t bytes_of_write(uint64_t offset, uint64_t length) {
  return length == 0 || length > kObjectBytesMax ? 0 : most_slot_bytes(in_block(offset) + length);
}

uint64_t bytes_of_edges(uint64_t offset, uint64_t end) {
  return (uint64_t{in_block(offset) != 0} + (in_block(end) != 0)) * kBlockBytes;
}

// As ObjectWriter::clone_range(): blocks are shared where they can be, and the edges copied. Elsewhere in a shard all
// is copied if some of it is compressed, which nobody knows yet.
uint64_t bytes_of_clone(const Transaction::Op& op, const Transaction::iterator& transaction) {
  const ghobject_t& source = transaction.objects[op.oid];
  const ghobject_t& target = transaction.objects[op.dest_oid];
  const bool shares = source.hobj.get_hash() == target.hobj.get_hash() && op.oid != op.dest_oid &&
                      is_same_in_shard(op.off, op.dest_off);
  return shares ? 2 * bytes_of_edges(op.dest_off, op.dest_off + op.len) : bytes_of_write(op.dest_off, op.len);
}

// The OSD's own collection, and the object that holds a PG's log and info.
bool is_internal(const Transaction::Op& op, const Transaction::iterator& transaction) {
  return transaction.colls[op.cid].is_meta() || transaction.objects[op.oid].is_pgmeta();
}

void add(const Transaction::Op& op, const Transaction::iterator& transaction, SpaceNeed* need) {
  switch (op.op) {
    case Transaction::OP_WRITE:
      need->slot_bytes += bytes_of_write(op.off, op.len);
      need->may_wait |= !is_internal(op, transaction);
      break;
    case Transaction::OP_ZERO:
      need->slot_bytes += bytes_of_edges(op.off, op.off + op.len);
      break;
    case Transaction::OP_TRUNCATE:
      need->slot_bytes += bytes_of_edges(op.off, 0);
      break;
    case Transaction::OP_CLONERANGE2:
      need->slot_bytes += bytes_of_clone(op, transaction);
      break;
    case Transaction::OP_REMOVE:
      need->removes_internal |= transaction.colls[op.cid].is_meta();
      break;
    case Transaction::OP_MKCOLL:
    case Transaction::OP_COLL_SET_BITS:
      need->new_bits.push_back({transaction.colls[op.cid], op.split_bits});
      break;
    case Transaction::OP_MERGE_COLLECTION:
      need->new_bits.push_back({transaction.colls[op.dest_cid], op.split_bits});
      break;
    case Transaction::OP_OMAP_SETKEYS:
    case Transaction::OP_OMAP_SETHEADER:
      need->may_wait |= !is_internal(op, transaction);
      break;
    default:
      break;
  }
}

// The object's whole pages in a write, which a transaction may keep apart from its other bytes.
uint64_t bytes_of_pages(const Transaction::Op& op) {
  const uint64_t before = -op.off & ~CEPH_PAGE_MASK;
  return op.len < before ? 0 : (op.len - before) & CEPH_PAGE_MASK;
}

}  // namespace

SpaceNeed SpaceNeed::of(std::vector<Transaction>& transactions) {
  SpaceNeed need;
  for (Transaction& transaction : transactions) {
    uint64_t written = 0, pages = 0;
    Transaction::iterator it = transaction.begin();
    while (it.have_op()) {
      const Transaction::Op* const op = it.decode_op();
      add(*op, it, &need);
      if (op->op == Transaction::OP_WRITE) {
        written += op->len;
        pages += bytes_of_pages(*op);
      }
    }
    // Ceph leaves pages out that are kept apart, and tells nobody whether they are: surely where its count is less than
    // what is written. Where it is not, though pages are missing, it is at least half of all.
    const uint64_t counted = transaction.get_num_bytes();
    need.bytes += counted < written ? counted + pages : counted;
  }
  return need;
}

}  // namespace swimstore
