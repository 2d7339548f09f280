#include "vtkv/iter/merging_iterator.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr SequenceNumber kNewest = UINT64_MAX;

bool less(const Entry& a, const Entry& b) {
  const int order = a.key.compare(b.key);
  return order != 0 ? order < 0 : a.sequence > b.sequence;
}

}  // namespace

MergingIterator::MergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources)
    : m_sources(std::move(sources)) {
  m_heap.reserve(m_sources.size());
}

bool MergingIterator::before(size_t a, size_t b) const {
  const Entry& left = m_sources[a]->entry();
  const Entry& right = m_sources[b]->entry();
  return m_forward ? less(left, right) : less(right, left);
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
      m_heap.push_back(i);
    }
  }
  std::make_heap(m_heap.begin(), m_heap.end(), [this](size_t a, size_t b) { return before(b, a); });
}

// The front source has moved: sifts it down, or drops it when it has ended.
void MergingIterator::restore_front() {
  check(*m_sources[m_heap.front()]);
  if (!m_sources[m_heap.front()]->valid()) {
    m_heap.front() = m_heap.back();
    m_heap.pop_back();
  }
  size_t parent = 0;
  for (;;) {
    size_t child = 2 * parent + 1;
    if (child >= m_heap.size()) {
      return;
    }
    if (child + 1 < m_heap.size() && before(m_heap[child + 1], m_heap[child])) {
      ++child;
    }
    if (!before(m_heap[child], m_heap[parent])) {
      return;
    }
    std::swap(m_heap[child], m_heap[parent]);
    parent = child;
  }
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
}

void MergingIterator::seek_before(std::string_view key) {
  m_status = Status();
  m_forward = false;
  for (auto& source : m_sources) {
    move_before(*source, key);
  }
  rebuild();
}

void MergingIterator::next() {
  if (!m_forward) {
    // The other sources stand before the current entry: bring them after it.
    const size_t current = m_heap.front();
    const std::string key(entry().key);
    const SequenceNumber sequence = entry().sequence;
    m_forward = true;
    for (size_t i = 0; i < m_sources.size(); ++i) {
      if (i != current) {
        m_sources[i]->seek(key, sequence);
      }
    }
    m_sources[current]->next();
    rebuild();
    return;
  }
  m_sources[m_heap.front()]->next();
  restore_front();
}

void MergingIterator::previous() {
  if (m_forward) {
    const size_t current = m_heap.front();
    const std::string key(entry().key);
    const SequenceNumber sequence = entry().sequence;
    m_forward = false;
    for (size_t i = 0; i < m_sources.size(); ++i) {
      if (i == current) {
        continue;
      }
      m_sources[i]->seek(key, sequence);
      if (m_sources[i]->valid()) {
        m_sources[i]->previous();
      } else if (m_sources[i]->status().ok()) {
        m_sources[i]->seek_to_last();
      }
    }
    m_sources[current]->previous();
    rebuild();
    return;
  }
  m_sources[m_heap.front()]->previous();
  restore_front();
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
