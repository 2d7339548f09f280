// SPDX-License-Identifier: LGPL-2.1-or-later
// Puts the data of objects together that lies in many pieces, while clients use them. What was written 4 MiB at a time
// and then overwritten 4 KiB at a time is otherwise read at a seek for each piece until a client writes it as a whole.
//
// A range of an object that is worth it (fragmented_range.h) is read and written anew, to slots of its size, by one
// transaction: clients find the same bytes before and after, and a crash leaves the one place or the other. What clones
// share stays where it is, for all who refer to it would have to change at once; and so do compressed blobs, which are
// read as a whole anyway. What is written enters no cache, so a block that was in one is read once more.
//
// Why no client's write is lost: the range is written under the collection's lock, held alone, and only if its blocks
// lie then where they lay when each was read, with the same checksums, which the new ones have to have as well. Else it
// is passed over: what is overwritten now will soon be in pieces again. A group is passed over that is being copied to
// another cube: the copy would have to be made again.
//
// How long others wait for that lock: for a read of 8 pieces at a time, as for a client's read; and for a write of 4
// MiB at most to be planned, with a look-up in the tree for each extent that a clone once shared. The throttle of
// transactions is not waited for, but asked.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "swimstore/defragment/defragment_pass.h"
#include "swimstore/defragment/fragmented_range.h"
#include "swimstore/object/collection_list.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

class TransactionPipeline;

struct DataDefragmentOptions {
  bool only_measure = false;  // nothing is written
  std::optional<int64_t> pool;  // of this one alone
  std::function<void()> between;  // for tests: called when a range was read and is not yet written, no lock held
};

struct DefragmentCounts {
  uint64_t groups = 0, groups_done = 0;  // placement groups
  uint64_t objects = 0;  // looked at
  uint64_t fragmented_bytes = 0;  // of ranges that are worth it
  uint64_t pieces = 0;  // that these lay in
  uint64_t moved_bytes = 0;  // of those that were written anew
  uint64_t moved_pieces_before = 0, moved_pieces_after = 0;  // that these lay in, and lie in
  // Passed over:
  uint64_t changed_ranges = 0;  // a client changed them, or the object, meanwhile
  uint64_t unreadable_ranges = 0;  // with a block that cannot be read; the log names it
  uint64_t unplaced_ranges = 0;  // the containers had no large enough place for them
};

class DataDefragmenter final : public DefragmentPass {
 public:
  // Of all placement groups, in the order of their names.
  DataDefragmenter(StoreContext& store, TransactionPipeline& pipeline, DataDefragmentOptions options);

  // Lists some objects, looks at one part of one, of 4 MiB at most, reads some pieces of it, or writes a range of it.
  // *cost: the bytes read and written, kPieceBytes for each piece that was read, and a little for looking. not_now:
  // clients have all the store's attention, or enough is not yet durable.
  Outcome step(uint64_t* cost) override;
  const DefragmentCounts& counts() const { return m_counts; }
  std::vector<Field> fields() const override;
  double progress() const override;
  uint64_t cost_of_found() const override;
  const std::string& error() const override { return m_error; }
  // Has the store a placement group of it?
  static bool has_pool(StoreContext& store, int64_t pool);

 private:
  // What lies where, and with which checksums.
  struct Range {
    FragmentedRange shape;
    MappedRuns runs;
  };
  enum class Move { under_way, made, not_now, changed, unreadable, unplaced, no_gain };

  static double share_before(const Collection& collection, const ghobject_t& oid) REQUIRES_SHARED(collection.lock);
  static std::vector<CollectionRef> groups(StoreContext& store, std::optional<int64_t> pool);
  void next_collection();
  vtkv::Status list();
  vtkv::Status look(uint64_t* cost);
  void next_object();
  // The object under way, where it is this collection's and may be moved; null: it is not.
  vtkv::Status find(const Collection& collection, OnodeRef* onode) const REQUIRES_SHARED(collection.lock);
  // What of blocks [first, end), which no extent crosses the ends of, is its own and stored as it is.
  vtkv::Status find_ranges(StoreCube& home, Onode& onode, uint64_t first, uint64_t end,
                           std::vector<FragmentedRange>* ranges, uint64_t* cost) const;
  // Do blocks lie where the range was found? *onode: of the object; null: they do not.
  vtkv::Status find_unchanged(const Collection& collection, const MappedRuns& runs, OnodeRef* onode) const
      REQUIRES_SHARED(collection.lock);
  vtkv::Status move_next(uint64_t* cost, Move* move);
  bool may_begin(uint64_t bytes, Move* move);
  bool has_room(uint64_t bytes) const;
  vtkv::Status read_chunk(const Range& range, uint64_t* cost, Move* move);
  vtkv::Status write(const Range& range, Move* move);
  void end_range(Move move);
  bool is_durable();

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  const DataDefragmentOptions m_options;
  const CollectionRef m_account;  // its sequencer has what is written here
  CollectionLister m_lister;

  CollectionRef m_collection;  // under way
  double m_weight = 0, m_weight_before = 0, m_weight_in_all = 0;  // of that group, of those before it, of all
  double m_share_listed = 0;  // of its objects, from 0 to 1
  std::vector<ghobject_t> m_oids;  // of it, listed; the one under way, or to come, last
  ghobject_t m_next;  // behind these
  uint64_t m_first = 0;  // block of the object, where what is to be looked at begins
  bool m_is_last_part = false;  // nothing is behind the ranges
  StoreCube* m_home = nullptr;  // where these were found
  std::vector<Range> m_ranges;  // found and not yet dealt with, the one under way last
  ceph::bufferlist m_data;  // of that one, as far as it was read
  size_t m_next_run = 0;  // of it, to be read next
  uint64_t m_under_way_bytes = 0;  // not known to be durable, all of it in m_written_to
  StoreCube* m_written_to = nullptr;
  vtkv::SequenceNumber m_written = 0;
  unsigned m_unplaced_in_a_row = 0;
  DefragmentCounts m_counts;
  std::string m_error;
};

}  // namespace swimstore
