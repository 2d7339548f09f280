// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/merging_iterator.h"

namespace vtkv {

namespace {

constexpr SequenceNumber kNewest = UINT64_MAX;

}  // namespace

MergingIterator::MergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources)
    : m_sources(std::move(sources)), m_heap(InTurn{this}) {
  m_heap.reserve(m_sources.size());
}

bool MergingIterator::InTurn::operator()(size_t a, size_t b) const {
  const EntryPosition left = merging->position_of(a), right = merging->position_of(b);
  return merging->m_forward ? comes_before(left, right) : comes_before(right, left);
}

void MergingIterator::check(const EntryIterator& source) {
  if (!source.valid() && m_status.ok()) {
    m_status = source.status();
  }
}

void MergingIterator::rebuild() {
  m_heap.clear();
  for (size_t i = 0; i < m_sources.size(); ++i) {
    check(*m_sources[i]);
    if (m_sources[i]->valid()) {
      m_heap.add(i);
    }
  }
  m_heap.order();
}

void MergingIterator::front_moved() {
  const EntryIterator& source = *m_sources[m_heap.front()];
  check(source);
  m_heap.front_moved(source.valid());
}

void MergingIterator::seek_to_first() {
  m_status = Status();
  m_forward = true;
  for (auto& source : m_sources) {
    source->seek_to_first();
  }
  rebuild();
}

void MergingIterator::seek_to_last() {
  m_status = Status();
  m_forward = false;
  for (auto& source : m_sources) {
    source->seek_to_last();
  }
  rebuild();
}

void MergingIterator::seek(std::string_view key, SequenceNumber at_most) {
  m_status = Status();
  m_forward = true;
  for (auto& source : m_sources) {
    source->seek(key, at_most);
  }
  rebuild();
}

void MergingIterator::seek_each(const std::vector<std::string>& keys) {
  m_status = Status();
  m_forward = true;
  for (size_t i = 0; i < m_sources.size(); ++i) {
    m_sources[i]->seek(keys[i], kNewest);
  }
  rebuild();
}

void MergingIterator::move_before(EntryIterator& source, std::string_view key) {
  source.seek(key, kNewest);
  if (source.valid()) {
    source.previous();
  } else if (source.status().ok()) {
    source.seek_to_last();
  }
  while (source.valid() && source.entry().key >= key) {  // put in a memtable since, or out of order
    source.previous();
  }
}

void MergingIterator::seek_before(std::string_view key) {
  m_status = Status();
  m_forward = false;
  for (auto& source : m_sources) {
    move_before(*source, key);
  }
  rebuild();
}

// Brings another source to its first entry behind `position`, which some source stands on.
void MergingIterator::move_behind(size_t other, const EntryPosition& position) {
  EntryIterator& source = *m_sources[other];
  source.seek(position.key, position.sequence);
  while (other < position.source && source.valid() && source.entry().key == position.key &&
         source.entry().sequence == position.sequence) {
    source.next();
  }
}

void MergingIterator::next() {
  if (!m_forward) {
    // The other sources stand before the current entry: bring them behind it.
    const std::string key(entry().key);
    const EntryPosition current{key, entry().sequence, m_heap.front()};
    m_forward = true;
    for (size_t i = 0; i < m_sources.size(); ++i) {
      if (i != current.source) {
        move_behind(i, current);
      }
    }
    m_sources[current.source]->next();
    rebuild();
    return;
  }
  m_sources[m_heap.front()]->next();
  front_moved();
}

void MergingIterator::previous() {
  if (m_forward) {
    const std::string key(entry().key);
    const EntryPosition current{key, entry().sequence, m_heap.front()};
    m_forward = false;
    for (size_t i = 0; i < m_sources.size(); ++i) {
      if (i == current.source) {
        continue;
      }
      move_behind(i, current);
      if (m_sources[i]->valid()) {
        m_sources[i]->previous();
      } else if (m_sources[i]->status().ok()) {
        m_sources[i]->seek_to_last();
      }
    }
    m_sources[current.source]->previous();
    rebuild();
    return;
  }
  m_sources[m_heap.front()]->previous();
  front_moved();
}

void MergingIterator::skip_older(size_t source, std::string_view key) {
  for (size_t i = source + 1; i < m_sources.size(); ++i) {
    if (m_sources[i]->valid() && m_sources[i]->entry().key < key) {
      m_sources[i]->seek(key, kNewest);
    }
  }
  rebuild();
}

void MergingIterator::skip_older_backward(size_t source, std::string_view key) {
  for (size_t i = source + 1; i < m_sources.size(); ++i) {
    if (m_sources[i]->valid() && m_sources[i]->entry().key >= key) {
      move_before(*m_sources[i], key);
    }
  }
  rebuild();
}

}  // namespace vtkv
