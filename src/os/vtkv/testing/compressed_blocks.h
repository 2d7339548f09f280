// SPDX-License-Identifier: LGPL-2.1-or-later
// How many compressed blocks a tree's file holds, also where no run lies any more.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "vtkv/env.h"
#include "vtkv/span/block_format.h"

namespace vtkv {

inline int compressed_blocks(Env* env, const std::string& tree) {
  std::unique_ptr<File> file;
  EXPECT_TRUE(env->open_file(tree, {.read_only = true, .direct = false}, &file).ok());
  uint64_t bytes = 0;
  EXPECT_TRUE(file->size(&bytes).ok());
  int compressed = 0;
  for (uint64_t offset = 0; offset + kUnitBytes <= bytes; offset += kUnitBytes) {
    block_header_t header;
    EXPECT_TRUE(file->read(offset, sizeof(header), reinterpret_cast<char*>(&header)).ok());
    compressed += header.magic == kBlockMagic && header.version == kCompressedBlockVersion;
  }
  return compressed;
}

}  // namespace vtkv
