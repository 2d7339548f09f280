// SPDX-License-Identifier: LGPL-2.1-or-later
// A value of the log as the read cache keeps it: checked when it was read, not again.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>

#include "vtkv/mem/value_pointer.h"
#include "vtkv/util/read_cache.h"

namespace vtkv {

class CachedValue final : public Cached {
 public:
  CachedValue(const ValuePointer& pointer, std::string_view value)
      : m_bytes(std::make_unique_for_overwrite<char[]>(value.size())),
        m_length(static_cast<uint32_t>(value.size())),
        m_crc32c(pointer.crc32c) {
    std::memcpy(m_bytes.get(), value.data(), value.size());
  }
  static ReadCache::Key key_of(const ValuePointer& pointer) {
    return {ReadCache::Kind::value, pointer.epoch, pointer.offset};
  }
  std::string_view value() const { return {m_bytes.get(), m_length}; }
  // Is it what this pointer means? A damaged one may say anything.
  bool belongs_to(const ValuePointer& pointer) const {
    return m_length == pointer.length && m_crc32c == pointer.crc32c;
  }
  size_t memory_bytes() const override { return sizeof(*this) + m_length; }

 private:
  const std::unique_ptr<char[]> m_bytes;
  const uint32_t m_length;
  const uint32_t m_crc32c;  // of key and value
};

}  // namespace vtkv
