// SPDX-License-Identifier: LGPL-2.1-or-later
// Of some log segments, the values that the newest entries of the tree point to: found by going through it once, in key
// order. They can be read one by one: then nothing is read of what is dead. What it gains, and the command that shows
// it: doc/benchmarks.md, "Index-filtered garbage collection".
//
// Not thread-safe. Never waits.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/blob/relocation.h"
#include "vtkv/blob/value_fetcher.h"
#include "vtkv/tree/tree.h"

namespace vtkv {

class ValueScan {
 public:
  // `stop`: a look whether to give up; may be null.
  ValueScan(const ValueReader* reader, ValueFetcher* fetcher, const std::atomic<bool>* stop = nullptr)
      : m_reader(reader), m_fetcher(fetcher), m_stop(stop) {}

  // `epochs` is not empty; keys from `first_key` on.
  void start(std::vector<uint64_t> epochs, std::string first_key = {});
  // Appends the pointers into these segments that come next, until they name about `bytes_max` of values or it would
  // take long; perhaps none. The keys live until the next call. `version` may be a
  // newer one than the last time. Errors: corruption, io_error.
  Status find(const Version& version, uint64_t bytes_max, std::vector<Relocation>* values);
  // The same, in any number: their offsets only, by the segment's epoch.
  Status find_addresses(const Version& version, std::map<uint64_t, std::vector<uint64_t>>* addresses);
  bool at_end() const { return m_at_end; }
  // Where the next call goes on; after an error, what could not be read lies behind it.
  const std::string& next_key() const { return m_next_key; }

  // Starts to read these, of what the last find() found. `done` is called by another thread when reading() has ended;
  // never, when nothing has to be read.
  void read(const std::vector<Relocation>& values, std::function<void()> done);
  bool reading() const { return m_fetch && !m_fetcher->ended(*m_fetch); }
  // Fills in the n-th of what was read, checked; it lives until the next find(). Errors: corruption, io_error.
  Status take(size_t n, Relocation* value);
  void clear();

 private:
  using Found = std::function<bool(std::string_view key, const ValuePointer& pointer)>;

  bool wants(uint64_t epoch) const;
  // Goes on until `found` says that it is enough or it would take long.
  Status go_on(const Version& version, const Found& found);

  const ValueReader* const m_reader;
  ValueFetcher* const m_fetcher;
  const std::atomic<bool>* const m_stop;
  std::vector<uint64_t> m_epochs;  // ascending
  std::string m_next_key;  // the scan goes on here
  bool m_at_end = false;
  std::deque<std::string> m_keys;
  std::shared_ptr<ValueFetch> m_fetch;
  std::vector<size_t> m_numbers;  // of each value in the fetch; SIZE_MAX: it is not there
  std::deque<std::string> m_reread;  // values that were not to be had in one go
};

}  // namespace vtkv
