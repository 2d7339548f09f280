#include "vtkv/iter/db_iterator.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr unsigned kStepsBefore = 3;           // that reading ahead begins
constexpr size_t kWindowItemsMin = 8;
constexpr size_t kWindowItemsMax = 512;
constexpr size_t kPassedPerItem = 3;           // a window is as large as a third of the way so far
constexpr uint64_t kWindowBytes = 2u << 20;    // of values
constexpr size_t kRememberedItems = 64;        // in a window: a long scan stops filling the cache

}  // namespace

void DbIterator::follow() {
  m_status = Status();
  m_followed = m_visible.valid() && m_visible.type() == EntryType::value_pointer;
  if (m_followed) {
    m_status = m_values->read(m_visible.key(), m_visible.value(), &m_read);
    m_value = m_read;
  }
}

void DbIterator::leave_windows() {
  m_windows.clear();
  m_steps = 0;
}

void DbIterator::seek_to_first() {
  leave_windows();
  m_visible.seek_to_first();
  follow();
}

void DbIterator::seek_to_last() {
  leave_windows();
  m_visible.seek_to_last();
  follow();
}

void DbIterator::seek(std::string_view target) {
  leave_windows();
  m_visible.seek(target);
  follow();
}

void DbIterator::seek_for_previous(std::string_view target) {
  leave_windows();
  m_visible.seek_for_previous(target);
  follow();
}

void DbIterator::next() {
  if (m_windows.empty()) {
    m_visible.next();
    const bool ahead = m_fetcher && ++m_steps >= kStepsBefore && m_visible.valid() &&
                       m_visible.type() == EntryType::value_pointer;
    if (!ahead) {
      follow();
      return;
    }
    add_window();
    add_window();
    show_item();
    return;
  }
  ++m_steps;
  Window& window = m_windows.front();
  if (++window.at == window.items.size()) {
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
    const std::string key = current().key;
    leave_windows();
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
  const size_t items = std::clamp(m_steps / kPassedPerItem, kWindowItemsMin, kWindowItemsMax);
  window.fetch = std::make_shared<ValueFetch>(m_values, m_state, items <= kRememberedItems);
  uint64_t bytes = 0;
  while (m_visible.valid() && window.items.size() < items && bytes < kWindowBytes) {
    Item& item = window.items.emplace_back();
    item.key.assign(m_visible.key());
    if (m_visible.type() == EntryType::value_pointer) {
      ValuePointer pointer;
      item.number = window.fetch->size();
      item.fetched = true;
      item.status = pointer.decode(m_visible.value()) ? window.fetch->add(pointer)
                                                      : Status::corruption("the pointer to a value is malformed");
      bytes += pointer.length;
    }
    item.value.assign(m_visible.value());
    bytes += item.value.size();
    m_visible.next();
  }
  m_fetcher->start(window.fetch);
  m_windows.push_back(std::move(window));
}

void DbIterator::show_item() {
  Window& window = m_windows.front();
  const Item& item = current();
  m_status = item.status;
  if (!item.fetched) {
    m_value = item.value;
  } else if (m_status.ok()) {
    if (!window.waited) {
      m_fetcher->wait(*window.fetch);
      window.waited = true;
    }
    m_status = window.fetch->value(item.number, item.key, &m_value);
  }
  if (!m_status.ok()) {  // once more, with all its tries
    m_status = m_values->read(item.key, item.value, &m_read);
    m_value = m_read;
  }
}

}  // namespace vtkv
