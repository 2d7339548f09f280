// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/slot_file.h"

#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace vtkv {

SlotFile::SlotFile(std::unique_ptr<File> file, uint64_t slots) : m_file(std::move(file)), m_slots(slots) {
  for (uint64_t slot = 0; slot < slots; ++slot) {
    m_free.insert(slot);
  }
}

std::string SlotFile::content(uint64_t tag) {
  std::string bytes;
  while (bytes.size() < kSlotBytes) {
    put_fixed64(&bytes, tag);
  }
  return bytes;
}

Status SlotFile::create(Env* env, const std::string& path, uint64_t slots) {
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(path, {.create = true, .exclusive = true}, &file));
  VTKV_RETURN_IF_ERROR(file->write_zeros(0, slots * kSlotBytes));
  return file->sync();
}

Status SlotFile::open(Env* env, const std::string& path, std::unique_ptr<SlotFile>* result) {
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(path, {}, &file));
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(file->size(&bytes));
  result->reset(new SlotFile(std::move(file), bytes / kSlotBytes));
  return Status();
}

Status SlotFile::verify(const ExternalWrite& write, bool* matches) {
  if (write.slot >= m_slots || write.offset != 0 || write.length != kSlotBytes) {
    *matches = false;
    return Status();
  }
  AlignedBuffer buffer(kSlotBytes);
  VTKV_RETURN_IF_ERROR(m_file->read(write.slot * kSlotBytes, kSlotBytes, buffer.data()));
  *matches = crc32c(buffer.data(), kSlotBytes) == write.crc32c;
  return Status();
}

bool SlotFile::allocate(SequenceNumber horizon, uint64_t* slot) {
  while (!m_freed.empty() && m_freed.front().first <= horizon) {
    m_free.insert(m_freed.front().second);
    m_freed.pop_front();
  }
  if (m_free.empty()) {
    return false;
  }
  *slot = *m_free.begin();
  m_free.erase(m_free.begin());
  return true;
}

bool SlotFile::claim(uint64_t slot) { return m_free.erase(slot) == 1; }

void SlotFile::add_write(Submission* submission, uint64_t slot, uint64_t tag) {
  const std::string bytes = content(tag);
  AlignedBuffer& buffer = m_buffers.emplace_back(kSlotBytes);
  buffer.append(bytes);
  ExternalWrite write;
  write.slot = slot;
  write.length = kSlotBytes;
  write.crc32c = crc32c(bytes);
  submission->batch.external_write(write);
  ExternalData data;
  data.file = m_file.get();
  data.offset = slot * kSlotBytes;
  data.buffers.push_back({buffer.data(), kSlotBytes});
  data.primed = true;
  submission->data.push_back(std::move(data));
}

Status SlotFile::holds(uint64_t slot, uint64_t tag, bool* holds) {
  ExternalWrite write;
  write.slot = slot;
  write.length = kSlotBytes;
  write.crc32c = crc32c(content(tag));
  return verify(write, holds);
}

}  // namespace vtkv
