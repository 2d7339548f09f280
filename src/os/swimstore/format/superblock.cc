// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/superblock.h"

#include <algorithm>
#include <cstring>

#include "swimstore/format/container_header.h"
#include "swimstore/format/format_version.h"
#include "vtkv/env/small_file.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr char kMagic[8] = {'S', 'W', 'I', 'M', 'S', 'T', 'O', 'R'};
constexpr char kFileName[] = "superblock";
constexpr uint32_t kCubesMax = 4096;

struct Layout {
  char magic[8];
  uint32_t version;
  uint32_t cubes;
  uint8_t uuid[16];
  uint64_t created_us;
  uint64_t chunk_bytes;
  uint64_t log_segment_bytes;
  uint64_t zone_bytes;
  uint32_t initial_log_segments;
  uint32_t block_bytes;
  uint32_t feature_bytes;
  uint32_t crc32c;
};
static_assert(offsetof(Layout, uuid) == 16 && offsetof(Layout, created_us) == 32);
static_assert(offsetof(Layout, zone_bytes) == 56 && offsetof(Layout, crc32c) == 76 && sizeof(Layout) == 80);
static_assert(offsetof(Layout, feature_bytes) == 72);
static_assert(sizeof(Layout) + Superblock::kFeatureBytesMax == Superblock::kCopyBytes);

Status damaged(const std::string& file, const char* what) {
  return Status::corruption(file + ": " + what +
                            ". See that the right file system is mounted; if it is, do not run mkfs here: "
                            "'ceph-swimstore-tool export --salvage' needs no superblock");
}

Status decode_copy(const std::string& file, const char* bytes, Superblock* superblock) {
  Layout layout;
  std::memcpy(&layout, bytes, sizeof layout);
  if (std::memcmp(layout.magic, kMagic, sizeof kMagic) != 0) {
    return damaged(file, "neither copy is a superblock of SwimStore");
  }
  if (layout.crc32c != Superblock::checksum({bytes, Superblock::kCopyBytes})) {
    return damaged(file, "checksum mismatch in both copies, the superblock is damaged");
  }
  VTKV_RETURN_IF_ERROR(check_version(file, layout.version, kSuperblockVersion, kSuperblockVersionOldest));
  vtkv::Features features = features_of_version_2();
  if (layout.version > 2 && (layout.feature_bytes > Superblock::kFeatureBytesMax ||
                             !vtkv::Features::decode({bytes + sizeof layout, layout.feature_bytes}, &features))) {
    return Status::corruption(file + ": features that no program writes");
  }
  if (layout.cubes == 0 || layout.cubes > kCubesMax || !is_chunk_size(layout.chunk_bytes)) {
    return Status::corruption(file + ": a geometry that this program never writes");
  }
  std::memcpy(superblock->uuid.data(), layout.uuid, superblock->uuid.size());
  superblock->cubes = layout.cubes;
  superblock->created_us = layout.created_us;
  superblock->chunk_bytes = layout.chunk_bytes;
  superblock->geometry.log_segment_bytes = layout.log_segment_bytes;
  superblock->geometry.zone_bytes = layout.zone_bytes;
  superblock->geometry.initial_log_segments = layout.initial_log_segments;
  superblock->geometry.block_bytes = layout.block_bytes;
  superblock->version = layout.version;
  superblock->features = std::move(features);
  return {};
}

}  // namespace

uuid_d Superblock::fsid() const {
  uuid_d fsid;
  std::copy(uuid.begin(), uuid.end(), fsid.uuid.begin());
  return fsid;
}

std::string Superblock::encode() const {
  Layout layout{};
  std::memcpy(layout.magic, kMagic, sizeof kMagic);
  layout.version = version;
  layout.cubes = cubes;
  std::memcpy(layout.uuid, uuid.data(), uuid.size());
  layout.created_us = created_us;
  layout.chunk_bytes = chunk_bytes;
  layout.log_segment_bytes = geometry.log_segment_bytes;
  layout.zone_bytes = geometry.zone_bytes;
  layout.initial_log_segments = geometry.initial_log_segments;
  layout.block_bytes = geometry.block_bytes;
  const std::string encoded = version > 2 ? features.encode() : std::string();
  VTKV_ASSERT(encoded.size() <= Superblock::kFeatureBytesMax);
  layout.feature_bytes = static_cast<uint32_t>(encoded.size());
  std::string copy(kCopyBytes, '\0');
  std::memcpy(copy.data(), &layout, sizeof layout);
  copy.replace(sizeof layout, encoded.size(), encoded);
  layout.crc32c = checksum(copy);
  std::memcpy(copy.data(), &layout, sizeof layout);
  return copy + copy;
}

uint32_t Superblock::checksum(std::string_view copy) {
  Layout layout;
  VTKV_ASSERT(copy.size() == kCopyBytes);
  std::memcpy(&layout, copy.data(), sizeof layout);
  const uint32_t crc = vtkv::crc32c(copy.data(), offsetof(Layout, crc32c));
  return vtkv::crc32c_extend(crc, copy.data() + sizeof layout,
                             std::min<size_t>(layout.feature_bytes, Superblock::kFeatureBytesMax));
}

Status Superblock::decode(std::string_view name, std::string_view bytes, Superblock* superblock) {
  const std::string file(name);
  if (bytes.size() < kBytes) {
    return Status::corruption(file + ": truncated, " + std::to_string(bytes.size()) + " of " + std::to_string(kBytes) +
                              " bytes");
  }
  Superblock other;
  const Status first = decode_copy(file, bytes.data(), superblock);
  const Status second = decode_copy(file, bytes.data() + kCopyBytes, first.ok() ? &other : superblock);
  // A newer one is not done without, and not written over, whatever the other is.
  for (const Status& status : {first, second}) {
    if (status.code() == Status::Code::unsupported) {
      return status;
    }
  }
  if (first.ok() || second.ok()) {
    return {};
  }
  // The more telling of the two: one that at least knows the magic.
  const bool second_is_ours = std::memcmp(bytes.data() + kCopyBytes, kMagic, sizeof kMagic) == 0;
  const bool first_is_ours = std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
  return !first_is_ours && second_is_ours ? second : first;
}

Status Superblock::read(vtkv::Env* env, const std::string& root, Superblock* superblock) {
  const std::string path = root + "/" + kFileName;
  std::string bytes;
  const Status status = vtkv::read_small_file(env, path, &bytes);
  if (status.is_not_found()) {
    return Status::not_found(path + ": missing");
  }
  VTKV_RETURN_IF_ERROR(status);
  return decode(path, bytes, superblock);
}

bool Superblock::is_whole(vtkv::Env* env, const std::string& root) const {
  std::string bytes;
  return vtkv::read_small_file(env, root + "/" + kFileName, &bytes).ok() && bytes == encode();
}

bool Superblock::is_upgradable() const {
  vtkv::Features newest = features;
  newest.add(features_of(cubes));
  return version < kSuperblockVersion || newest != features;
}

}  // namespace swimstore
