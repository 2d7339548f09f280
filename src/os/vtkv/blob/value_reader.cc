// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/blob/value_reader.h"

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/read_retries.h"

namespace vtkv {

namespace {

constexpr size_t kKeptBufferBytes = 256 << 10;

Status not_there(const ValuePointer& pointer, const std::string& path) {
  return Status::corruption(path + ": the value at offset " + std::to_string(pointer.offset) +
                            " is damaged; restore the database from a copy, or write the key again");
}

}  // namespace

Status ValueReader::locate(const ValuePointer& pointer, LogSegment** segment, ValueExtent* extent) const {
  *segment = m_pool->find(pointer.segment_id);
  if (!*segment || (*segment)->epoch != pointer.epoch) {
    return Status::corruption("log segment " + std::to_string(pointer.segment_id) +
                              ", which holds values, is missing or was replaced; restore it");
  }
  if (pointer.offset > (*segment)->bytes || pointer.length > (*segment)->bytes - pointer.offset) {
    return not_there(pointer, (*segment)->path);
  }
  extent->start = pointer.offset / kIoAlignment * kIoAlignment;
  const uint64_t end = (pointer.offset + pointer.length + kIoAlignment - 1) / kIoAlignment * kIoAlignment;
  extent->bytes = end - extent->start;
  return Status();
}

std::shared_ptr<const CachedValue> ValueReader::find(const ValuePointer& pointer) const {
  if (!m_cache) {
    return nullptr;
  }
  auto found = std::static_pointer_cast<const CachedValue>(m_cache->find(CachedValue::key_of(pointer)));
  return found && found->belongs_to(pointer) ? found : nullptr;
}

void ValueReader::remember(const ValuePointer& pointer, std::string_view value) const {
  if (m_cache) {
    m_cache->insert(CachedValue::key_of(pointer), std::make_shared<const CachedValue>(pointer, value));
  }
}

Status ValueReader::check(std::string_view key, const ValuePointer& pointer, const LogSegment& segment,
                          std::string_view value) {
  return value_checksum(key, value) == pointer.crc32c ? Status() : not_there(pointer, segment.path);
}

Status ValueReader::read(std::string_view key, std::string_view encoded, std::string* value) const {
  ValuePointer pointer;
  if (!pointer.decode(encoded)) {
    return Status::corruption("the pointer to a value is malformed");
  }
  if (const auto cached = find(pointer)) {
    value->assign(cached->value());
    return Status();
  }
  LogSegment* segment = nullptr;
  ValueExtent extent;
  VTKV_RETURN_IF_ERROR(locate(pointer, &segment, &extent));
  thread_local AlignedBuffer kept;
  AlignedBuffer buffer = std::move(kept);  // nobody else's while it is read into
  buffer.reserve(extent.bytes);
  const std::string_view bytes(buffer.data() + (pointer.offset - extent.start), pointer.length);
  const Status status = read_with_retries([&] {
    if (extent.bytes > 0) {
      VTKV_RETURN_IF_ERROR(segment->file->read(extent.start, extent.bytes, buffer.data()));
    }
    return check(key, pointer, *segment, bytes);
  });
  if (status.ok()) {
    value->assign(bytes);
    remember(pointer, bytes);
  }
  if (buffer.capacity() <= kKeptBufferBytes) {
    kept = std::move(buffer);
  }
  return status;
}

}  // namespace vtkv
