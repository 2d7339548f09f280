// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/aligned_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace vtkv {

namespace {

size_t round_up(size_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

}  // namespace

void AlignedBuffer::reserve(size_t capacity) {
  if (capacity <= m_capacity) {
    return;
  }
  // Doubling keeps the cost of many appends linear.
  const size_t wanted = round_up(std::max(capacity, m_capacity == 0 ? capacity : 2 * m_capacity), kIoAlignment);
  std::unique_ptr<char, Free> grown(static_cast<char*>(std::aligned_alloc(kIoAlignment, wanted)));
  if (grown == nullptr) {
    throw std::bad_alloc();
  }
  if (m_size != 0) {
    std::memcpy(grown.get(), m_data.get(), m_size);
  }
  m_data = std::move(grown);
  m_capacity = wanted;
}

void AlignedBuffer::resize(size_t size) {
  reserve(size);
  m_size = size;
}

void AlignedBuffer::append(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  reserve(m_size + bytes.size());
  std::memcpy(m_data.get() + m_size, bytes.data(), bytes.size());
  m_size += bytes.size();
}

void AlignedBuffer::pad(size_t alignment) {
  const size_t padded = round_up(m_size, alignment);
  if (padded == m_size) {
    return;
  }
  reserve(padded);
  std::memset(m_data.get() + m_size, 0, padded - m_size);
  m_size = padded;
}

}  // namespace vtkv
