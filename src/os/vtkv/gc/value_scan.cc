// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/value_scan.h"

#include <algorithm>

#include "vtkv/iter/merging_iterator.h"

namespace vtkv {

namespace {

constexpr size_t kStepsMost = 64u << 10;  // of one find()

}  // namespace

void ValueScan::start(std::vector<uint64_t> epochs, std::string first_key) {
  clear();
  m_next_key = std::move(first_key);
  m_epochs = std::move(epochs);
  std::sort(m_epochs.begin(), m_epochs.end());
}

// Most entries lead to segments that are newer than all of these.
bool ValueScan::wants(uint64_t epoch) const {
  return epoch <= m_epochs.back() && std::binary_search(m_epochs.begin(), m_epochs.end(), epoch);
}

void ValueScan::clear() {
  m_epochs.clear();
  m_next_key.clear();
  m_at_end = false;
  m_keys.clear();
  m_fetch.reset();
  m_numbers.clear();
  m_reread.clear();
}

Status ValueScan::go_on(const Version& version, const Found& found) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  std::vector<std::shared_ptr<const RangeTombstones>> tombstones;
  version.new_iterators(m_next_key, "", &sources, &tombstones);
  MergingIterator entries(std::move(sources));
  m_next_key.empty() ? entries.seek_to_first() : entries.seek(m_next_key, UINT64_MAX);
  std::string key;
  bool enough = false;
  for (size_t steps = 0; entries.valid(); entries.next(), ++steps) {
    if (m_stop != nullptr && m_stop->load(std::memory_order_relaxed)) {
      return Status::failed("the database is being closed");
    }
    const Entry& entry = entries.entry();
    if (steps > 0 && entry.key == key) {
      continue;  // an older version
    }
    key.assign(entry.key);
    if (enough || steps >= kStepsMost) {
      m_next_key = std::move(key);
      return {};
    }
    ValuePointer pointer;
    if (entry.type == EntryType::value_pointer && pointer.decode(entry.value) && wants(pointer.epoch)) {
      enough = !found(key, pointer);
    }
  }
  m_at_end = entries.status().ok();
  if (!m_at_end && !key.empty()) {
    m_next_key = std::move(key);
  }
  return entries.status();
}

Status ValueScan::find(const Version& version, uint64_t bytes_max, std::vector<Relocation>* values) {
  m_keys.clear();
  m_fetch.reset();
  m_reread.clear();
  uint64_t bytes = 0;
  return go_on(version, [&](std::string_view key, const ValuePointer& pointer) {
    values->push_back({m_keys.emplace_back(key), {}, pointer});
    bytes += pointer.length;
    return bytes < bytes_max;
  });
}

Status ValueScan::find_addresses(const Version& version, std::map<uint64_t, std::vector<uint64_t>>* addresses) {
  return go_on(version, [&](std::string_view, const ValuePointer& pointer) {
    (*addresses)[pointer.epoch].push_back(pointer.offset);
    return true;
  });
}

void ValueScan::read(const std::vector<Relocation>& values, std::function<void()> done) {
  m_fetch = std::make_shared<ValueFetch>(m_reader, nullptr, false);
  m_numbers.clear();
  for (const Relocation& value : values) {
    m_numbers.push_back(m_fetch->add(value.pointer).ok() ? m_fetch->size() - 1 : SIZE_MAX);
  }
  m_fetcher->start(m_fetch, std::move(done));
}

Status ValueScan::take(size_t n, Relocation* value) {
  if (m_numbers[n] != SIZE_MAX && m_fetch->value(m_numbers[n], value->key, &value->value).ok()) {
    return {};
  }
  std::string pointer;
  value->pointer.encode(&pointer);
  std::string& bytes = m_reread.emplace_back();
  VTKV_RETURN_IF_ERROR(m_reader->read(value->key, pointer, &bytes));  // with all its tries
  value->value = bytes;
  return {};
}

}  // namespace vtkv
