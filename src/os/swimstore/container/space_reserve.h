// SPDX-License-Identifier: LGPL-2.1-or-later
// Host space that data never takes, so that deletes, log, flushes and compactions go on when the host is full.
//
// It is a pre-allocated file beside the containers. When the host runs out, by whoever's hand, it is given
// back slice by slice and the metadata lives on it; when there is room again, it is filled again. What it
// lacks is withheld from the growth of containers, and so is a quarter of it as a margin, so that data
// alone never brings it to shrink.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class SpaceReserve {
 public:
  static constexpr const char* kFileName = "reserve";

  // Changes nothing on disk. The file may be missing (an operator in need may delete it): balance() makes it
  // again. The target is `bytes`, at most a sixteenth of the host's size. `sharers`: sets of containers that use it.
  vtkv::Status open(vtkv::Env* env, const std::string& directory, uint64_t bytes, unsigned sharers = 1);

  // How much of `host`'s space containers may still take.
  uint64_t growable_bytes(const vtkv::FileSystemInfo& host) const;
  // Gives back one slice, whatever the host has. *gave: there was one.
  vtkv::Status give_slice(bool* gave);
  // Gives back so many slices that the host has room for `bytes` beside the margin. False when less than `least_bytes`
  // would be left of the reserve and what else the host has; then it gives none.
  bool lend(uint64_t bytes, uint64_t least_bytes);
  // What data has of the reserve, as opposed to log, tree and others. What comes back pays for theirs first. Not known
  // across an open: what was missing then counts as lent.
  uint64_t lent_bytes() const { return m_lent_bytes.load(std::memory_order_relaxed); }
  // By how much `host` has too little for the reserve to be whole, and the margin and `more_bytes` beside it.
  uint64_t missing_bytes(const vtkv::FileSystemInfo& host, uint64_t more_bytes = 0) const;
  // There is so much for log and tree, of it or of its host; also where the host does not tell.
  bool has(uint64_t bytes) const;
  // The store is full for its clients, whatever is free in its containers: log, tree and others have a quarter of the
  // reserve, or of all that is left for them less than half of it is there.
  bool is_low(const vtkv::FileSystemInfo& host) const;
  // Shrinks while the host is nearly full.
  vtkv::Status make_room(bool* changed);
  // The same, and grows by one slice when there is plenty. *changed: it did either.
  // A host without room is no error here.
  vtkv::Status balance(bool* changed);
  // Until that changes nothing more.
  vtkv::Status settle();
  uint64_t held_bytes() const { return m_held_bytes.load(std::memory_order_relaxed); }
  uint64_t target_bytes() const { return m_target_bytes; }
  unsigned sharers() const { return m_sharers; }

 private:
  uint64_t margin_bytes() const { return m_target_bytes / 4; }
  uint64_t first_hole(uint64_t size) const REQUIRES(m_lock);
  vtkv::Status make_room_locked(bool* changed) REQUIRES(m_lock);
  vtkv::Status shrink(uint64_t bytes) REQUIRES(m_lock);
  vtkv::Status extend() REQUIRES(m_lock);

  // Set by open().
  vtkv::Env* m_env = nullptr;
  std::string m_directory;
  uint64_t m_target_bytes = 0;
  uint64_t m_slice_bytes = 0;
  unsigned m_sharers = 1;

  vtkv::Mutex m_lock;  // held while the file's size changes
  std::unique_ptr<vtkv::File> m_file GUARDED_BY(m_lock);  // null: missing
  // Changed under m_lock.
  std::atomic<uint64_t> m_held_bytes{0};
  std::atomic<uint64_t> m_lent_bytes{0};
};

}  // namespace swimstore
