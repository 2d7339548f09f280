// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/write_batch.h"

#include <algorithm>

#include "vtkv/util/coding.h"

namespace vtkv {

namespace {

enum Tag : char { kPut = 1, kRemove = 2, kRemoveRange = 3, kExternalWrite = 4, kNote = 5 };

bool get_external_write(std::string_view* input, ExternalWrite* write) {
  return get_varint32(input, &write->container) && get_varint64(input, &write->slot) &&
         get_varint32(input, &write->offset) && get_varint32(input, &write->length) &&
         get_fixed32(input, &write->crc32c);
}

// Consumes one operation; false when it is malformed.
bool take_operation(std::string_view* input, WriteBatch::Handler& handler) {
  const char tag = input->front();
  input->remove_prefix(1);
  std::string_view first;
  std::string_view second;
  ExternalWrite write;
  switch (tag) {
    case kPut:
      if (!get_length_prefixed(input, &first) || !get_length_prefixed(input, &second)) {
        return false;
      }
      handler.put(first, second);
      return true;
    case kRemove:
      if (!get_length_prefixed(input, &first)) {
        return false;
      }
      handler.remove(first);
      return true;
    case kRemoveRange:
      if (!get_length_prefixed(input, &first) || !get_length_prefixed(input, &second) || first >= second) {
        return false;
      }
      handler.remove_range(first, second);
      return true;
    case kExternalWrite:
      if (!get_external_write(input, &write)) {
        return false;
      }
      handler.external_write(write);
      return true;
    case kNote:
      if (!get_length_prefixed(input, &first)) {
        return false;
      }
      handler.note(first);
      return true;
    default:
      return false;
  }
}

class UpdateCounter final : public WriteBatch::Handler {
 public:
  uint32_t updates = 0;

  void put(std::string_view, std::string_view) override { ++updates; }
  void remove(std::string_view) override { ++updates; }
  void remove_range(std::string_view, std::string_view) override { ++updates; }
};

}  // namespace

void WriteBatch::put(std::string_view key, std::string_view value) {
  m_body.push_back(kPut);
  put_length_prefixed(&m_body, key);
  put_length_prefixed(&m_body, value);
  ++m_updates;
}

size_t WriteBatch::put_bytes(size_t key_bytes, size_t value_bytes) {
  return 1 + varint_bytes(key_bytes) + key_bytes + varint_bytes(value_bytes) + value_bytes;
}

void WriteBatch::remove(std::string_view key) {
  m_body.push_back(kRemove);
  put_length_prefixed(&m_body, key);
  ++m_updates;
}

void WriteBatch::remove_range(std::string_view begin, std::string_view end) {
  if (begin >= end) {
    return;
  }
  m_body.push_back(kRemoveRange);
  put_length_prefixed(&m_body, begin);
  put_length_prefixed(&m_body, end);
  ++m_updates;
  ++m_ranges;
}

void WriteBatch::external_write(const ExternalWrite& write) {
  m_body.push_back(kExternalWrite);
  put_varint32(&m_body, write.container);
  put_varint64(&m_body, write.slot);
  put_varint32(&m_body, write.offset);
  put_varint32(&m_body, write.length);
  put_fixed32(&m_body, write.crc32c);
}

void WriteBatch::note(std::string_view bytes) {
  m_body.push_back(kNote);
  put_length_prefixed(&m_body, bytes);
}

std::vector<WriteBatch::Fragment> WriteBatch::cut(size_t bytes_most) const {
  std::vector<Fragment> fragments;
  std::string_view left = m_body;
  UpdateCounter counter;
  const char* begin = left.data();
  const auto end_fragment = [&](const char* end) {
    fragments.push_back({{begin, static_cast<size_t>(end - begin)}, std::max(counter.updates, 1u)});
    counter.updates = 0;
    begin = end;
  };
  while (!left.empty()) {
    const char* const operation = left.data();
    const uint32_t updates_before = counter.updates;
    (void)take_operation(&left, counter);  // encoded by this class: well-formed
    if (operation > begin && static_cast<size_t>(left.data() - begin) > bytes_most) {
      const uint32_t updates = counter.updates - updates_before;
      counter.updates = updates_before;
      end_fragment(operation);
      counter.updates = updates;
    }
  }
  end_fragment(left.data());
  return fragments;
}

Status WriteBatch::iterate(std::string_view encoded, Handler& handler) {
  while (!encoded.empty()) {
    if (!take_operation(&encoded, handler)) {
      return Status::corruption("write batch: malformed operation");
    }
  }
  return Status();
}

}  // namespace vtkv
