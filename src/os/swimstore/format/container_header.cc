// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/container_header.h"

#include <cstring>

#include "swimstore/format/format_version.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr char kMagic[8] = {'S', 'W', 'I', 'M', 'C', 'O', 'N', 'T'};

struct Layout {
  char magic[8];
  uint32_t version;
  uint32_t size_classes;
  uint8_t uuid[16];
  uint64_t chunk_bytes;
  uint32_t block_bytes;
  uint32_t zero;
  uint64_t primed_slots[kSizeClasses];
  uint32_t crc32c;
  uint32_t padding;
};
static_assert(offsetof(Layout, uuid) == 16 && offsetof(Layout, chunk_bytes) == 32);
static_assert(offsetof(Layout, primed_slots) == 48 && offsetof(Layout, crc32c) == 136 && sizeof(Layout) == 144);

}  // namespace

std::string ContainerHeader::encode() const {
  Layout layout{};
  std::memcpy(layout.magic, kMagic, sizeof kMagic);
  layout.version = kContainerHeaderVersion;
  layout.size_classes = kSizeClasses;
  std::memcpy(layout.uuid, uuid.data(), uuid.size());
  layout.chunk_bytes = chunk_bytes;
  layout.block_bytes = kBlockBytes;
  std::memcpy(layout.primed_slots, primed_slots.data(), sizeof layout.primed_slots);
  layout.crc32c = vtkv::crc32c(&layout, offsetof(Layout, crc32c));
  std::string bytes(kBytes, '\0');
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

Status ContainerHeader::decode(std::string_view name, std::string_view bytes, ContainerHeader* header) {
  const std::string file(name);
  Layout layout;
  if (bytes.size() < kBytes) {
    return Status::corruption(file + ": truncated, " + std::to_string(bytes.size()) + " of " + std::to_string(kBytes) +
                              " bytes");
  }
  std::memcpy(&layout, bytes.data(), sizeof layout);
  if (std::memcmp(layout.magic, kMagic, sizeof kMagic) != 0) {
    return Status::corruption(file + ": not a container header of SwimStore");
  }
  // Its offset is that of every version to come: a newer header is told from a damaged one.
  if (layout.crc32c != vtkv::crc32c(bytes.data(), offsetof(Layout, crc32c))) {
    return Status::corruption(file + ": checksum mismatch, the header is damaged");
  }
  VTKV_RETURN_IF_ERROR(check_version(file, layout.version, kContainerHeaderVersion));
  if (layout.size_classes != kSizeClasses || layout.block_bytes != kBlockBytes || !is_chunk_size(layout.chunk_bytes)) {
    return Status::corruption(file + ": a geometry that this program never writes");
  }
  std::memcpy(header->uuid.data(), layout.uuid, header->uuid.size());
  header->chunk_bytes = layout.chunk_bytes;
  std::memcpy(header->primed_slots.data(), layout.primed_slots, sizeof layout.primed_slots);
  return {};
}

}  // namespace swimstore
