// SPDX-License-Identifier: LGPL-2.1-or-later
// A sorted, immutable sequence of entries on disk with its index, range tombstones and filter.
//
// Thread-safe. Keeps its zones from being reused while it lives.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/memtable.h"
#include "vtkv/span/span_reader.h"
#include "vtkv/table/quotient_filter.h"
#include "vtkv/table/run_format.h"

namespace vtkv {

class RunIterator;
struct Salvaged;

class Run {
 public:
  // What a writer has just written.
  Run(SpanReader reader, RunLocation location, RunDescriptor descriptor,
      std::shared_ptr<const RangeTombstones> tombstones, std::shared_ptr<const QuotientFilter> filter);
  // Reads descriptor, range tombstones and filter. Code::corruption, io_error.
  static Status open(const SpanReader& reader, const RunLocation& location, std::shared_ptr<const Run>* run);
  // Reads the descriptor alone, for a run that only keeps its zones: its entries must not be read. Errors as of open().
  static Status open_unread(const SpanReader& reader, const RunLocation& location, std::shared_ptr<const Run>* run);
  // The run without what cannot be read of it, to be read only. In run_salvage.cc.
  static std::shared_ptr<const Run> salvage(const SpanReader& reader, const RunLocation& location, Salvaged* salvaged);

  // As Version::get. `key_hash` is hash64(key).
  Status get(std::string_view key, uint64_t key_hash, SequenceNumber at_most, Lookup* result, std::string* value) const;
  // The same for the newest version, going on from where *iterator stands; null: it is made when it is needed.
  // REQUIRES: the same run, and `key` is not below the one before.
  Status get_ahead(std::string_view key, uint64_t key_hash, std::unique_ptr<RunIterator>* iterator, Lookup* result,
                   std::string* value) const;
  bool overlaps(std::string_view lower, std::string_view upper) const;  // an empty upper is no limit
  // Its entries and range tombstones lie in [begin_key(), end_key()). REQUIRES for a run of open_unread(): never asked.
  const std::string& begin_key() const { return m_begin_key; }
  const std::string& end_key() const { return m_end_key; }
  // May there be an entry of the key? Never wrong when it says no.
  bool may_hold(std::string_view key) const;
  bool may_hold(std::string_view key, uint64_t key_hash) const;
  // Does [begin, end) meet the range from the smallest to the greatest key?
  bool entries_reach_into(std::string_view begin, std::string_view end) const;
  // Is there any entry in [begin, end)? Reads index and blocks.
  Status holds_any(std::string_view begin, std::string_view end, bool* holds) const;
  // The run must outlive the iterator.
  std::unique_ptr<EntryIterator> new_iterator() const;
  // Everything that it refers to in the zone file: slices of spans, their indexes, spans of other blocks.
  void for_each_extent(const std::function<void(uint64_t offset, uint64_t bytes, uint64_t entries)>& visit) const;
  // Reads every block from disk; one sentence per finding. As DB::verify().
  void verify(std::vector<std::string>* findings, const std::atomic<bool>* cancelled = nullptr) const;

  const RunLocation& location() const { return m_location; }
  const RunDescriptor& descriptor() const { return m_descriptor; }
  uint64_t entries() const { return m_entries; }
  uint64_t entry_bytes() const { return m_entry_bytes; }
  uint64_t doubtful() const { return m_doubtful; }
  uint64_t bytes() const { return m_bytes; }  // of everything that it refers to in the zone file
  size_t index_bytes() const { return m_index_bytes; }  // in memory, always: the top of its index
  const std::shared_ptr<const RangeTombstones>& range_tombstones() const { return m_tombstones; }
  const QuotientFilter& filter() const { return *m_filter; }
  const std::shared_ptr<const QuotientFilter>& shared_filter() const { return m_filter; }
  const SpanReader& reader() const { return m_reader; }

 private:
  static Status read_descriptor(const SpanReader& reader, const RunLocation& location, RunDescriptor* descriptor);
  class Salvager;
  void set_bounds();
  Status load_tombstones();
  Status verify_slice(size_t ordinal) const;
  Status load_filter();

  const SpanReader m_reader;
  const RunLocation m_location;
  const RunDescriptor m_descriptor;
  std::shared_ptr<const RangeTombstones> m_tombstones;
  std::shared_ptr<const QuotientFilter> m_filter;
  const uint64_t m_entries;
  const uint64_t m_entry_bytes;
  const uint64_t m_doubtful;
  const uint64_t m_bytes;
  const size_t m_index_bytes;
  std::string m_begin_key, m_end_key;
  ZoneFile::Pins m_pins;
};

}  // namespace vtkv
