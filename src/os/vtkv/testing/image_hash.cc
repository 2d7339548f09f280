// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/image_hash.h"

#include <algorithm>

#include "vtkv/util/hash.h"

namespace vtkv {

namespace {

constexpr size_t kKeptMax = 1 << 16;  // torn blocks and changed files are new in every state

template <class Map>
void bound(Map* kept) {
  if (kept->size() > kKeptMax) {
    kept->clear();
  }
}

}  // namespace

uint64_t ImageHash::of_block(const std::shared_ptr<const SimChunk>& bytes) {
  bound(&m_blocks);
  const auto [found, is_new] = m_blocks.try_emplace(bytes, 0);
  if (is_new) {
    // A block of zeros is the same as none.
    const bool holds = std::any_of(bytes->begin(), bytes->end(), [](char byte) { return byte != 0; });
    found->second = holds ? hash64({bytes->data(), bytes->size()}) : 0;
  }
  return found->second;
}

uint64_t ImageHash::of_file(const std::shared_ptr<SimInode>& inode) {
  bound(&m_files);
  const auto [found, is_new] = m_files.try_emplace(inode, 0);
  if (is_new) {
    uint64_t sum = mix64(inode->size());
    uint64_t index = 0;
    for (const SimBlock& block : inode->blocks()) {
      ++index;
      const uint64_t hash = block.bytes ? of_block(block.bytes) : 0;
      sum += hash != 0 ? mix64(hash + mix64(index)) : 0;
    }
    found->second = sum;
  }
  return found->second;
}

uint64_t ImageHash::of(const SimImage& image) {
  uint64_t sum = 0;
  for (const std::string& directory : image.directories) {
    sum += mix64(hash64(directory));
  }
  for (const auto& [name, inode] : image.names) {
    sum += mix64(hash64(name) + of_file(image.inodes.at(inode)));
  }
  return sum;
}

}  // namespace vtkv
