// SPDX-License-Identifier: LGPL-2.1-or-later
// Puts the operations of a batch into a memtable, numbering them. Used at submission and by replay, so
// that both give the same state.
#pragma once

#include "vtkv/mem/memtable.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class MemTableInserter : public WriteBatch::Handler {
 public:
  // `encoded` is the batch; it lies in `shared` from its byte `base` on, unless that is null.
  // Values of at least `threshold` bytes (0: none) stay in the log.
  MemTableInserter(MemTable* memtable, SequenceNumber first, std::string_view encoded, size_t threshold,
                   LoggedBytes* shared = nullptr, size_t base = 0)
      : m_memtable(memtable),
        m_next(first),
        m_encoded(encoded),
        m_threshold(threshold),
        m_shared(shared),
        m_base(base) {}

  // Of a batch that lies in the log, at `in_log`: these values are not kept in memory.
  MemTableInserter(MemTable* memtable, SequenceNumber first, std::string_view encoded, size_t threshold,
                   const LogAddress* in_log)
      : MemTableInserter(memtable, first, encoded, threshold) {
    m_in_log = in_log;
  }

  void put(std::string_view key, std::string_view value) override {
    if (m_threshold == 0 || value.size() < m_threshold) {
      m_memtable->put(m_next++, key, value);
      return;
    }
    const size_t offset = m_base + static_cast<size_t>(value.data() - m_encoded.data());
    if (m_shared) {
      m_keeps = true;
      m_memtable->put_shared(m_next++, key, value, m_shared, static_cast<uint32_t>(offset));
      return;
    }
    if (!m_address) {
      m_address = m_memtable->new_address();
      *m_address = m_in_log ? *m_in_log : LogAddress();
    }
    m_in_log ? m_memtable->put_unkept(m_next++, key, value, m_address, static_cast<uint32_t>(offset))
             : m_memtable->put_logged(m_next++, key, value, m_address, static_cast<uint32_t>(offset));
  }
  void remove(std::string_view key) override { m_memtable->remove(m_next++, key); }
  void remove_range(std::string_view begin, std::string_view end) override {
    m_memtable->remove_range(m_next++, begin, end);
  }
  // The sequence after the last operation's.
  SequenceNumber next_sequence() const { return m_next; }
  // To be set to where the batch lies in the log; null when no value stays there.
  LogAddress* address() const { return m_address; }
  // Does the memtable refer to `shared` now?
  bool keeps() const { return m_keeps; }

 protected:
  // An operation takes its sequence and is not put in.
  void pass_over() { ++m_next; }

 private:
  MemTable* const m_memtable;
  SequenceNumber m_next;
  const std::string_view m_encoded;
  const size_t m_threshold;
  LoggedBytes* const m_shared;
  const size_t m_base;
  const LogAddress* m_in_log = nullptr;
  bool m_keeps = false;
  LogAddress* m_address = nullptr;
};

}  // namespace vtkv
