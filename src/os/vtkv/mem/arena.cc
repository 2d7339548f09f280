// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/arena.h"

namespace vtkv {

namespace {
constexpr size_t kAlignment = alignof(void*) > alignof(uint64_t) ? alignof(void*) : alignof(uint64_t);
constexpr size_t kFirstBlockBytes = 4 << 10;  // an idle cube's memtable stays small
}  // namespace

char* Arena::allocate(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > m_free_bytes) {
    const size_t block_bytes = m_blocks.empty() ? kFirstBlockBytes : kBlockBytes;
    // A big piece gets a block of its own, so that the rest of the current one is not lost.
    if (bytes > block_bytes / 4) {
      return allocate_block(bytes);
    }
    m_free = allocate_block(block_bytes);
    m_free_bytes = block_bytes;
  }
  char* memory = m_free;
  m_free += bytes;
  m_free_bytes -= bytes;
  return memory;
}

char* Arena::allocate_aligned(size_t bytes, size_t alignment) {
  char* memory = allocate(bytes + alignment - kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return memory + (alignment - address % alignment) % alignment;
}

char* Arena::allocate_block(size_t bytes) {
  m_blocks.push_back(std::make_unique_for_overwrite<char[]>(bytes));
  m_memory_bytes.fetch_add(bytes + sizeof(m_blocks.back()), std::memory_order_relaxed);
  return m_blocks.back().get();
}

}  // namespace vtkv
