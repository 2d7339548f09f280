// SPDX-License-Identifier: LGPL-2.1-or-later
// What a recovery reads of the log, in memtables again: the active one, and full ones that were closed on the way.
//
// Not thread-safe: the thread's that opens.
#pragma once

#include <deque>
#include <memory>
#include <string_view>

#include "vtkv/iter/read_states.h"
#include "vtkv/mem/memtable.h"
#include "vtkv/options.h"
#include "vtkv/wal/log_format.h"
#include "vtkv/wal/log_position.h"

namespace vtkv {

class LogReplay final : public BatchVisitor {
 public:
  explicit LogReplay(const Options& options) : m_options(options), m_active(std::make_shared<MemTable>()) {}

  // Also tells the participant.
  Status batch(SequenceNumber first, uint32_t sequence_count, std::string_view encoded,
               const LogAddress& address) override;

  bool is_full() const { return m_active->memory_bytes() >= m_options.memtable_bytes; }
  // All batches so far lie before `position`: the active memtable can be flushed with it.
  void close(const LogPosition& position);

  const std::shared_ptr<MemTable>& active() const { return m_active; }
  struct Closed {
    std::shared_ptr<MemTable> memtable;
    LogPosition position;
  };
  // Those that are not flushed yet, the oldest first.
  std::deque<Closed>& closed() { return m_closed; }

 private:
  const Options& m_options;
  std::shared_ptr<MemTable> m_active;
  std::deque<Closed> m_closed;
};

}  // namespace vtkv
