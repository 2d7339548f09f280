// SPDX-License-Identifier: LGPL-2.1-or-later
// Grows and primes containers ahead of demand.
//
// A transaction whose slots are all primed needs one flush, of the log; one unprimed slot costs it a second
// flush and the host's metadata (doc/architecture.md, "One flush"). So free primed slots are kept ready, for the
// small classes, where that second flush would be the larger part of the cost.
//
// Priming writes what nobody asked for. While transactions come, a class is therefore only kept from running out; it
// is filled up when they pause.
//
// Threads: one, the containers' worker.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "swimstore/container/container.h"
#include "swimstore/container/space_promises.h"
#include "swimstore/container/space_reserve.h"
#include "vtkv/env/background_errors.h"

namespace swimstore {

class Primer {
 public:
  // `prime`: whether the host's file system gains from it.
  Primer(vtkv::Env* env, const std::string& directory, const ContainerOptions& options, const SpaceReserve& reserve,
         SpacePromises& promises, ContainerArray& containers, Quarantine& quarantine, vtkv::BackgroundErrors& errors,
         bool prime);

  struct Result {
    bool worked = false;
    bool urgent = false;  // a class has little left: do not wait
  };
  // One small unit of work in each class that needs some; `busy`: transactions come. A class in which that fails is
  // left alone until the errors say that it is to be tried again; want of space is no failure, nor is a slot that
  // cannot be written: it is quarantined.
  void step(bool busy, Result* result);
  uint64_t primed_bytes() const { return m_primed_bytes.load(std::memory_order_relaxed); }

 private:
  void step_class(Container& container, bool busy, Result* result);
  vtkv::Status prime_class(Container& container, const Container::Counts& counts, bool busy, Result* result);
  // A class grows by a chunk or, while it has to again within a second, each time by twice as many.
  struct Growth {
    uint64_t chunks = 1;  // the last time
    uint64_t grown_us = 0;
  };
  // Grows by so many, or fewer, when that takes at most a sixteenth of what the host can still give.
  bool grow_ahead(Container& container, uint64_t* chunks);
  // Nothing is primed while what is free may be wanted by transactions.
  vtkv::Status prime_unit(Container& container, uint64_t* done);
  uint64_t target_bytes() const;
  uint64_t fragment_bytes(unsigned size_class, bool only_primed) const;

  vtkv::Env* const m_env;
  const std::string m_directory;
  const ContainerOptions m_options;
  const SpaceReserve& m_reserve;
  SpacePromises& m_promises;
  ContainerArray& m_containers;
  Quarantine& m_quarantine;
  vtkv::BackgroundErrors& m_errors;
  const bool m_prime;
  // Of the worker alone.
  uint64_t m_host_bytes = 0;
  std::array<bool, kSizeClasses> m_active{};  // below its target, until it is reached
  std::array<bool, kSizeClasses> m_failed{};  // when it was last tried
  std::array<Growth, kSizeClasses> m_growth{};  // of those that are not primed

  std::atomic<uint64_t> m_primed_bytes{0};
};

}  // namespace swimstore
