// SPDX-License-Identifier: LGPL-2.1-or-later
// The slots of a set of containers that are never handed out again, because a write to them failed: kept in a file of
// their own. Where it was a transaction's write, the process ends then; where it was zeros ahead of need, it goes on.
// The file's blocks are written when the containers are made (or first opened by a program that knows of it), so that a
// new list takes no space of the host.
//
// Threads: all methods may be called from any thread; open() and make_missing() before the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "swimstore/format/quarantine_record.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class Quarantine {
 public:
  static constexpr char kFileName[] = "quarantine";

  Quarantine(vtkv::Env* env, const std::string& directory) : m_env(env), m_directory(directory) {}
  // Writes the file's blocks, an empty list.
  static vtkv::Status create(vtkv::Env* env, const std::string& directory);

  // Reads the list; none is there when there is no file. Changes nothing on disk. `uuid`: of the containers.
  vtkv::Status open(const std::array<uint8_t, 16>& uuid);
  // Of a store made by an older program.
  vtkv::Status make_missing();

  // Durable on return. Code::no_space: so many slots are bad that the list is full; those that fit are kept.
  vtkv::Status add(const std::vector<SlotAddress>& slots);
  std::vector<SlotAddress> slots() const { return record().slots; }

 private:
  QuarantineRecord record() const EXCLUDES(m_lock);
  std::string path() const { return m_directory + "/" + kFileName; }
  // What the file says, into an empty list; nothing when there is none.
  vtkv::Status read(QuarantineRecord* record) REQUIRES(m_write_lock) EXCLUDES(m_lock);
  vtkv::Status read_copies(QuarantineRecord* record) REQUIRES(m_write_lock) EXCLUDES(m_lock);

  vtkv::Env* const m_env;
  const std::string m_directory;
  vtkv::Mutex m_write_lock ACQUIRED_BEFORE(m_lock);  // held while the list is read and written
  std::unique_ptr<vtkv::File> m_file GUARDED_BY(m_write_lock);  // null: missing
  mutable vtkv::Mutex m_lock;
  QuarantineRecord m_record GUARDED_BY(m_lock);  // changed under m_write_lock, too
};

// The slots to which the failed write cannot be repeated: each slot's share is written once more. At most the first
// kBadSlotsMax, for when all fail it is the disk, and not its slots.
inline constexpr size_t kBadSlotsMax = 16;
std::vector<SlotAddress> find_bad_slots(vtkv::File& file, uint8_t size_class, uint64_t offset,
                                        const std::vector<iovec>& buffers);
// "2 slots of FILE from slot 5 on".
std::string to_string(const std::vector<SlotAddress>& bad, const vtkv::File& file);

}  // namespace swimstore
