// SPDX-License-Identifier: LGPL-2.1-or-later
// The smallest owner of external writes: one pre-written file of 4 KiB slots. A slot's content is made
// from a tag, so that whoever knows the tag can tell whether the slot still holds it. A freed slot is used
// again as soon as the database's reuse horizon allows it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "vtkv/db.h"
#include "vtkv/env/aligned_buffer.h"

namespace vtkv {

class SlotFile final : public ExternalStore {
 public:
  static constexpr uint64_t kSlotBytes = 4096;

  static Status create(Env* env, const std::string& path, uint64_t slots);
  static Status open(Env* env, const std::string& path, std::unique_ptr<SlotFile>* file);

  // ExternalStore
  Status verify(const ExternalWrite& write, bool* matches) override;
  void mark_damaged(const ExternalWrite&) override { ++m_damaged; }
  Status sync_all() override { return m_file->sync(); }

  // The lowest free slot; false when there is none below the horizon.
  bool allocate(SequenceNumber horizon, uint64_t* slot);
  void free_at(SequenceNumber sequence, uint64_t slot) { m_freed.emplace_back(sequence, slot); }
  // False when the slot is out of range or has an owner already. For a rebuild from the database.
  bool claim(uint64_t slot);

  // Adds the write of a slot to a submission.
  void add_write(Submission* submission, uint64_t slot, uint64_t tag);
  Status holds(uint64_t slot, uint64_t tag, bool* holds);
  uint64_t damaged() const { return m_damaged; }

 private:
  SlotFile(std::unique_ptr<File> file, uint64_t slots);
  static std::string content(uint64_t tag);

  std::unique_ptr<File> m_file;
  const uint64_t m_slots;
  std::set<uint64_t> m_free;
  std::deque<std::pair<SequenceNumber, uint64_t>> m_freed;
  std::deque<AlignedBuffer> m_buffers;  // of all writes: requests point into them
  uint64_t m_damaged = 0;
};

}  // namespace vtkv
