// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory that is handed out piece by piece and given back all at once.
//
// One writer; memory_bytes() may be read by any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace vtkv {

class Arena {
 public:
  static constexpr size_t kBlockBytes = 128 << 10;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Aligned for any pointer or 64-bit integer. Never null.
  char* allocate(size_t bytes);
  // REQUIRES: `alignment` is a power of two.
  char* allocate_aligned(size_t bytes, size_t alignment);
  size_t memory_bytes() const { return m_memory_bytes.load(std::memory_order_relaxed); }

 private:
  char* allocate_block(size_t bytes);

  char* m_free = nullptr;
  size_t m_free_bytes = 0;
  std::vector<std::unique_ptr<char[]>> m_blocks;
  std::atomic<size_t> m_memory_bytes{0};
};

}  // namespace vtkv
