// SPDX-License-Identifier: LGPL-2.1-or-later
// What a participant says at a checkpoint, in the memtable that the checkpoint is of.
#pragma once

#include <optional>
#include <vector>

#include "vtkv/mem/memtable.h"
#include "vtkv/options.h"

namespace vtkv {

// `memtable` ends with `as_of`, and is about to be closed. No participant (null): nothing.
inline void add_participant_entries(CheckpointParticipant* participant, SequenceNumber as_of, MemTable* memtable) {
  if (participant) {
    std::vector<CheckpointEntry> entries;
    participant->collect(as_of, &entries);
    for (const auto& [key, value] : entries) {
      value ? memtable->put(as_of, key, *value) : memtable->remove(as_of, key);
    }
  }
}

}  // namespace vtkv
