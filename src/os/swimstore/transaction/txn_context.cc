// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/txn_context.h"

#include <utility>

#include "common/debug.h"
#include "include/ceph_assert.h"

#include "swimstore/ops/last_words.h"
#include "swimstore/transaction/transaction_pipeline.h"
#include "vtkv/util/invariants.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.commit "

namespace swimstore {

TxnContext::TxnContext(StoreContext& store, StoreCube& home, TransactionPipeline& pipeline, CollectionRef collection,
                       uint64_t throttled_bytes)
    : m_store(store),
      m_home(home),
      m_pipeline(pipeline),
      m_collection(std::move(collection)),
      m_throttled_bytes(throttled_bytes) {
  add_sequencer(m_collection->sequencer);
}

void TxnContext::write_slot(const AllocatedSlot& slot, ceph::bufferlist data, uint32_t crc32c, const uint32_t* kept) {
  VTKV_ASSERT(m_state == State::planned);
  std::vector<iovec> buffers;
  buffers.reserve(data.get_num_buffers());
  for (const ceph::bufferptr& buffer : data.buffers()) {
    buffers.push_back({const_cast<char*>(buffer.c_str()), buffer.length()});
  }
  add_slot_write(m_home.containers(), slot, 0, std::move(buffers), slot.bytes, crc32c);
  // Keeps the memory alive until data_written, too.
  m_home.in_flight.add(slot.address, std::move(data));
  m_writes.push_back({slot, {kept, kept ? kept + slot.bytes / kBlockBytes : kept}});
  dout(20) << "  slot " << slot_bytes(slot.address.container()) / 1024 << "K/" << slot.address.whole().index
           << " block " << slot.address.first_block() << ": " << slot.bytes << " bytes"
           << (slot.primed ? "" : ", not primed") << dendl;
  m_store.counters.inc(l_swimstore_write_slots);
  m_store.counters.inc(l_swimstore_write_slot_bytes, slot.bytes);
  if (!slot.primed) {
    m_store.counters.inc(l_swimstore_write_unprimed);
  }
}

void TxnContext::take_back() {
  VTKV_ASSERT(m_state == State::planned);
  m_state = State::ended;
  std::vector<AllocatedSlot> slots;
  for (const SlotWrite& write : m_writes) {
    m_home.in_flight.remove(write.slot.address);
    slots.push_back(write.slot);
  }
  ContainerSet& containers = m_home.containers();
  containers.abandon(slots);
  for (const SlotBlocks& blocks : delta.allocation.freed) {
    containers.end_free(blocks);
  }
}

void TxnContext::correct_throttle() {
  m_bytes = batch.encoded_bytes();
  for (const SlotWrite& write : m_writes) {
    m_bytes += write.slot.bytes;
  }
  if (m_bytes > m_throttled_bytes) {
    m_pipeline.m_throttle.take_more(m_bytes - m_throttled_bytes);
    m_throttled_bytes = m_bytes;
  }
}

void TxnContext::submit() {
  VTKV_ASSERT(m_state == State::planned);
  m_state = State::submitted;
  intrusive_ptr_add_ref(this);  // the cube's; committed() gives it back
  if (!removed_rows.empty()) {
    m_store.parts_in_doubt.removed(m_home.number, removed_rows);
  }
  correct_throttle();
  relaxed = m_may_relax && m_collection->sequencer->prepare_relaxed(m_home.number, this);
  m_submitted_us = m_store.env->now_us();
  m_store.counters.inc(l_swimstore_encoded_bytes, batch.encoded_bytes());
  m_home.cube.submit(this);
  for (const OpSequencerRef& sequencer : m_sequencers) {
    sequencer->submitted(m_home.number, last_sequence, relaxed);
  }
}

void TxnContext::data_written() {
  VTKV_ASSERT(m_state == State::submitted);
  for (const SlotWrite& write : m_writes) {
    const SlotAddress slot = write.slot.address;
    if (!write.kept_crc32c.empty()) {  // before it leaves the other, so that a reader finds it in one
      m_home.data.add(slot, m_home.in_flight.find(slot), write.kept_crc32c.data());
    }
    m_home.in_flight.remove(slot);
  }
}

void TxnContext::note_latency(const char* what) {
  const uint64_t latency_us = m_store.env->now_us() - m_submitted_us;
  m_store.took(l_swimstore_commit_latency, "commit", std::chrono::microseconds(latency_us), m_collection->cid);
  m_store.counters.hinc(l_swimstore_commit_latency_histogram, latency_us, m_bytes);
  dout(5) << "transaction " << last_sequence << " of " << m_collection->cid << " is " << what << " after " << latency_us
          << " us" << dendl;
}

void TxnContext::written() {
  VTKV_ASSERT(m_state == State::submitted);
  if (m_collection->sequencer->written(m_home.number, this)) {
    tell();
  }
}

// Written, and all of its collection before it is told.
void TxnContext::tell() {
  VTKV_ASSERT(m_state == State::submitted);
  note_latency("written");
  m_store.counters.inc(l_swimstore_relaxed_transactions);
  // Else what waits for it might be what would bring a flush.
  m_pipeline.m_throttle.give_back(std::exchange(m_throttled_bytes, 0));
  m_store.callbacks.give(*m_collection, on_commit);
}

void TxnContext::committed(const vtkv::Status& status) {
  VTKV_ASSERT(m_state == State::submitted);
  m_state = State::ended;
  TxnContextRef self(this, false);
  if (!status.ok()) {
    if (status.code() == vtkv::Status::Code::invalid_argument) {
      // The engine refused it, of which nobody else will tell: nothing of it is visible, and its client would wait for
      // ever.
      const std::string text = "a transaction cannot be logged: " + std::string(status.message()) +
                               ". Remedy: keep attributes, and omap keys with their values, below 1 GiB";
      last_words().lock();
      ceph_abort_msg(text);
    }
    // Never acknowledged; the store is about to end the process.
    for (const OpSequencerRef& sequencer : m_sequencers) {
      sequencer->failed();
    }
    m_pipeline.ended(m_throttled_bytes);
    return;
  }
  if (!removed_rows.empty()) {
    m_store.parts_in_doubt.removals_durable(m_home.number, removed_rows);
  }
  if (!relaxed) {
    note_latency("durable");
  }
  m_store.callbacks.give(*m_collection, on_commit);  // there are none, if tell() has called them
  // Behind that: whom this wakes may queue what is durable in another cube at once, and its place is behind this one.
  std::list<Context*> waiters;
  for (const OpSequencerRef& sequencer : m_sequencers) {
    sequencer->committed(m_home.number, last_sequence, &waiters);
  }
  m_store.callbacks.give(*m_collection, waiters);
  m_pipeline.ended(m_throttled_bytes);
}

}  // namespace swimstore
