// SPDX-License-Identifier: LGPL-2.1-or-later
// The order of one collection's transactions: what was submitted, what is durable, who waits.
//
// Completions come in sequence order for a whole cube, so this only counts, for each cube that had transactions of the
// collection: one, but for the OSD's own collection, which transactions of any cube may name. It outlives its
// collection, so that one removed and created again keeps its order.
//
// Thread-safe.
#pragma once

#include <climits>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "include/Context.h"

#include "vtkv/env.h"
#include "vtkv/util/mutex.h"
#include "vtkv/write_batch.h"

namespace swimstore {

class OpSequencer {
 public:
  explicit OpSequencer(vtkv::Env* env) : m_committed_elsewhere(env->new_signal()) {}

  // A transaction that may be told when it is written, before it is durable.
  class Relaxed {
   public:
    virtual ~Relaxed() = default;
    virtual void tell() = 0;

   private:
    friend class OpSequencer;
    vtkv::SequenceNumber m_behind = 0;  // the last one before it that is told when it is durable
  };

  // Before it is submitted, with the collection's lock held until then. False: something of the collection is under way
  // in another cube, and to tell it early could be out of order.
  bool prepare_relaxed(unsigned cube, Relaxed* relaxed);
  // `relaxed`: it was prepared so.
  void submitted(unsigned cube, vtkv::SequenceNumber sequence, bool relaxed = false);
  // True: it may be told. False: not before another one is durable; committed() tells it then.
  bool written(unsigned cube, Relaxed* relaxed);
  // Appends the waiters that this satisfies to *ready. Then tells those that were written and had to wait.
  void committed(unsigned cube, vtkv::SequenceNumber sequence, std::list<Context*>* ready);
  // True: nothing is under way, the context is not touched. False: it is completed later.
  bool flush_commit(Context* context);
  // Nothing more becomes durable in a cube that has transactions of the collection: the process is about to end.
  void failed();
  // Waits until nothing is under way in another cube than this: what follows there is to become durable later. False:
  // some of it failed.
  bool wait_for_others(unsigned cube);
  // Waits until all is durable. False: some of it failed.
  bool wait_for_all() { return wait_for_others(UINT_MAX); }

  // What the collection's callers are to be told of, in order. CallbackThreads' alone, under its lock.
  struct Callbacks {
    std::vector<Context*> contexts;
    bool is_listed = false;  // a thread has them, or is to take them
  };
  Callbacks callbacks;

 private:
  struct Progress {
    vtkv::SequenceNumber submitted = 0;
    vtkv::SequenceNumber strict = 0;  // submitted, and told when it is durable
    std::deque<Relaxed*> untold{};  // written, in their order
    vtkv::SequenceNumber committed = 0;
    bool is_idle() const { return submitted <= committed; }
  };
  using ByCube = boost::container::small_vector<Progress, 1>;
  struct Waiter {
    boost::container::small_vector<vtkv::SequenceNumber, 1> until;  // by cube
    Context* context = nullptr;
  };

  Progress& of(unsigned cube) REQUIRES(m_mutex);
  bool is_satisfied(const Waiter& waiter) const REQUIRES(m_mutex);
  bool is_idle_but_in(unsigned cube) const REQUIRES(m_mutex);

  vtkv::Mutex m_mutex;
  ByCube m_progress GUARDED_BY(m_mutex);
  std::deque<Waiter> m_waiters GUARDED_BY(m_mutex);  // each waits for all that those before it wait for
  const std::unique_ptr<vtkv::Signal> m_committed_elsewhere;
  unsigned m_waiting_threads GUARDED_BY(m_mutex) = 0;
  bool m_failed GUARDED_BY(m_mutex) = false;
};

using OpSequencerRef = std::shared_ptr<OpSequencer>;

}  // namespace swimstore
