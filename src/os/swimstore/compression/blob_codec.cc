// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/compression/blob_codec.h"

#include <cmath>
#include <exception>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "ceph_ver.h"
#include "common/ceph_context.h"

#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr int kAlgorithms[] = {Compressor::COMP_ALG_SNAPPY, Compressor::COMP_ALG_ZLIB, Compressor::COMP_ALG_ZSTD,
                               Compressor::COMP_ALG_LZ4};
static_assert(Compressor::COMP_ALG_LZ4 == kAlgorithmMax);

// Do the compressed bytes claim to hold so many? Plugins believe what is said there.
bool claims(int algorithm, std::string_view compressed, uint64_t bytes) {
  uint32_t claimed = 0;
  switch (algorithm) {
    case Compressor::COMP_ALG_SNAPPY:
      return vtkv::get_varint32(&compressed, &claimed) && claimed == bytes;
    case Compressor::COMP_ALG_ZSTD:
      return vtkv::get_fixed32(&compressed, &claimed) && claimed == bytes;
    case Compressor::COMP_ALG_LZ4: {
      // One piece for each buffer that was compressed; compress() gives it one.
      uint32_t pieces = 0, compressed_bytes = 0;
      return vtkv::get_fixed32(&compressed, &pieces) && pieces == 1 && vtkv::get_fixed32(&compressed, &claimed) &&
             claimed == bytes && vtkv::get_fixed32(&compressed, &compressed_bytes) &&
             compressed_bytes == compressed.size();
    }
    default:
      return true;  // zlib says nothing, and cannot make much of little
  }
}

}  // namespace

BlobCodec::BlobCodec(CephContext* cct) {
  std::vector<const char*> missing;
  for (const int algorithm : kAlgorithms) {
    m_compressors[algorithm] = Compressor::create(cct, algorithm);
    if (!has(algorithm)) {
      missing.push_back(Compressor::get_comp_alg_name(algorithm));
    }
  }
  if (!missing.empty()) {
    m_missing = fmt::format(
        "Ceph's compressor plugins cannot be loaded from {}/compressor: {}. Install the package ceph-common "
        "in the version of this program, {}",
        cct->_conf.get_val<std::string>("plugin_dir"), fmt::join(missing, ", "), CEPH_GIT_NICE_VER);
  }
}

bool BlobCodec::has(int algorithm) const {
  return algorithm > 0 && algorithm <= kAlgorithmMax && m_compressors[algorithm] != nullptr;
}

bool BlobCodec::compress(int algorithm, double required_ratio, const ceph::bufferlist& blocks, ceph::bufferlist* stored,
                         CompressedBlob* blob) const {
  if (!has(algorithm)) {
    return false;
  }
  ceph::bufferlist in = blocks, compressed;
  in.c_str();  // one buffer
  std::optional<int32_t> message;
  if (m_compressors[algorithm]->compress(in, compressed, message) != 0) {
    return false;
  }
  const uint64_t bytes = compressed.length();
  if (!claims(algorithm, {compressed.c_str(), bytes}, blocks.length())) {
    return false;  // of hardware that has a form of its own, which would not be read
  }
  const uint64_t stored_blocks = blocks_for(bytes), blocks_before = blocks.length() / kBlockBytes;
  if (bytes == 0 || stored_blocks > std::ceil(required_ratio * blocks_before) || stored_blocks >= blocks_before) {
    return false;
  }
  const uint64_t stored_bytes = stored_blocks * kBlockBytes;
  ceph::bufferptr memory(ceph::buffer::create_page_aligned(stored_bytes));
  compressed.begin().copy(bytes, memory.c_str());
  memory.zero(bytes, stored_bytes - bytes);
  stored->append(std::move(memory));
  blob->count = static_cast<uint8_t>(blocks_before);
  blob->algorithm = static_cast<uint8_t>(algorithm);
  blob->message = message;
  blob->bytes = static_cast<uint32_t>(bytes);
  return true;
}

Status BlobCodec::decompress(const CompressedBlob& blob, const ceph::bufferptr& stored,
                             ceph::bufferlist* blocks) const {
  if (!has(blob.algorithm)) {
    return Status::unsupported(
        fmt::format("it is compressed by {}; {}", Compressor::get_comp_alg_name(blob.algorithm), m_missing));
  }
  const uint64_t bytes = uint64_t{blob.count} * kBlockBytes;
  if (!claims(blob.algorithm, {stored.c_str(), blob.bytes}, bytes)) {
    return Status::corruption("its compressed form claims to hold something else");
  }
  ceph::bufferlist compressed;
  compressed.append(ceph::bufferptr(stored, 0, blob.bytes));
  int r = 0;
  try {
    r = m_compressors[blob.algorithm]->decompress(compressed, *blocks, blob.message);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return Status::corruption(fmt::format("it cannot be decompressed: {}", error.what()));
  }
  return r == 0 && blocks->length() == bytes
             ? Status()
             : Status::corruption(fmt::format("it cannot be decompressed: error {}, {} bytes instead of {}", r,
                                              blocks->length(), bytes));
}

}  // namespace swimstore
