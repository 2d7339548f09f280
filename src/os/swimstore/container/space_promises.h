// SPDX-License-Identifier: LGPL-2.1-or-later
// Room that transactions were promised before they were planned: what is accepted can be carried out.
//
// Every free block can be handed out, whatever the slot it lies in (ContainerSet::allocate()), so that a number of
// bytes is all there is to promise. What is promised lies free in the containers: room on the host is counted once a
// container has grown by it, for somebody else may take it meanwhile.
//
// Invariant: free bytes >= the sum over promises that stand of what was not yet allocated under each. So whoever
// takes free slots away for another reason, to prime them or to give them back to the host, takes a promise meanwhile.
//
// Some of what is free, and of the reserve, is kept for those who cannot wait:
//   usual        leaves an eighth of the reserve's size free (where sets share it, its share of that); a small one
//                less, down to a quarter. So overwrites of a full store go on, each with what those before it have
//                freed.
//   late         has waited in vain: leaves that quarter only, and grows containers with half of the reserve
//   privileged   deletes, and what else makes room or must not wait: all that is free, three quarters of the reserve
// The reserve's last slices are the log's and the tree's: with half of it gone usual transactions find no room, with
// three quarters gone late ones do not.
//
// A container that is as large as the host lets a file be grows no more; others do in its place, for any free block
// serves. A host that refuses all growth with another error, not for want of space, has a sick disk: nothing is worth
// waiting for, and the allocation is left to fail, which ends the OSD as other write errors do.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "swimstore/container/container.h"
#include "swimstore/container/space_reserve.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class SpacePromises {
 public:
  // `metadata_reserve`: that of log and tree, another one where they lie on another file system.
  SpacePromises(vtkv::Env* env, std::string directory, SpaceReserve& reserve, const SpaceReserve& metadata_reserve,
                ContainerArray& containers)
      : m_env(env),
        m_directory(std::move(directory)),
        m_reserve(reserve),
        m_metadata_reserve(metadata_reserve),
        m_containers(containers) {}

  // Grows containers when too little is free. False: there is no room, now.
  bool take(uint64_t bytes, Urgency urgency) EXCLUDES(m_growth_lock);
  // The same for those who could do without: true when much is left. Never grows.
  bool take_spare(uint64_t bytes) { return take_free(bytes, 2 * kept_bytes()); }
  void give_back(uint64_t bytes) {
    const uint64_t before = m_promised_bytes.fetch_sub(bytes);
    VTKV_ASSERT(before >= bytes);
  }

  // Is there room for so much more that goes to the log and the tree? 0: for a transaction's own.
  bool has_metadata_room(uint64_t bytes, Urgency urgency) const;
  // What came of an attempt to grow.
  void note_growth(const Container& container, const vtkv::Status& status) EXCLUDES(m_errors_lock);
  // A container that cannot grow, though the host has space: a sentence that names file and remedy; empty: there is
  // none.
  std::string growth_error() const EXCLUDES(m_errors_lock);

  uint64_t free_bytes() const;
  // How much has to be free for take(): what was promised before, and what such a promise leaves to others, included.
  uint64_t free_bytes_needed(uint64_t bytes, Urgency urgency) const {
    return m_promised_bytes.load() + bytes + kept_from(bytes, urgency);
  }
  // By how much containers have to grow for it where so much is free.
  uint64_t growth_for(uint64_t bytes, Urgency urgency, uint64_t free_bytes) const {
    const uint64_t needed = free_bytes_needed(bytes, urgency);
    return needed - std::min(needed, free_bytes);
  }
  uint64_t promised_bytes() const { return m_promised_bytes.load(); }
  // Free bytes that usual transactions leave.
  uint64_t kept_bytes() const { return m_reserve.target_bytes() / 8 / m_reserve.sharers(); }

 private:
  uint64_t kept_from(uint64_t bytes, Urgency urgency) const;
  bool take_free(uint64_t bytes, uint64_t left_bytes);
  bool make_free(unsigned size_class, Urgency urgency) REQUIRES(m_growth_lock);
  struct Growth {
    uint64_t refused_bytes = UINT64_MAX;  // so much the host has no room for
    bool failed = false;  // with an error that is worth no waiting
  };
  bool grow(Container& container, Urgency urgency, Growth* growth) REQUIRES(m_growth_lock);
  vtkv::Status look_for_host_room(uint64_t bytes, Urgency urgency, bool* found) REQUIRES(m_growth_lock);

  vtkv::Env* const m_env;
  const std::string m_directory;
  SpaceReserve& m_reserve;
  const SpaceReserve& m_metadata_reserve;
  ContainerArray& m_containers;
  vtkv::Mutex m_growth_lock;  // one grows, the others look again
  bool m_growth_failed GUARDED_BY(m_growth_lock) = false;  // and not for want of space
  std::atomic<uint64_t> m_promised_bytes{0};
  mutable vtkv::Mutex m_errors_lock ACQUIRED_AFTER(m_growth_lock);
  // What growth_error() says of a container; and of the last growth of any.
  std::array<std::string, kSizeClasses> m_too_large GUARDED_BY(m_errors_lock);
  std::string m_host_error GUARDED_BY(m_errors_lock);
};

}  // namespace swimstore
