// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/quarantine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/read_retries.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::MutexLock;
using vtkv::Status;

namespace {

constexpr uint64_t kFileBytes = 2 * QuarantineRecord::kBytes;

// A disk's word about the address; want of memory, or of a path to the disk, says nothing of it.
bool refuses(const Status& status) {
  const int number = status.error_number();
  return !status.ok() && (number == EIO || number == ENODATA || number == EREMOTEIO || number == EILSEQ);
}

}  // namespace

Status Quarantine::create(vtkv::Env* env, const std::string& directory) {
  std::unique_ptr<vtkv::File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(directory + "/" + kFileName, {.create = true}, &file));
  VTKV_RETURN_IF_ERROR(file->write_zeros(0, kFileBytes));
  return file->sync();
}

Status Quarantine::open(const std::array<uint8_t, 16>& uuid) {
  MutexLock write_lock(m_write_lock);
  QuarantineRecord record;
  record.uuid = uuid;
  VTKV_RETURN_IF_ERROR(read(&record));
  MutexLock lock(m_lock);
  m_record = std::move(record);
  return {};
}

Status Quarantine::read(QuarantineRecord* record) {
  if (!m_env->exists(path())) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(m_env->open_file(path(), {}, &m_file));
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(m_file->size(&bytes));
  if (bytes < kFileBytes) {
    m_file.reset();  // its making was cut short: nothing was ever in it
    return {};
  }
  return read_copies(record);
}

// What a crash tore is the newer copy, whose writer told nobody that it was there; then the other one counts.
Status Quarantine::read_copies(QuarantineRecord* record) {
  vtkv::File& file = *m_file;
  vtkv::AlignedBuffer buffer(QuarantineRecord::kBytes);
  Status states[2];
  bool found = false;
  for (uint64_t i = 0; i < 2; i++) {
    QuarantineRecord copy;
    states[i] = vtkv::read_with_retries([&] {
      VTKV_RETURN_IF_ERROR(file.read(i * QuarantineRecord::kBytes, QuarantineRecord::kBytes, buffer.data()));
      return QuarantineRecord::decode(path(), {buffer.data(), QuarantineRecord::kBytes}, &copy);
    });
    if (states[i].code() == Status::Code::unsupported) {
      return states[i];
    }
    if (states[i].ok() && copy.epoch > 0 && copy.uuid != record->uuid) {
      states[i] = Status::corruption(path() + ": belongs to other containers");
    }
    found |= states[i].ok();
    if (states[i].ok() && copy.epoch > record->epoch) {
      copy.uuid = record->uuid;
      *record = std::move(copy);
    }
  }
  if (!found) {
    return Status::corruption(std::string(states[0].message()) +
                              ", and so is the other copy; no data is in it: remove the file, and bad slots are found "
                              "again when they are written");
  }
  return {};
}

Status Quarantine::make_missing() {
  MutexLock write_lock(m_write_lock);
  if (m_file) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(create(m_env, m_directory));
  VTKV_RETURN_IF_ERROR(m_env->sync_directory(m_directory));
  return m_env->open_file(path(), {}, &m_file);
}

Status Quarantine::add(const std::vector<SlotAddress>& slots) {
  MutexLock write_lock(m_write_lock);
  QuarantineRecord next = record();
  const size_t before = next.slots.size();
  next.epoch++;
  bool full = false;
  for (const SlotAddress& slot : slots) {
    if (std::find(next.slots.begin(), next.slots.end(), slot) != next.slots.end()) {
      continue;
    }
    full |= next.slots.size() == QuarantineRecord::kSlotsMax;
    if (!full) {
      next.slots.push_back(slot);
    }
  }
  if (next.slots.size() > before) {
    if (!m_file) {
      return Status::failed(path() + " is not there");
    }
    const std::string bytes = next.encode();
    vtkv::AlignedBuffer buffer(bytes.size());
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    VTKV_RETURN_IF_ERROR(m_file->write(next.epoch % 2 * bytes.size(), buffer.data(), bytes.size()));
    VTKV_RETURN_IF_ERROR(m_file->sync());
    MutexLock lock(m_lock);
    VTKV_ASSERT(next.epoch == m_record.epoch + 1);
    m_record = std::move(next);
  }
  return full ? Status::make(Status::Code::no_space,
                             path() + " is full, with " + std::to_string(QuarantineRecord::kSlotsMax) +
                                 " slots; replace the disk",
                             0)
              : Status();
}

std::string to_string(const std::vector<SlotAddress>& bad, const vtkv::File& file) {
  return std::to_string(bad.size()) + (bad.size() == 1 ? " slot of " : " slots of ") + file.path() + " from slot " +
         std::to_string(bad.front().index) + " on";
}

std::vector<SlotAddress> find_bad_slots(vtkv::File& file, uint8_t size_class, uint64_t offset,
                                        const std::vector<iovec>& buffers) {
  vtkv::AlignedBuffer bytes;
  for (const iovec& buffer : buffers) {
    bytes.append({static_cast<const char*>(buffer.iov_base), buffer.iov_len});
  }
  std::vector<SlotAddress> bad;
  for (uint64_t at = 0; at < bytes.size() && bad.size() < kBadSlotsMax;) {
    const SlotAddress slot{size_class, (offset + at) / slot_bytes(size_class)};
    const uint64_t end = std::min<uint64_t>(bytes.size(), slot.byte_offset() + slot_bytes(size_class) - offset);
    const Status status = file.write(offset + at, bytes.data() + at, end - at);
    if (refuses(status)) {
      bad.push_back(slot);
    }
    at = end;
  }
  return bad;
}

QuarantineRecord Quarantine::record() const {
  MutexLock lock(m_lock);
  return m_record;
}

}  // namespace swimstore
