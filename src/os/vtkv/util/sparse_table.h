// SPDX-License-Identifier: LGPL-2.1-or-later
// A few bytes for each number of a set: little more than these, where many of the numbers are neighbours.
//
// 64 neighbours are a group. It has a bit for each that is in the set, and their bytes, in order, in one allocation:
// a number's are found by counting bits. One that comes or goes moves the bytes of its group and nothing else, so no
// call takes long, however many there are.
//
// Source: sparsetable of Google's sparsehash.
//
// Memory: the bytes, and 16 for each group up to the largest number that ever was in the set. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

namespace vtkv {

class SparseTable {
 public:
  static constexpr uint64_t npos = ~uint64_t{0};

  explicit SparseTable(size_t bytes_each) : m_bytes_each(bytes_each) {}

  bool contains(uint64_t number) const {
    return number / kGroup < m_groups.size() && m_groups[number / kGroup].members >> number % kGroup & 1;
  }
  // Its bytes, until another comes or goes; null: it is not in the set.
  char* find(uint64_t number) { return const_cast<char*>(std::as_const(*this).find(number)); }
  const char* find(uint64_t number) const;
  // Zeros. REQUIRES: !contains(number).
  char* insert(uint64_t number);
  void erase(uint64_t number);  // REQUIRES: contains(number)
  // The smallest at or above `start`; npos: there is none.
  uint64_t find_from(uint64_t start) const;

  uint64_t size() const { return m_count; }
  uint64_t memory_bytes() const { return m_groups.size() * sizeof(Group) + m_allocated_bytes; }

 private:
  static constexpr uint64_t kGroup = 64;  // numbers
  static constexpr unsigned kStep = 4;  // of them, what an allocation grows by

  struct Group {
    uint64_t members = 0;  // a bit each
    std::unique_ptr<char[]> bytes;
  };

  size_t offset(const Group& group, uint64_t number) const;  // of its bytes in the group's
  size_t allocated(unsigned members) const { return (members + kStep - 1) / kStep * kStep * m_bytes_each; }
  // To what that many will take.
  void reallocate(Group* group, unsigned members);

  const size_t m_bytes_each;
  std::deque<Group> m_groups;
  uint64_t m_count = 0;
  uint64_t m_allocated_bytes = 0;
};

}  // namespace vtkv
