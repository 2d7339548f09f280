// An ordered list of entries with O(log n) search, over an arena.
//
// Threads: one writer at a time; any number of readers at once, which take no lock.
// Invariants:
//   1. A node's content is complete before the node is linked (release), and never changes after.
//   2. A node is never unlinked; it lives as long as the list.
//   3. Order: key ascending, then sequence descending, then the one inserted later first; so that the
//      first node at or after (key, s) is the state of key at s.
//   4. A node linked at level h is linked at every level below h before.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "vtkv/mem/arena.h"
#include "vtkv/mem/entry.h"

namespace vtkv {

class SkipList {
 public:
  class Node;

  explicit SkipList(Arena* arena);
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  void insert(const Entry& entry);

  const Node* first() const;
  const Node* last() const;
  // First node at or after (key, sequence) in the list's order; null at the end.
  const Node* find(std::string_view key, SequenceNumber sequence) const;
  static const Node* next(const Node* node);
  const Node* previous(const Node* node) const;
  static Entry entry_of(const Node* node);

 private:
  static constexpr int kMaxHeight = 12;  // 4^12 entries

  Node* new_node(const Entry& entry, int height);
  int random_height();
  // Last node before (key, sequence) on every level; the head where there is none.
  void find_before(std::string_view key, SequenceNumber sequence, Node** before) const;

  Arena* const m_arena;
  Node* const m_head;
  std::atomic<int> m_height{1};
  uint64_t m_random = 0x9e3779b97f4a7c15;  // heights need no better randomness than xorshift
};

}  // namespace vtkv
