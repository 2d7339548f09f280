// The store's root file `superblock`: what was fixed at mkfs. Written once, atomically; two copies, at 0 and
// at 4096, so that one damaged block does not lose a store.
//
// OFFSET SIZE FIELD
// 0      8    magic "SWIMSTOR"
// 8      4    version (2)
// 12     4    number of cubes
// 16     16   uuid of the store (the OSD's fsid)
// 32     8    time of creation, microseconds since the Unix epoch
// 40     8    container stretch bytes
// 48     8    log segment bytes
// 56     8    zone bytes
// 64     4    initial log segments
// 68     4    block bytes
// 72     4    0
// 76     4    crc32c of bytes 0 to 75
// 80     ..   0, up to 4096
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "vtkv/env/env.h"
#include "vtkv/options.h"
#include "vtkv/status.h"

namespace swimstore {

struct Superblock {
  std::array<uint8_t, 16> uuid{};
  uint32_t cubes = 1;
  uint64_t created_us = 0;
  uint64_t stretch_bytes = 0;
  vtkv::Geometry geometry;

  static constexpr size_t kCopyBytes = 4096;
  static constexpr size_t kBytes = 2 * kCopyBytes;
  // kBytes: both copies.
  std::string encode() const;
  // One whole copy is enough. Otherwise one sentence: foreign, truncated, damaged, from the future.
  // `name` is the file's, for the message.
  static vtkv::Status decode(std::string_view name, std::string_view bytes, Superblock* superblock);

  // `root`/superblock. write: durable and whole, or not there at all (given a synced parent directory).
  vtkv::Status write(vtkv::Env* env, const std::string& root) const;
  static vtkv::Status read(vtkv::Env* env, const std::string& root, Superblock* superblock);
  // Does the file hold two whole copies of this one?
  bool is_whole(vtkv::Env* env, const std::string& root) const;
};

}  // namespace swimstore
