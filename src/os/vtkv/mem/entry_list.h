// SPDX-License-Identifier: LGPL-2.1-or-later
// An ordered list of entries over an arena, and beside it a B+-tree that finds entries in the list.
//
// A search in a skip list waits for memory at each of some log2(n) entries. A node of the tree has the eight bytes in
// which its keys differ side by side in two cache lines, so a search waits for some log10(n) nodes, and the upper ones
// are in the cache. (Keys without what all keys of a node begin with: prefix B-trees, Bayer and Unterauer, TODS 1977.)
//
// Threads: one writer at a time; any number of readers at once, which take no lock. The list is the truth and the tree
// only proposes where to begin: a reader that meets a node of the tree while it changes is led to an entry too early,
// and walks on, or too late, notices and descends once more by what cannot mislead it. So it never waits for the
// writer, wherever that has been stopped. Invariants:
//   1. An entry is complete before it is linked (release), never changes but for its link, and is never unlinked.
//   2. An entry is in the list before it is in the tree. Versions of a key that come as the newest the tree need not
//      know: they lie before one that it knows, kUnindexedVersions of them at most. So a search for the newest finds it
//      at once, and one for an older version walks no further than that. What is written over and over, as the number
//      of a log's newest entry is, costs the tree next to nothing.
//   3. Order: key ascending, then sequence descending, then the one inserted later first; so that the
//      first entry at or after (key, s) is the state of key at s.
//   4. A node of the tree never moves and stays on its level. Its first cell is its least entry and never changes.
//   5. What any other cell stands for only ever becomes less. So a cell that was found to begin before a key still does
//      when the reader follows it: entries compared with entries, a search is never led too far.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "vtkv/mem/arena.h"
#include "vtkv/mem/entry.h"

namespace vtkv {

class EntryList {
 public:
  class Node;

  explicit EntryList(Arena* arena);
  EntryList(const EntryList&) = delete;
  EntryList& operator=(const EntryList&) = delete;

  void insert(const Entry& entry);

  const Node* first() const;
  const Node* last() const;
  // First entry at or after (key, sequence) in the list's order; null at the end.
  const Node* find(std::string_view key, SequenceNumber sequence) const;
  static const Node* next(const Node* node);
  const Node* previous(const Node* node) const;
  static Entry entry_of(const Node* node);

 private:
  class Index;
  // Where a search went through the tree, from the leaf up.
  struct Path {
    struct Step {
      Index* index;
      int cell;
    };
    static constexpr int kMaxHeight = 24;
    std::array<Step, kMaxHeight> steps;
    int height = 0;
  };

  Node* new_node(const Entry& entry);
  Index* new_index(int level, const Node* low, const Node* high);
  // Asks the tree for the last entry that it knows before (key, sequence), or the head. The writer, who wants the path
  // too, gets it; a reader, whose `path` is null, may get another one.
  Node* descend(std::string_view key, SequenceNumber sequence, Path* path) const;
  // The same for a reader, slower and never too late.
  Node* descend_by_entries(std::string_view key, SequenceNumber sequence) const;
  // An entry before (key, sequence), or the head: the last one but for what the tree does not know.
  Node* find_before(std::string_view key, SequenceNumber sequence) const;
  // What ends the range of the path's node of that level; null: nothing does.
  const Node* high_end(const Path& path, int level) const;
  // Puts an entry, or a node of the level below, behind the cell that the path takes on that level.
  void add_to_index(const Path& path, int level, const Node* low, void* added);

  static constexpr unsigned kUnindexedVersions = 15;
  static constexpr size_t kIndexesAtOnce = 8;  // of the arena: what aligning them takes is little then

  Arena* const m_arena;
  Node* const m_head;
  std::atomic<Index*> m_root{nullptr};
  char* m_free_index = nullptr;
  size_t m_free_indexes = 0;
};

}  // namespace vtkv
