// SPDX-License-Identifier: LGPL-2.1-or-later
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
#include <utility>

#include "include/Context.h"

#include "vtkv/util/mutex.h"
#include "vtkv/write_batch.h"

namespace swimstore {

class OpSequencer {
 public:
  void submitted(vtkv::SequenceNumber sequence);
  // Appends the waiters that this satisfies to *ready.
  void committed(vtkv::SequenceNumber sequence, std::list<Context*>* ready);
  // True: nothing is under way, the context is not touched. False: it is completed later.
  bool flush_commit(Context* context);

 private:
  vtkv::Mutex m_mutex;
  vtkv::SequenceNumber m_submitted GUARDED_BY(m_mutex) = 0;
  vtkv::SequenceNumber m_committed GUARDED_BY(m_mutex) = 0;
  std::deque<std::pair<vtkv::SequenceNumber, Context*>> m_waiters GUARDED_BY(m_mutex);  // ascending
};

using OpSequencerRef = std::shared_ptr<OpSequencer>;

}  // namespace swimstore
