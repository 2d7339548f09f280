// The order of one collection's transactions: what was submitted, what is durable, who waits.
//
// Completions come in sequence order for the whole cube, so this only counts; it outlives its collection,
// so that one removed and created again keeps its order.
//
// Thread-safe.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "include/Context.h"

#include "vtkv/write_batch.h"

namespace swimstore {

class OpSequencer {
 public:
  void submitted(vtkv::SequenceNumber sequence);
  // Appends the waiters that this satisfies to *ready.
  void committed(vtkv::SequenceNumber sequence, std::list<Context*>* ready);
  // True: nothing is under way, the context is not touched. False: it is completed later.
  bool flush_commit(Context* context);
  vtkv::SequenceNumber last_submitted() const;

 private:
  mutable std::mutex m_mutex;
  vtkv::SequenceNumber m_submitted = 0;
  vtkv::SequenceNumber m_committed = 0;
  std::deque<std::pair<vtkv::SequenceNumber, Context*>> m_waiters;
};

using OpSequencerRef = std::shared_ptr<OpSequencer>;

}  // namespace swimstore
