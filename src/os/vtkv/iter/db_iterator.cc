// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/db_iterator.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr unsigned kStepsBefore = 3;           // that reading ahead begins
constexpr size_t kStepsUsually = 8;            // of scans, for it to begin at once
constexpr size_t kWindowItemsMin = 8;
constexpr size_t kWindowItemsMax = 512;
constexpr size_t kPassedPerItem = 3;           // a window is as large as a third of the way so far
constexpr uint64_t kWindowBytes = 2u << 20;    // of values
constexpr size_t kRememberedItems = 64;        // in a window: a long scan stops filling the cache

}  // namespace

bool DbIterator::runs_ahead() const {
  return m_fetcher && m_visible.valid() && m_visible.type() == EntryType::value_pointer &&
         (m_steps >= kStepsBefore || (m_lengths && m_lengths->usual_steps() >= kStepsUsually));
}

// m_visible has come to an entry, and there are no windows.
void DbIterator::arrive() {
  if (runs_ahead()) {
    add_window();
    add_window();
    show_item();
  } else {
    follow();
  }
}

void DbIterator::follow() {
  m_status = Status();
  m_followed = m_visible.valid() && m_visible.type() == EntryType::value_pointer;
  if (m_followed) {
    m_status = m_values->read(m_visible.key(), m_visible.value(), &m_read);
    m_value = m_read;
  }
}

// The scan is over; what its windows have read and nobody came to was read all the same.
void DbIterator::leave() {
  for (const Window& window : m_windows) {
    gather_fragmented(window);
  }
  m_fragmented.relocate();
  if (m_lengths && m_in_scan) {
    m_lengths->scan_ended(m_steps);
  }
  m_windows.clear();
  m_steps = 0;
  m_in_scan = false;
}

void DbIterator::seek_to_first() {
  leave();
  m_in_scan = true;
  m_visible.seek_to_first();
  arrive();
}

void DbIterator::seek_to_last() {
  leave();
  m_visible.seek_to_last();
  follow();
}

void DbIterator::seek(std::string_view target) {
  leave();
  m_in_scan = true;
  m_visible.seek(target);
  arrive();
}

void DbIterator::seek_for_previous(std::string_view target) {
  leave();
  m_visible.seek_for_previous(target);
  follow();
}

void DbIterator::next() {
  ++m_steps;
  if (m_windows.empty()) {
    m_visible.next();
    arrive();
    return;
  }
  Window& window = m_windows.front();
  if (++window.at == window.items.size()) {
    gather_fragmented(window);
    m_windows.pop_front();
    add_window();
  }
  if (m_windows.empty()) {
    m_followed = false;  // m_visible is at its end
    m_status = Status();
    return;
  }
  show_item();
}

void DbIterator::previous() {
  if (!m_windows.empty()) {
    const std::string key(this->key());
    leave();
    m_visible.seek(key);
    if (!m_visible.valid()) {
      follow();
      return;
    }
  }
  m_steps = 0;
  m_visible.previous();
  follow();
}

// Gathers entries from m_visible on, and starts to read their values.
void DbIterator::add_window() {
  if (!m_visible.valid()) {
    return;
  }
  Window window;
  const size_t expected = std::max(m_steps, m_lengths ? m_lengths->usual_steps() : 0);
  const size_t items = std::clamp(expected / kPassedPerItem, kWindowItemsMin, kWindowItemsMax);
  window.fetch = std::make_shared<ValueFetch>(m_values, m_state, items <= kRememberedItems);
  window.items.reserve(items);
  uint64_t bytes = 0;
  while (m_visible.valid() && window.items.size() < items && bytes < kWindowBytes) {
    const std::string_view key = m_visible.key();
    const std::string_view value = m_visible.value();
    Item& item = window.items.emplace_back(window.bytes.size(), key.size(), value.size());
    window.bytes.append(key).append(value);
    bytes += value.size();
    if (m_visible.type() == EntryType::value_pointer) {
      ValuePointer pointer;
      item.number = window.fetch->size();
      item.fetched = true;
      item.status = pointer.decode(value) ? window.fetch->add(pointer)
                                          : Status::corruption("the pointer to a value is malformed");
      bytes += pointer.length;
    }
    m_visible.next();
  }
  m_fetcher->start(window.fetch);
  m_windows.push_back(std::move(window));
}

// A window that fills the cache is short enough to be worth it, too.
void DbIterator::gather_fragmented(const Window& window) {
  const bool was_read = window.waited || m_fetcher->ended(*window.fetch);
  if (!m_fragmented.gathers() || window.items.size() > kRememberedItems || !was_read) {
    return;
  }
  const std::vector<bool> apart = window.fetch->find_apart();
  for (const Item& item : window.items) {
    std::string_view value;
    const bool wanted = item.fetched && item.status.ok() && apart[item.number] &&
                        m_fragmented.wants(window.fetch->pointer(item.number).length);
    if (wanted && window.fetch->look_at(item.number, window.key(item), &value).ok()) {
      m_fragmented.add(window.key(item), value);
    }
  }
}

void DbIterator::show_item() {
  Window& window = m_windows.front();
  const Item& item = window.current();
  m_status = item.status;
  if (!item.fetched) {
    m_value = window.value(item);
  } else if (m_status.ok()) {
    if (!window.waited) {
      m_fetcher->wait(*window.fetch);
      window.waited = true;
    }
    m_status = window.fetch->value(item.number, window.key(item), &m_value);
  }
  if (!m_status.ok()) {  // once more, with all its tries
    m_status = m_values->read(window.key(item), window.value(item), &m_read);
    m_value = m_read;
  }
}

}  // namespace vtkv
