// SPDX-License-Identifier: LGPL-2.1-or-later
// One queue_transactions call on its way from the planner to its durable end.
//
// The planner fills it (batch, delta, slot writes, contexts); Cube::submit takes it; committed() queues the
// contexts. Counted: the submitter and the cube each hold a reference.
#pragma once

#include <list>
#include <vector>

#include <boost/container/small_vector.hpp>
#include <boost/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "include/Context.h"

#include "swimstore/object/store_context.h"

namespace swimstore {

class TransactionPipeline;

class TxnContext final : public CubeTransaction,
                         public OpSequencer::Relaxed,
                         public boost::intrusive_ref_counter<TxnContext> {
 public:
  // throttled_bytes: what the throttle counts for it so far.
  TxnContext(StoreContext& store, StoreCube& home, TransactionPipeline& pipeline, CollectionRef collection,
             uint64_t throttled_bytes);

  // The cube that it commits in: all of it, so that it needs no other.
  StoreCube& home() { return m_home; }

  // Adds the write of a whole reservation. The data is readable at once, from memory; also later, from the data cache,
  // where `kept` names the checksum of each block.
  // REQUIRES: data aligned in size and memory to kBlockBytes, slot.bytes long.
  void write_slot(const AllocatedSlot& slot, ceph::bufferlist data, uint32_t crc32c, const uint32_t* kept);
  // Forgets the slot writes: the transaction will not be submitted.
  void take_back();

  // Another collection whose flush_commit has to wait for this transaction.
  void add_sequencer(OpSequencerRef sequencer) { m_sequencers.push_back(std::move(sequencer)); }
  // It may be told before it is durable, as its pool's operator asked for; it is not, where the order of its collection
  // forbids it, or it does what has to be durable.
  void allow_relaxed() { m_may_relax = true; }
  void forbid_relaxed() { m_may_relax = false; }
  bool may_relax() const { return m_may_relax; }
  // Hands the transaction to the cube. The caller holds the lock of every collection it names.
  void submit();

  std::list<Context*> on_commit;
  std::vector<std::string> removed_rows;  // of omaps in parts: PartsInDoubt

 private:
  enum class State : uint8_t { planned, submitted, ended };
  struct SlotWrite {
    AllocatedSlot slot;
    boost::container::small_vector<uint32_t, 2> kept_crc32c;  // of each block, if they are to be cached
  };

  // Counts what planning has added: copies, and the blocks around unaligned writes.
  void correct_throttle();
  void data_written() override;
  void written() override;
  void tell() override;
  void committed(const vtkv::Status& status) override;
  void note_latency(const char* what);

  StoreContext& m_store;
  StoreCube& m_home;
  TransactionPipeline& m_pipeline;
  CollectionRef m_collection;
  boost::container::small_vector<OpSequencerRef, 2> m_sequencers;
  std::vector<SlotWrite> m_writes;
  uint64_t m_throttled_bytes;
  uint64_t m_bytes = 0;  // of batch and slots; once planned
  uint64_t m_submitted_us = 0;
  bool m_may_relax = false;
  State m_state = State::planned;  // the planner's, then the commit worker's
};

using TxnContextRef = boost::intrusive_ptr<TxnContext>;

}  // namespace swimstore
