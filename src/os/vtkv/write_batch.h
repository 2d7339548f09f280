// SPDX-License-Identifier: LGPL-2.1-or-later
// A set of updates that become visible together and durable together.
//
// Operations take effect in the order they were added: a later one wins over an earlier one of the same
// batch. Not thread-safe. Encoded form: doc/on_disk_format.md, "Batch", "Operation put" and those below it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/status.h"

namespace vtkv {

// Every operation has its own sequence number; a batch holds a contiguous range of them and is named
// by its last one. 0 is before everything.
using SequenceNumber = uint64_t;

// Bytes that travel with a batch but live outside the engine, in space the engine's user manages.
// Recovery takes a batch above the watermark only when all of its external writes check out.
struct ExternalWrite {
  uint32_t container = 0;  // the user's name for a file
  uint64_t slot = 0;
  uint32_t offset = 0;     // bytes, within the slot
  uint32_t length = 0;     // bytes
  uint32_t crc32c = 0;     // of those bytes
  bool operator==(const ExternalWrite&) const = default;
};

// Where a batch's encoded bytes begin in the log. Known once its record is formed.
struct LogAddress {
  uint64_t segment_id = 0;
  uint64_t epoch = 0;
  uint64_t offset = 0;
};

class WriteBatch {
 public:
  // Operations of a batch that stand next to one another.
  struct Fragment {
    std::string_view encoded;  // in the batch's memory
    uint32_t sequence_count = 0;
    LogAddress* log_address = nullptr;  // where to say where the log has it; null: no value stays there
  };
  // Receives the operations of a batch, in order; passes over those that it does not override.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void put(std::string_view /*key*/, std::string_view /*value*/) {}
    virtual void remove(std::string_view /*key*/) {}
    virtual void remove_range(std::string_view /*begin*/, std::string_view /*end*/) {}
    virtual void external_write(const ExternalWrite& /*write*/) {}
    virtual void note(std::string_view /*bytes*/) {}
  };

  void put(std::string_view key, std::string_view value);
  // What a put of so long a key and value adds to encoded_bytes().
  static size_t put_bytes(size_t key_bytes, size_t value_bytes);
  void remove(std::string_view key);
  // Removes every key in [begin, end); nothing when begin >= end.
  void remove_range(std::string_view begin, std::string_view end);
  void external_write(const ExternalWrite& write);
  // Bytes for the user's own recovery: kept in the log, handed back by replay, never in the tree.
  void note(std::string_view bytes);

  bool empty() const { return m_body.empty(); }
  bool has_updates() const { return m_updates > 0; }  // a put, remove or remove_range
  // Sequence numbers the batch takes: one per put, remove and remove_range, and at least one.
  uint32_t sequence_count() const { return m_updates > 0 ? m_updates : 1; }
  // Of these, remove_range.
  uint32_t range_count() const { return m_ranges; }
  size_t encoded_bytes() const { return m_body.size(); }
  std::string_view encoded() const { return m_body; }

  // Cuts it between operations: into fragments of at most `bytes_most` each, or of one operation that is larger. They
  // take as many sequence numbers as the batch, and one for each fragment without a put, remove or remove_range.
  std::vector<Fragment> cut(size_t bytes_most) const;

  // Calls the handler for each operation; Code::corruption on malformed bytes (nothing is called for the
  // malformed operation itself).
  Status iterate(Handler& handler) const { return iterate(m_body, handler); }
  static Status iterate(std::string_view encoded, Handler& handler);

 private:
  std::string m_body;
  uint32_t m_updates = 0;
  uint32_t m_ranges = 0;  // among them
};

}  // namespace vtkv
