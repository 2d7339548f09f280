// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/space_promises.h"

#include <algorithm>
#include <cerrno>

#include "swimstore/container/best_fit.h"
#include "vtkv/util/host_remedy.h"
#include "vtkv/util/mutations.h"

namespace swimstore {

using vtkv::Mutation;
using vtkv::MutexLock;
using vtkv::Status;

namespace {

// How many like it find room beside a small write before those who cannot wait are asked to share.
constexpr uint64_t kLikeIt = 8;

// ext4 ends at 16 TiB.
bool is_too_large(const Status& status) { return status.error_number() == EFBIG; }

}  // namespace

uint64_t SpacePromises::free_bytes() const {
  uint64_t bytes = 0;
  for (const auto& container : m_containers) {
    bytes += container->free_bytes();
  }
  return bytes;
}

// Promised first, then looked: of two at once at least one sees the other. And who gave a promise back before this
// one was counted had taken its slots before.
bool SpacePromises::take_free(uint64_t bytes, uint64_t left_bytes) {
  const uint64_t promised = m_promised_bytes.fetch_add(bytes) + bytes;
  if (free_bytes() >= promised + left_bytes || mutated(Mutation::room_promised_blindly)) {
    return true;
  }
  give_back(bytes);
  return false;
}

uint64_t SpacePromises::kept_from(uint64_t bytes, Urgency urgency) const {
  const uint64_t least = kept_bytes() / 4;
  switch (urgency) {
    case Urgency::usual:
      return least + std::min(kept_bytes() - least, kLikeIt * bytes);
    case Urgency::late:
      return least;
    default:
      return 0;
  }
}

bool SpacePromises::has_metadata_room(uint64_t bytes, Urgency urgency) const {
  if (urgency == Urgency::privileged) {
    return true;
  }
  return m_metadata_reserve.has(m_metadata_reserve.target_bytes() / (urgency == Urgency::usual ? 2 : 4) + bytes);
}

bool SpacePromises::take(uint64_t bytes, Urgency urgency) {
  if (!has_metadata_room(0, urgency)) {
    return false;
  }
  const uint64_t kept = kept_from(bytes, urgency);
  if (bytes == 0 || take_free(bytes, kept)) {
    return true;
  }
  MutexLock lock(m_growth_lock);
  const unsigned size_class = class_for(std::min<uint64_t>(bytes, kSlotBytesMax));
  while (!take_free(bytes, kept)) {
    if (make_free(size_class, urgency)) {
      continue;
    }
    if (urgency == Urgency::usual || !m_growth_failed) {
      return false;
    }
    m_promised_bytes.fetch_add(bytes);
    return true;
  }
  return true;
}

bool SpacePromises::make_free(unsigned size_class, Urgency urgency) {
  for (auto& container : m_containers) {
    if (container->cancel_punch()) {
      return true;
    }
  }
  Growth growth;
  bool grown = grow(*m_containers[size_class], urgency, &growth);
  for (unsigned other = kSizeClasses; !grown && other-- > 0;) {
    grown = other != size_class && grow(*m_containers[other], urgency, &growth);
  }
  m_growth_failed = growth.failed && !grown && growth.refused_bytes == UINT64_MAX;  // none for want of space
  return grown;
}

bool SpacePromises::grow(Container& container, Urgency urgency, Growth* growth) {
  if (container.growth_bytes() >= growth->refused_bytes) {
    return false;
  }
  bool found = false;
  Status status = look_for_host_room(container.growth_bytes(), urgency, &found);
  if (status.ok() && found) {
    status = container.grow(false);
    note_growth(container, status);
  }
  growth->failed |= !status.ok() && !status.is_no_space() && !is_too_large(status);
  if (status.is_no_space() || (status.ok() && !found)) {
    growth->refused_bytes = container.growth_bytes();
  }
  return status.ok() && found;
}

void SpacePromises::note_growth(const Container& container, const Status& status) {
  std::string too_large, host_error;
  if (is_too_large(status)) {
    too_large = container.file()->path() +
                " cannot grow, for it is as large as the host file system lets a file be: other " +
                "slot sizes are used in its place; move the OSD to a file system with larger files, such as xfs";
  } else if (!status.ok() && !status.is_no_space()) {
    const std::string of_host = vtkv::host_remedy(status.error_number(), m_directory);
    host_error = container.file()->path() + " cannot grow (" + std::string(status.message()) + "): " +
                 (of_host.empty() ? "look for errors of its file system and its disk in the kernel's log" : of_host);
  }
  MutexLock lock(m_errors_lock);
  m_too_large[container.size_class()] = std::move(too_large);
  m_host_error = std::move(host_error);
}

std::string SpacePromises::growth_error() const {
  MutexLock lock(m_errors_lock);
  const auto named = std::find_if(m_too_large.begin(), m_too_large.end(), [](const auto& it) { return !it.empty(); });
  return !m_host_error.empty() || named == m_too_large.end() ? m_host_error : *named;
}

Status SpacePromises::look_for_host_room(uint64_t bytes, Urgency urgency, bool* found) {
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
  const uint64_t least = m_reserve.target_bytes() / (urgency == Urgency::late ? 2 : 4);
  *found = m_reserve.growable_bytes(host) >= bytes || (urgency != Urgency::usual && m_reserve.lend(bytes, least));
  return {};
}

}  // namespace swimstore
