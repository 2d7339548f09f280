// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/sparse_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

unsigned count(uint64_t members) { return static_cast<unsigned>(std::popcount(members)); }

}  // namespace

size_t SparseTable::offset(const Group& group, uint64_t number) const {
  const uint64_t below = (uint64_t{1} << number % kGroup) - 1;
  return m_bytes_each * count(group.members & below);
}

const char* SparseTable::find(uint64_t number) const {
  if (!contains(number)) {
    return nullptr;
  }
  const Group& group = m_groups[number / kGroup];
  return group.bytes.get() + offset(group, number);
}

void SparseTable::reallocate(Group* group, unsigned members) {
  const unsigned before = count(group->members);
  if (allocated(members) == allocated(before)) {
    return;
  }
  std::unique_ptr<char[]> bytes;
  if (members > 0) {
    bytes = std::make_unique_for_overwrite<char[]>(allocated(members));
    std::copy_n(group->bytes.get(), m_bytes_each * std::min(before, members), bytes.get());
  }
  group->bytes = std::move(bytes);
  m_allocated_bytes += allocated(members);
  m_allocated_bytes -= allocated(before);
}

char* SparseTable::insert(uint64_t number) {
  VTKV_ASSERT(!contains(number));
  if (number / kGroup >= m_groups.size()) {
    m_groups.resize(number / kGroup + 1);
  }
  Group& group = m_groups[number / kGroup];
  const size_t end = m_bytes_each * count(group.members);
  reallocate(&group, count(group.members) + 1);
  char* const at = group.bytes.get() + offset(group, number);
  std::memmove(at + m_bytes_each, at, end - offset(group, number));
  std::memset(at, 0, m_bytes_each);
  group.members |= uint64_t{1} << number % kGroup;
  ++m_count;
  return at;
}

void SparseTable::erase(uint64_t number) {
  VTKV_ASSERT(contains(number));
  Group& group = m_groups[number / kGroup];
  const size_t end = m_bytes_each * count(group.members);
  char* const at = group.bytes.get() + offset(group, number);
  std::memmove(at, at + m_bytes_each, end - offset(group, number) - m_bytes_each);
  reallocate(&group, count(group.members) - 1);
  group.members &= ~(uint64_t{1} << number % kGroup);
  --m_count;
}

uint64_t SparseTable::find_from(uint64_t start) const {
  uint64_t above = ~uint64_t{0} << start % kGroup;
  for (uint64_t group = start / kGroup; group < m_groups.size(); ++group) {
    if (const uint64_t members = m_groups[group].members & above; members != 0) {
      return group * kGroup + static_cast<unsigned>(std::countr_zero(members));
    }
    above = ~uint64_t{0};
  }
  return npos;
}

}  // namespace vtkv
