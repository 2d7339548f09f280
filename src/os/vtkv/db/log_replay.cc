// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/log_replay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "vtkv/db/participant_entries.h"
#include "vtkv/mem/memtable_inserter.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {

// What a submission puts in, but for what a mutation loses: there is nothing to notice when the submission loses it,
// too.
class ReplayInserter final : public MemTableInserter {
 public:
  using MemTableInserter::MemTableInserter;
  void remove_range(std::string_view begin, std::string_view end) override {
    mutated(Mutation::range_delete_lost) ? pass_over() : MemTableInserter::remove_range(begin, end);
  }
};

}  // namespace

Status LogReplay::batch(SequenceNumber first, uint32_t sequence_count, std::string_view encoded,
                        const LogAddress& address) {
  ReplayInserter inserter(m_active.get(), first, encoded, m_options.value_separation_bytes, &address);
  VTKV_RETURN_IF_ERROR(WriteBatch::iterate(encoded, inserter));
  const uint64_t updates = std::max<uint64_t>(1, inserter.next_sequence() - first);
  if (updates != sequence_count) {
    return Status::corruption("a batch of " + std::to_string(updates) + " operations claims " +
                              std::to_string(sequence_count) + " sequence numbers");
  }
  if (m_options.participant) {
    return m_options.participant->replay(first + sequence_count - 1, encoded);
  }
  return Status();
}

void LogReplay::close(const LogPosition& position) {
  add_participant_entries(m_options.participant, position.sequence, m_active.get());
  m_closed.push_back({std::exchange(m_active, std::make_shared<MemTable>()), position});
}

}  // namespace vtkv
