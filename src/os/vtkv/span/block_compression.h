// SPDX-License-Identifier: LGPL-2.1-or-later
// The body of a compressed block (version 2), by liblz4: doc/on_disk_format.md, "Compressed block".
//
// Thread-safe: pure functions. What is decompressed may come from a hostile disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

enum class CompressionAlgorithm : uint8_t { lz4 = 1 };

struct compressed_body_t {
  uint8_t algorithm;
  uint8_t zeros[3];
  uint32_t plain_bytes;
};
static_assert(sizeof(compressed_body_t) == 8);
static_assert(offsetof(compressed_body_t, plain_bytes) == 4);

// LZ4 makes nothing smaller than that: each byte behind the first of a match's length stands for 255 (lz4's
// doc/lz4_Block_format.md).
inline constexpr uint32_t kCompressionRatioMax = 255;
// A larger body is one value, of which nobody knows whether it is worth seconds and as much memory again.
inline constexpr size_t kCompressedBodyMax = 4 << 20;

// Puts the compressed form of a body in *stored. False when that takes more than `bytes_max`, and of a body of nothing
// or of more than kCompressedBodyMax.
bool compress_body(std::string_view plain, size_t bytes_max, std::string* stored);

// Code::corruption says what is wrong; unsupported: an algorithm that this program does not know.
Status decompress_body(std::string_view stored, std::unique_ptr<char[]>* plain, uint32_t* plain_bytes);

}  // namespace vtkv
