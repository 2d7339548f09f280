#include "vtkv/iter/visible_iterator.h"

#include "vtkv/util/invariants.h"

namespace vtkv {

VisibleIterator::VisibleIterator(std::shared_ptr<const ReadState> state, std::string_view lower, std::string_view upper,
                       SequenceNumber sequence)
    : m_state(std::move(state)), m_lower(lower), m_upper(upper), m_sequence(sequence) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  for (const auto& memtable : m_state->memtables) {
    sources.push_back(memtable->new_iterator());
    m_removals.emplace_back(memtable, &memtable->range_removals());
  }
  m_state->version->new_iterators(m_lower, m_upper, &sources, &m_removals);
  VTKV_ASSERT(sources.size() == m_removals.size());
  for (const auto& removals : m_removals) {
    m_any_removals |= removals && !removals->empty();
  }
  m_entries = std::make_unique<MergingIterator>(std::move(sources), m_state->order);
}

bool VisibleIterator::hidden(const Entry& entry, size_t* source) const {
  SequenceNumber newest = entry.sequence;
  bool found = false;
  for (size_t i = 0; m_any_removals && i < m_removals.size(); ++i) {
    if (m_removals[i] && !m_removals[i]->empty()) {
      const SequenceNumber covering = m_removals[i]->covering(entry.key, m_sequence);
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
  return m_entries->valid() && m_entries->entry().key >= m_lower && m_entries->entry().key < m_upper;
}

// Leaves every version of m_key behind.
void VisibleIterator::skip_key_forward() {
  for (int steps = 0; m_entries->valid() && m_entries->entry().key == m_key; ++steps) {
    if (steps == 8) {
      m_entries->seek(m_key, 0);  // no entry has sequence 0: the first one of the next key
      continue;
    }
    m_entries->next();
  }
}

// Stops on the first visible entry at or after where m_entries stands; that is the newest version at or
// below its position of its key.
void VisibleIterator::find_forward() {
  m_forward = true;
  m_valid = false;
  while (in_bounds()) {
    const Entry& entry = m_entries->entry();
    if (entry.sequence > m_sequence) {
      m_entries->next();
      continue;
    }
    size_t source = 0;
    m_key.assign(entry.key);
    const bool is_hidden = hidden(entry, &source);
    if (!is_hidden && entry.type != EntryType::removal) {
      m_valid = true;
      return;
    }
    if (is_hidden) {
      const std::string until = m_removals[source]->covered_until(m_key, m_sequence, 0);
      m_entries->skip_older(source, until);
    }
    skip_key_forward();
  }
}

// Stops before the newest visible key at or before where m_entries stands, with its value copied.
void VisibleIterator::find_backward() {
  m_forward = false;
  m_valid = false;
  while (in_bounds()) {
    // Versions of one key come oldest first: the last one at or below the sequence counts.
    m_key.assign(m_entries->entry().key);
    bool exists = false;
    bool is_hidden = false;
    size_t source = 0;
    while (m_entries->valid() && m_entries->entry().key == m_key) {
      const Entry& entry = m_entries->entry();
      if (entry.sequence <= m_sequence) {
        is_hidden = hidden(entry, &source);
        exists = !is_hidden && entry.type != EntryType::removal;
        if (exists) {
          m_value.assign(entry.value);
          m_type = entry.type;
        }
      }
      m_entries->previous();
    }
    if (!m_entries->status().ok()) {
      return;
    }
    if (exists) {
      m_valid = true;
      return;
    }
    if (is_hidden) {
      if (const auto from = m_removals[source]->covered_from(m_key, m_sequence, 0)) {
        m_entries->skip_older_backward(source, *from);
      }
    }
  }
}

// What a removal hides in older sources they need not look for: each begins where those of the newer ones end.
void VisibleIterator::seek(std::string_view target) {
  const std::string_view from = target < m_lower ? std::string_view(m_lower) : target;
  if (m_any_removals) {
    m_starts.resize(m_removals.size());
    std::string start(from);
    for (size_t i = 0; i < m_removals.size(); ++i) {
      m_starts[i] = start;
      if (m_removals[i] && !m_removals[i]->empty()) {
        std::string until = m_removals[i]->covered_until(start, m_sequence, 0);
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
  m_entries->seek_before(m_upper);
  find_backward();
}

void VisibleIterator::seek_for_previous(std::string_view target) {
  if (target >= m_upper) {
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
  if (!m_forward) {
    m_entries->seek(m_key, 0);
  }
  skip_key_forward();
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
