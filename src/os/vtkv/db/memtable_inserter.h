// Puts the operations of a batch into a memtable, numbering them. Used at submission and by replay, so
// that both give the same state.
#pragma once

#include "vtkv/mem/memtable.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class MemTableInserter final : public WriteBatch::Handler {
 public:
  // `lose_range_removals` breaks replay on purpose (Options::Mutations).
  MemTableInserter(MemTable* memtable, SequenceNumber first, bool lose_range_removals = false)
      : m_memtable(memtable), m_next(first), m_lose_range_removals(lose_range_removals) {}

  void put(std::string_view key, std::string_view value) override { m_memtable->put(m_next++, key, value); }
  void remove(std::string_view key) override { m_memtable->remove(m_next++, key); }
  void remove_range(std::string_view begin, std::string_view end) override {
    const SequenceNumber sequence = m_next++;
    if (!m_lose_range_removals) {
      m_memtable->remove_range(sequence, begin, end);
    }
  }
  void external_write(const ExternalWrite&) override {}
  void note(std::string_view) override {}
  // The sequence after the last operation's.
  SequenceNumber next_sequence() const { return m_next; }

 private:
  MemTable* const m_memtable;
  SequenceNumber m_next;
  const bool m_lose_range_removals;
};

}  // namespace vtkv
