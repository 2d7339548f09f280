// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/space_reserve.h"

#include <algorithm>

#include "swimstore/format/size_class.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::MutexLock;
using vtkv::Status;

namespace {

constexpr uint64_t kSlices = 8;

}  // namespace

Status SpaceReserve::open(vtkv::Env* env, const std::string& directory, uint64_t bytes, unsigned sharers) {
  MutexLock lock(m_lock);
  m_env = env;
  m_sharers = sharers;
  m_directory = directory;
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(env->file_system_info(directory, &host));
  m_slice_bytes = std::min(bytes, host.total_bytes / 16) / kSlices / kBlockBytes * kBlockBytes;
  m_target_bytes = m_slice_bytes * kSlices;
  const Status opened = env->open_file(directory + "/" + kFileName, {}, &m_file);
  if (!opened.is_not_found()) {
    VTKV_RETURN_IF_ERROR(opened);
    uint64_t size = 0;
    VTKV_RETURN_IF_ERROR(m_file->size(&size));
    m_held_bytes = first_hole(size);
  }
  m_lent_bytes = m_target_bytes - std::min(m_target_bytes, held_bytes());
  return {};
}

// A file that was copied may be nothing but holes, which hold no space: they are filled as what is missing is. Where
// the host does not tell of any, there are none.
uint64_t SpaceReserve::first_hole(uint64_t size) const {
  vtkv::FileSpace space;
  const bool has_holes = m_file->map_space(&space).ok() && !space.holes.empty();
  return has_holes ? std::min(size, space.holes.front().offset) : size;
}

uint64_t SpaceReserve::missing_bytes(const vtkv::FileSystemInfo& host, uint64_t more_bytes) const {
  const uint64_t lacking = m_target_bytes - std::min(m_target_bytes, held_bytes());
  const uint64_t wanted = margin_bytes() + (lacking > 0 ? lacking + m_slice_bytes : 0) + more_bytes;  // as in balance()
  return wanted - std::min(wanted, host.available_bytes);
}

bool SpaceReserve::has(uint64_t bytes) const {
  vtkv::FileSystemInfo host;
  const uint64_t held = held_bytes();
  return held >= bytes || !m_env->file_system_info(m_directory, &host).ok() || held + host.available_bytes >= bytes;
}

bool SpaceReserve::is_low(const vtkv::FileSystemInfo& host) const {
  const uint64_t held = held_bytes();
  const bool is_taken = (held + lent_bytes()) * 4 <= m_target_bytes * 3;
  return held + host.available_bytes < m_target_bytes / 2 || (is_taken && missing_bytes(host) > 0);
}

uint64_t SpaceReserve::growable_bytes(const vtkv::FileSystemInfo& host) const {
  const uint64_t withheld = m_target_bytes - std::min(m_target_bytes, held_bytes()) + margin_bytes();
  return host.available_bytes > withheld ? host.available_bytes - withheld : 0;
}

Status SpaceReserve::give_slice(bool* gave) {
  MutexLock lock(m_lock);
  *gave = held_bytes() > 0;
  return *gave ? shrink(held_bytes() - std::min(held_bytes(), m_slice_bytes)) : Status();
}

bool SpaceReserve::lend(uint64_t bytes, uint64_t least_bytes) {
  MutexLock lock(m_lock);
  vtkv::FileSystemInfo host;
  if (!m_env->file_system_info(m_directory, &host).ok()) {
    return false;
  }
  const uint64_t wanted = margin_bytes() + bytes;
  const uint64_t missing = wanted - std::min(wanted, host.available_bytes);
  if (held_bytes() + host.available_bytes < wanted + least_bytes) {
    return false;
  }
  if (missing == 0) {
    return true;
  }
  if (m_slice_bytes == 0) {
    return false;
  }
  const uint64_t rounded = (missing + m_slice_bytes - 1) / m_slice_bytes * m_slice_bytes;
  if (held_bytes() < least_bytes + rounded || !shrink(held_bytes() - rounded).ok()) {
    return false;
  }
  m_lent_bytes += std::min(rounded, bytes);
  return true;
}

Status SpaceReserve::make_room(bool* changed) {
  MutexLock lock(m_lock);
  return make_room_locked(changed);
}

Status SpaceReserve::make_room_locked(bool* changed) {
  *changed = false;
  if (held_bytes() > m_target_bytes) {
    VTKV_RETURN_IF_ERROR(shrink(m_target_bytes));
    *changed = true;
  }
  while (held_bytes() > 0) {
    vtkv::FileSystemInfo host;
    VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
    if (host.available_bytes >= margin_bytes()) {
      break;
    }
    VTKV_RETURN_IF_ERROR(shrink(held_bytes() - std::min(held_bytes(), m_slice_bytes)));
    *changed = true;
  }
  return {};
}

Status SpaceReserve::balance(bool* changed) {
  MutexLock lock(m_lock);
  VTKV_RETURN_IF_ERROR(make_room_locked(changed));
  if (*changed || held_bytes() >= m_target_bytes) {
    return {};
  }
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(m_directory, &host));
  // Twice a slice above the margin, so that one growth does not call for the next shrinking.
  if (host.available_bytes < margin_bytes() + 2 * m_slice_bytes) {
    return {};
  }
  const Status extended = extend();
  *changed = extended.ok();
  return extended.is_no_space() ? Status{} : extended;
}

Status SpaceReserve::settle() {
  for (bool changed = true; changed;) {
    VTKV_RETURN_IF_ERROR(balance(&changed));
  }
  return {};
}

Status SpaceReserve::shrink(uint64_t bytes) {
  VTKV_ASSERT(bytes <= held_bytes());
  VTKV_RETURN_IF_ERROR(m_file->truncate(bytes));
  m_held_bytes = bytes;
  return {};
}

Status SpaceReserve::extend() {
  VTKV_ASSERT(held_bytes() < m_target_bytes);
  if (m_file == nullptr) {
    vtkv::OpenOptions options;
    options.create = true;
    VTKV_RETURN_IF_ERROR(m_env->open_file(m_directory + "/" + kFileName, options, &m_file));
  }
  const uint64_t slice = std::min(m_slice_bytes, m_target_bytes - held_bytes());
  VTKV_RETURN_IF_ERROR(m_file->allocate(held_bytes(), slice));
  m_held_bytes = held_bytes() + slice;
  m_lent_bytes = std::min(lent_bytes(), m_target_bytes - std::min(m_target_bytes, held_bytes()));
  return {};
}

}  // namespace swimstore
