// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/block_compression.h"

#include <lz4.h>

#include <algorithm>
#include <cstring>

#include "vtkv/span/block_format.h"

namespace vtkv {

bool compress_body(std::string_view plain, size_t bytes_max, std::string* stored) {
  if (plain.empty() || plain.size() > kCompressedBodyMax || bytes_max <= sizeof(compressed_body_t)) {
    return false;
  }
  const compressed_body_t header{
      static_cast<uint8_t>(CompressionAlgorithm::lz4), {}, static_cast<uint32_t>(plain.size())};
  const size_t room = std::min<size_t>(bytes_max - sizeof(header), LZ4_compressBound(static_cast<int>(plain.size())));
  stored->resize(sizeof(header) + room);
  std::memcpy(stored->data(), &header, sizeof(header));
  const int compressed = LZ4_compress_default(plain.data(), stored->data() + sizeof(header),
                                              static_cast<int>(plain.size()), static_cast<int>(room));
  stored->resize(compressed > 0 ? sizeof(header) + static_cast<size_t>(compressed) : 0);
  return compressed > 0;
}

Status decompress_body(std::string_view stored, std::unique_ptr<char[]>* plain, uint32_t* plain_bytes) {
  compressed_body_t header;
  if (stored.size() < sizeof(header)) {
    return Status::corruption("the compressed block is shorter than its header");
  }
  std::memcpy(&header, stored.data(), sizeof(header));
  if (header.algorithm != static_cast<uint8_t>(CompressionAlgorithm::lz4)) {
    return Status::unsupported("the block is compressed by algorithm " + std::to_string(header.algorithm) +
                               ", this program knows 1 (LZ4) alone");
  }
  stored.remove_prefix(sizeof(header));
  if (header.plain_bytes == 0 || header.plain_bytes > kBlockBytesMax || stored.size() > kBlockBytesMax ||
      header.plain_bytes / kCompressionRatioMax > stored.size()) {
    return Status::corruption("the compressed block says an impossible length");
  }
  auto bytes = std::make_unique_for_overwrite<char[]>(header.plain_bytes);
  const int found = LZ4_decompress_safe(stored.data(), bytes.get(), static_cast<int>(stored.size()),
                                        static_cast<int>(header.plain_bytes));
  if (found < 0 || static_cast<uint32_t>(found) != header.plain_bytes) {
    return Status::corruption("the compressed block is malformed");
  }
  *plain = std::move(bytes);
  *plain_bytes = header.plain_bytes;
  return {};
}

}  // namespace vtkv
