// SPDX-License-Identifier: LGPL-2.1-or-later
// A hash of what is on a simulated disk: two crash states that leave the same files are one.
//
// Blocks and files are shared between the images of one run, so each is hashed once. Keeps what it has hashed
// alive: one instance per run. Not thread-safe.
#pragma once

#include <memory>
#include <unordered_map>

#include "vtkv/testing/sim_image.h"

namespace vtkv {

class ImageHash {
 public:
  // Names, sizes and bytes; not which blocks have space.
  uint64_t of(const SimImage& image);

 private:
  uint64_t of_block(const std::shared_ptr<const SimChunk>& bytes);
  uint64_t of_file(const std::shared_ptr<SimInode>& inode);

  std::unordered_map<std::shared_ptr<const SimChunk>, uint64_t> m_blocks;
  std::unordered_map<std::shared_ptr<const SimInode>, uint64_t> m_files;
};

}  // namespace vtkv
