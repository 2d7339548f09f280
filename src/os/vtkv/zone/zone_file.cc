// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/zone/zone_file.h"

#include <algorithm>

namespace vtkv {

namespace {
constexpr uint64_t kZonesMax = 1 << 26;  // what a table of them may take in memory
}  // namespace

ZoneFile::Pins::~Pins() {
  for (const ZoneRange& range : m_ranges) {
    m_file->map().unpin(range.offset, range.bytes);
  }
}

void ZoneFile::Pins::add(uint64_t offset, uint64_t bytes) {
  m_file->map().pin(offset, bytes);
  m_ranges.push_back({offset, bytes});
}

void ZoneFile::Pins::add_zones(std::vector<ZoneRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  const uint64_t zone_bytes = m_file->map().zone_bytes();
  uint64_t first = 0, end = 0;  // zones not pinned yet
  for (const ZoneRange& range : ranges) {
    const uint64_t zone = range.offset / zone_bytes;
    const uint64_t zone_end = (range.offset + range.bytes + zone_bytes - 1) / zone_bytes;
    if (zone > end) {
      add(first * zone_bytes, (end - first) * zone_bytes);
      first = end = zone;
    }
    end = std::max(end, zone_end);
  }
  add(first * zone_bytes, (end - first) * zone_bytes);
}

Status ZoneFile::create(Env* env, const std::string& path) {
  std::unique_ptr<File> file;
  OpenOptions options;
  options.create = true;
  VTKV_RETURN_IF_ERROR(env->open_file(path, options, &file));
  VTKV_RETURN_IF_ERROR(file->truncate(0));  // of an earlier attempt that did not finish
  return file->sync();
}

Status ZoneFile::open(Env* env, const std::string& path, uint64_t zone_bytes, std::shared_ptr<ZoneFile>* result) {
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(path, {}, &file));
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(file->size(&bytes));
  if (bytes / zone_bytes > kZonesMax) {
    return Status::corruption(path + " has an impossible size of " + std::to_string(bytes) +
                              " bytes: restore the database, or give it up and make a new one");
  }
  *result = std::make_shared<ZoneFile>(std::move(file), zone_bytes, bytes / zone_bytes);
  FileSpace space;
  if ((*result)->file()->map_space(&space).ok()) {
    (*result)->map().set_holes(space.holes);
  }
  return {};
}

Status ZoneFile::acquire(ZoneStream stream, uint64_t bytes_min, ZoneRange* range) {
  bool needs_space = false;
  *range = m_map.acquire(stream, bytes_min, &needs_space);
  if (!needs_space) {
    return {};
  }
  Status status = m_file->allocate(range->offset, range->bytes);
  if (!status.ok()) {
    m_map.cancel(*range);
  }
  return status;
}

void ZoneFile::give_back_surplus(bool all) {
  for (const ZoneRange& range : m_map.take_surplus(all)) {
    // A file system that cannot do it, or not now, keeps the space: nothing is lost but room.
    m_map.end_give_back(range, m_file->punch_hole(range.offset, range.bytes).ok());
  }
}

}  // namespace vtkv
