// SPDX-License-Identifier: LGPL-2.1-or-later
// The store's root file `superblock`: what was fixed at mkfs, and what a program has to know to use the store. Written
// at once, by mkfs and by an upgrade that was asked for; two copies, at 0 and at 4096, so that one damaged block does
// not lose a store.
// doc/on_disk_format.md, "Superblock".
//
// Magic, version, bytes of the features and checksum keep their offsets in every version to come, so that a newer
// superblock is told from a damaged one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "include/uuid.h"

#include "swimstore/format/format_version.h"
#include "vtkv/env.h"
#include "vtkv/options.h"
#include "vtkv/status.h"
#include "vtkv/util/features.h"

namespace swimstore {

struct Superblock {
  std::array<uint8_t, 16> uuid{};
  uint32_t cubes = 1;
  uint64_t created_us = 0;
  uint64_t chunk_bytes = 0;
  vtkv::Geometry geometry;
  uint32_t version = kSuperblockVersion;
  vtkv::Features features = features_of_version_2();

  uuid_d fsid() const;

  // Has this program a newer format, or features that it would have made the store with?
  bool is_upgradable() const;

  static constexpr size_t kCopyBytes = 4096;
  static constexpr size_t kFeatureBytesMax = 4016;  // the rest of a copy
  static constexpr size_t kBytes = 2 * kCopyBytes;
  // kBytes: both copies.
  std::string encode() const;
  // One whole copy is enough. Otherwise one sentence: foreign, truncated, damaged, from the future. That its features
  // are known is for the caller to check. `name` is the file's, for the message.
  static vtkv::Status decode(std::string_view name, std::string_view bytes, Superblock* superblock);

  // Of a copy of kCopyBytes, as it should be.
  static uint32_t checksum(std::string_view copy);

  // `root`/superblock.
  static vtkv::Status read(vtkv::Env* env, const std::string& root, Superblock* superblock);
  // Does the file hold two whole copies of this one?
  bool is_whole(vtkv::Env* env, const std::string& root) const;
};

}  // namespace swimstore
