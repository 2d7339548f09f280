// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/visible_iterator.h"

#include "vtkv/util/invariants.h"
#include "vtkv/util/utf8.h"

namespace vtkv {

namespace {
// Versions of one key that are stepped over one by one; from then on a search is cheaper.
constexpr int kVersionStepsMost = 8;
}  // namespace

VisibleIterator::VisibleIterator(std::shared_ptr<const ReadState> state, std::string_view lower, std::string_view upper,
                                 SequenceNumber sequence)
    : m_state(std::move(state)), m_lower(lower), m_upper(upper), m_sequence(sequence) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  for (const auto& memtable : m_state->memtables) {
    sources.push_back(memtable->new_iterator());
    m_tombstones.emplace_back(memtable, &memtable->range_tombstones());
  }
  m_state->version->new_iterators(m_lower, m_upper, &sources, &m_tombstones);
  VTKV_ASSERT(sources.size() == m_tombstones.size());
  for (const auto& tombstones : m_tombstones) {
    m_any_tombstones |= tombstones && !tombstones->empty();
  }
  m_entries = std::make_unique<MergingIterator>(std::move(sources));
}

bool VisibleIterator::hidden(const Entry& entry, size_t* source) const {
  SequenceNumber newest = entry.sequence;
  bool found = false;
  for (size_t i = 0; m_any_tombstones && i < m_tombstones.size(); ++i) {
    if (m_tombstones[i] && !m_tombstones[i]->empty()) {
      const SequenceNumber covering = m_tombstones[i]->covering(entry.key, m_sequence);
      if (covering > newest) {
        newest = covering;
        *source = i;
        found = true;
      }
    }
  }
  return found;
}

bool VisibleIterator::in_bounds() const {
  return m_entries->valid() && m_entries->entry().key >= m_lower &&
         (m_upper.empty() || m_entries->entry().key < m_upper);
}

void VisibleIterator::fail_order() {
  m_entries->fail(Status::corruption("entries are out of order: '" + to_utf8(m_entries->entry().key) +
                                     (m_forward ? "' follows '" : "' precedes '") + to_utf8(m_key) + "'"));
}

// Does m_entries stand on a version of m_key? Ends it where it stands before that, in the direction of travel.
bool VisibleIterator::on_key() {
  if (!m_entries->valid()) {
    return false;
  }
  const int order = m_entries->entry().key.compare(m_key);
  if (m_forward ? order < 0 : order > 0) {
    fail_order();
  }
  return order == 0;
}

// Leaves the versions of a key behind that are too new, from the one that m_entries stands on.
void VisibleIterator::skip_newer_versions() {
  m_key.assign(m_entries->entry().key);
  int steps = 0;
  do {
    if (steps++ == kVersionStepsMost) {
      m_entries->seek(m_key, m_sequence);
    } else {
      m_entries->next();
    }
  } while (on_key() && m_entries->entry().sequence > m_sequence);
}

// Leaves every version of m_key behind. REQUIRES: m_entries stands on one.
void VisibleIterator::skip_key_forward() {
  int steps = 0;
  do {
    if (steps++ == kVersionStepsMost) {
      m_entries->seek(m_key, 0);  // no entry has sequence 0: the first one of the next key
    } else {
      m_entries->next();
    }
  } while (on_key());
}

// Stops on the first visible entry at or after where m_entries stands; that is the newest version at or
// below its position of its key.
void VisibleIterator::find_forward() {
  m_forward = true;
  m_valid = false;
  while (in_bounds()) {
    const Entry& entry = m_entries->entry();
    if (entry.sequence > m_sequence) {
      skip_newer_versions();
      continue;
    }
    size_t source = 0;
    m_key.assign(entry.key);
    const bool is_hidden = hidden(entry, &source);
    if (!is_hidden && entry.type != EntryType::tombstone) {
      m_valid = true;
      return;
    }
    if (is_hidden) {
      const std::string until = m_tombstones[source]->covered_until(m_key, m_sequence, 0);
      m_entries->skip_older(source, until);
    }
    if (!is_hidden || on_key()) {
      skip_key_forward();
    }
  }
}

// REQUIRES: m_entries stands on m_key. Passes over its versions, which come oldest first; *newest is what the last one
// at or below the sequence is.
void VisibleIterator::pass_key_backward(Newest* newest) {
  const auto take = [&](const Entry& entry) {
    newest->is_hidden = hidden(entry, &newest->removed_by);
    newest->exists = !newest->is_hidden && entry.type != EntryType::tombstone;
    if (newest->exists) {
      m_value.assign(entry.value);
      m_type = entry.type;
    }
  };
  for (int steps = 0; steps == 0 || on_key(); ++steps) {
    if (steps == kVersionStepsMost) {
      m_entries->seek(m_key, m_sequence);
      if (!m_entries->status().ok()) {
        return;  // another seek would forget that
      }
      if (m_entries->valid() && m_entries->entry().key == m_key) {
        take(m_entries->entry());
      }
      m_entries->seek_before(m_key);
      return;
    }
    if (m_entries->entry().sequence <= m_sequence) {
      take(m_entries->entry());
    }
    m_entries->previous();
  }
}

// Stops before the newest visible key at or before where m_entries stands, with its value copied.
void VisibleIterator::find_backward() {
  m_forward = false;
  m_valid = false;
  while (in_bounds()) {
    m_key.assign(m_entries->entry().key);
    Newest newest;
    pass_key_backward(&newest);
    if (!m_entries->status().ok()) {
      return;
    }
    if (newest.exists) {
      m_valid = true;
      return;
    }
    if (newest.is_hidden) {
      if (const auto from = m_tombstones[newest.removed_by]->covered_from(m_key, m_sequence, 0)) {
        m_entries->skip_older_backward(newest.removed_by, *from);
      }
    }
  }
}

// What a tombstone hides in older sources they need not look for: each begins where those of the newer ones end.
void VisibleIterator::seek(std::string_view target) {
  const std::string_view from = target < m_lower ? std::string_view(m_lower) : target;
  if (m_any_tombstones) {
    m_starts.resize(m_tombstones.size());
    std::string start(from);
    for (size_t i = 0; i < m_tombstones.size(); ++i) {
      m_starts[i] = start;
      if (m_tombstones[i] && !m_tombstones[i]->empty()) {
        std::string until = m_tombstones[i]->covered_until(start, m_sequence, 0);
        start = until.empty() ? start : std::move(until);
      }
    }
    m_entries->seek_each(m_starts);
  } else {
    m_entries->seek(from, UINT64_MAX);
  }
  find_forward();
}

void VisibleIterator::seek_to_last() {
  m_upper.empty() ? m_entries->seek_to_last() : m_entries->seek_before(m_upper);
  find_backward();
}

void VisibleIterator::seek_for_previous(std::string_view target) {
  if (!m_upper.empty() && target >= m_upper) {
    seek_to_last();
    return;
  }
  // The smallest key after target.
  std::string after(target);
  after.push_back('\0');
  m_entries->seek_before(after);
  find_backward();
}

void VisibleIterator::next() {
  VTKV_ASSERT(m_valid);
  if (m_forward) {
    skip_key_forward();
  } else {
    m_entries->seek(m_key, 0);
  }
  find_forward();
}

void VisibleIterator::previous() {
  VTKV_ASSERT(m_valid);
  if (m_forward) {
    m_entries->seek_before(m_key);
  }
  find_backward();
}

}  // namespace vtkv
