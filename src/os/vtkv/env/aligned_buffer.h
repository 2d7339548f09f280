// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory for direct I/O: its address and capacity are multiples of kIoAlignment.
//
// Reused by clearing and appending; growing keeps the contents. Not thread-safe. A moved-from buffer is
// empty. The bytes between size() and capacity() are undefined until pad() zeroes them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "vtkv/env.h"

namespace vtkv {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t capacity) { reserve(capacity); }
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }

  char* data() { return m_data.get(); }
  const char* data() const { return m_data.get(); }
  size_t size() const { return m_size; }
  size_t capacity() const { return m_capacity; }
  bool empty() const { return m_size == 0; }
  std::string_view view() const { return {m_data.get(), m_size}; }

  void clear() { m_size = 0; }
  // Makes room for `capacity` bytes, rounded up to kIoAlignment; never shrinks.
  void reserve(size_t capacity);
  // New bytes are undefined.
  void resize(size_t size);
  void append(std::string_view bytes);
  // Appends zeros up to a multiple of `alignment` (a power of two).
  void pad(size_t alignment = kIoAlignment);

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  void swap(AlignedBuffer& other) noexcept {
    std::swap(m_data, other.m_data);
    std::swap(m_size, other.m_size);
    std::swap(m_capacity, other.m_capacity);
  }

  std::unique_ptr<char, Free> m_data;
  size_t m_size = 0;
  size_t m_capacity = 0;
};

}  // namespace vtkv
