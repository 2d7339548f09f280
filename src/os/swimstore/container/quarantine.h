// The slots of a set of containers that are never handed out again, because a write to them failed: kept in a file of
// their own. Where it was a transaction's write, the process ends then; where it was zeros ahead of need, it goes on. Its blocks are written when the containers
// are made (or first opened by a program that knows of it), so that a new list takes no space of the host.
//
// Threads: all methods may be called from any thread; open() and make_missing() before the others.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "swimstore/format/quarantine_record.h"
#include "vtkv/env/env.h"

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
  std::vector<SlotAddress> slots() const;

 private:
  std::string path() const { return m_directory + "/" + kFileName; }
  vtkv::Status read_copies();

  vtkv::Env* const m_env;
  const std::string m_directory;
  std::unique_ptr<vtkv::File> m_file;  // null: missing
  std::mutex m_write_lock;     // taken before m_lock, which is not held over I/O
  mutable std::mutex m_lock;   // m_record
  QuarantineRecord m_record;
};

// The slots of the class whose disk refuses their part of what a write that failed was to bring: each part is written
// once more. At most the first kBadSlotsMax, for when all fail it is the disk, and not its slots.
inline constexpr size_t kBadSlotsMax = 16;
std::vector<SlotAddress> find_bad_slots(vtkv::File& file, uint8_t size_class, uint64_t offset,
                                        const std::vector<iovec>& buffers);
// "2 slots of FILE from slot 5 on".
std::string to_string(const std::vector<SlotAddress>& bad, const vtkv::File& file);

}  // namespace swimstore
