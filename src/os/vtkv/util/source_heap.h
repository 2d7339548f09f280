// SPDX-License-Identifier: LGPL-2.1-or-later
// The sources of a merge that have something left, the one whose turn it is in front.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace vtkv {

// `Before(a, b)`: does source a come before source b, by what they stand on?
template <typename Before>
class SourceHeap {
 public:
  explicit SourceHeap(Before before) : m_before(std::move(before)) {}

  void reserve(size_t sources) { m_heap.reserve(sources); }
  void clear() { m_heap.clear(); }
  // After all have been added, order() has to follow.
  void add(size_t source) { m_heap.push_back(source); }
  void order() {
    std::make_heap(m_heap.begin(), m_heap.end(), [this](size_t a, size_t b) { return m_before(b, a); });
  }

  bool empty() const { return m_heap.empty(); }
  size_t front() const { return m_heap.front(); }
  // The front source has moved on, or has ended.
  void front_moved(bool has_more) {
    if (!has_more) {
      m_heap.front() = m_heap.back();
      m_heap.pop_back();
    }
    for (size_t parent = 0, child = 1; child < m_heap.size(); parent = child, child = 2 * parent + 1) {
      child += child + 1 < m_heap.size() && m_before(m_heap[child + 1], m_heap[child]);
      if (!m_before(m_heap[child], m_heap[parent])) {
        return;
      }
      std::swap(m_heap[child], m_heap[parent]);
    }
  }
  // The next in turn behind the front one is among these, if there is any: no more than two.
  const size_t* next_begin() const { return m_heap.data() + std::min<size_t>(1, m_heap.size()); }
  const size_t* next_end() const { return m_heap.data() + std::min<size_t>(3, m_heap.size()); }

 private:
  const Before m_before;
  std::vector<size_t> m_heap;
};

}  // namespace vtkv
