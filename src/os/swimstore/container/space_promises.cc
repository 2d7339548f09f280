#include "swimstore/container/space_promises.h"

#include <algorithm>

#include "swimstore/container/best_fit.h"

namespace swimstore {

using vtkv::Status;

namespace {

// How many like it find room beside a small write before those who cannot wait are asked to share.
constexpr uint64_t kLikeIt = 8;

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
  if (free_bytes() >= promised + left_bytes || m_options.promise_blindly) {
    return true;
  }
  m_promised_bytes.fetch_sub(bytes);
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

bool SpacePromises::has_metadata_room(Urgency urgency) const {
  if (urgency == Urgency::privileged) {
    return true;
  }
  const uint64_t least = m_reserve.target_bytes() / (urgency == Urgency::usual ? 2 : 4);
  const uint64_t held = m_reserve.held_bytes();
  if (held >= least) {
    return true;
  }
  vtkv::FileSystemInfo host;
  return !m_env->file_system_info(m_directory, &host).ok() || held + host.available_bytes >= least;
}

bool SpacePromises::take(uint64_t bytes, Urgency urgency) {
  if (!has_metadata_room(urgency)) {
    return false;
  }
  const uint64_t kept = kept_from(bytes, urgency);
  if (bytes == 0 || take_free(bytes, kept)) {
    return true;
  }
  std::lock_guard lock(m_growth_lock);
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
    if (container->cancel_punch(m_options.trust_failed_punch)) {
      return true;
    }
  }
  Container& container = *m_containers[size_class];
  bool found = false;
  Status status = look_for_host_room(container.growth_bytes(), urgency, &found);
  if (status.ok() && found) {
    status = container.grow(false);
  }
  m_growth_failed = !status.ok() && !status.is_no_space();
  return status.ok() && found;
}

Status SpacePromises::look_for_host_room(uint64_t bytes, Urgency urgency, bool* found) {
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
  const uint64_t least = m_reserve.target_bytes() / (urgency == Urgency::late ? 2 : 4);
  *found = m_reserve.growable_bytes(host) >= bytes ||
           (urgency != Urgency::usual && m_reserve.lend(bytes, least));
  return {};
}

}  // namespace swimstore
