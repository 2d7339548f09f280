// SPDX-License-Identifier: LGPL-2.1-or-later
// What omap writers share: an omap in memory, and what a transaction's operations carry.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "include/buffer.h"
#include "include/encoding.h"

namespace swimstore {

struct OmapContents {
  std::optional<std::string> header;
  std::map<std::string, std::string> values;
};

// Goes through what Transaction::omap_setkeys and omap_rmkeys encode: a count, then strings, each behind its length.
class OmapArguments {
 public:
  explicit OmapArguments(const ceph::bufferlist& encoded) : m_cursor(encoded.cbegin()), m_left(take_length()) {}

  // For a map of keys to values; false at its end. Both stay valid until the next call.
  bool next(std::string_view* key, std::string_view* value) {
    if (!next(key)) {
      return false;
    }
    *value = take(&m_value_scratch);
    return true;
  }
  // For a set of keys.
  bool next(std::string_view* key) {
    if (m_left == 0) {
      return false;
    }
    --m_left;
    *key = take(&m_key_scratch);
    return true;
  }

 private:
  uint32_t take_length() {
    ceph_le32 length;
    m_cursor.copy(sizeof(length), reinterpret_cast<char*>(&length));
    return length;
  }
  // The next bytes, in place when they are contiguous, else copied to *scratch.
  std::string_view take(std::string* scratch) {
    const uint32_t length = take_length();
    const char* bytes = nullptr;
    auto after = m_cursor;
    if (length > 0 && after.get_ptr_and_advance(length, &bytes) == length) {
      m_cursor = after;
      return {bytes, length};
    }
    scratch->resize(length);
    m_cursor.copy(length, scratch->data());
    return *scratch;
  }

  ceph::bufferlist::const_iterator m_cursor;
  uint32_t m_left;
  std::string m_key_scratch, m_value_scratch;
};

}  // namespace swimstore
