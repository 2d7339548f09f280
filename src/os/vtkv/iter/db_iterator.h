// SPDX-License-Identifier: LGPL-2.1-or-later
// The user's view of a read state at one sequence: what is visible, with the values that stayed in the log.
//
// A value is read when the iterator comes to it. After a few steps forward in a row, or at once where scans are long
// of late, it runs ahead instead: it gathers a window of entries, whose values are fetched all at once, and the next
// window while this one is used up. Windows grow with the way behind, so that a short range reads little too much.
// What was fragmented is relocated for the scans to come (fragmented_values.h).
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "vtkv/blob/fragmented_values.h"
#include "vtkv/blob/value_fetcher.h"
#include "vtkv/blob/value_reader.h"
#include "vtkv/iter/scan_lengths.h"
#include "vtkv/iter/visible_iterator.h"
#include "vtkv/iterator.h"

namespace vtkv {

class DbIterator final : public Iterator {
 public:
  // `fetcher` null: nothing is read ahead. `lengths` null: nothing is learnt of other scans.
  DbIterator(std::shared_ptr<const ReadState> state, const ValueReader* values, ValueFetcher* fetcher,
             std::string_view lower, std::string_view upper, SequenceNumber sequence, ScanLengths* lengths = nullptr,
             FragmentedValues fragmented = {})
      : m_state(state),
        m_visible(std::move(state), lower, upper, sequence),
        m_values(values),
        m_fetcher(fetcher),
        m_lengths(lengths),
        m_fragmented(std::move(fragmented)) {}
  ~DbIterator() override { leave(); }

  bool valid() const override { return m_status.ok() && (m_windows.empty() ? m_visible.valid() : true); }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view target) override;
  void seek_for_previous(std::string_view target) override;
  void next() override;
  void previous() override;
  std::string_view key() const override {
    return m_windows.empty() ? m_visible.key() : m_windows.front().key(m_windows.front().current());
  }
  std::string_view value() const override { return m_windows.empty() && !m_followed ? m_visible.value() : m_value; }
  Status status() const override { return !m_status.ok() || !m_windows.empty() ? m_status : m_visible.status(); }

 private:
  struct Item {
    size_t offset, key_bytes, value_bytes;  // in its window's bytes: the key, the value or the pointer to it
    bool fetched = false;                   // its value is `number` of the fetch
    size_t number = 0;
    Status status;                          // why it could not be fetched
  };
  struct Window {
    std::string_view key(const Item& item) const { return {bytes.data() + item.offset, item.key_bytes}; }
    std::string_view value(const Item& item) const {
      return {bytes.data() + item.offset + item.key_bytes, item.value_bytes};
    }
    const Item& current() const { return items[at]; }

    std::string bytes;
    std::vector<Item> items;
    size_t at = 0;
    std::shared_ptr<ValueFetch> fetch;
    bool waited = false;
  };

  bool runs_ahead() const;
  void arrive();
  void follow();
  void leave();
  void add_window();
  void gather_fragmented(const Window& window);
  void show_item();

  const std::shared_ptr<const ReadState> m_state;
  VisibleIterator m_visible;  // behind the last window, if there are any
  const ValueReader* const m_values;
  ValueFetcher* const m_fetcher;
  ScanLengths* const m_lengths;
  FragmentedValues m_fragmented;
  std::deque<Window> m_windows;  // the current item is in the first; none: m_visible stands on the entry
  bool m_in_scan = false;        // it stands somewhere
  size_t m_steps = 0;            // forward, in a row
  bool m_followed = false;       // without windows: the value is in m_read
  std::string m_read;
  std::string_view m_value;
  Status m_status;
};

}  // namespace vtkv
