// SPDX-License-Identifier: LGPL-2.1-or-later
// Compressed blobs of data, made and read by Ceph's own compressor plugins.
//
// Plugins are loaded once, when the codec is made, and stay: packages that are exchanged below a running OSD, whose
// plugins Ceph would refuse for their version, do it no harm. All or none: while one is missing nothing is compressed,
// and no store with compressed data is opened to be read, for behind a read a missing plugin cannot be told from
// damage.
//
// Thread-safe; takes no lock.
#pragma once

#include <array>
#include <string>

#include "compressor/Compressor.h"
#include "include/buffer.h"

#include "swimstore/format/extent_record.h"
#include "vtkv/status.h"

namespace swimstore {

class BlobCodec {
 public:
  explicit BlobCodec(CephContext* cct);

  bool has(int algorithm) const;
  // "": all plugins are there. Else which could not be loaded, from where, and the remedy.
  const std::string& missing() const { return m_missing; }
  // Compresses whole blocks, as many as a shard has at most. False: there is no such plugin, or the blocks that are
  // left are more than `required_ratio` of those before, rounded up, or as many. Appends to *stored: whole blocks,
  // aligned for direct I/O. *blob: all but where it lies; its `block`, `live`, `extents` and `crc32c` are the caller's.
  bool compress(int algorithm, double required_ratio, const ceph::bufferlist& blocks, ceph::bufferlist* stored,
                CompressedBlob* blob) const;
  // The blocks that were compressed into these. Code::unsupported: there is no plugin; corruption. Forged bytes cost
  // 128 MiB of memory at most, as a window of zstd. Throws std::bad_alloc: no memory is not damage.
  vtkv::Status decompress(const CompressedBlob& blob, const ceph::bufferptr& stored, ceph::bufferlist* blocks) const;

 private:
  std::array<CompressorRef, kAlgorithmMax + 1> m_compressors;  // by algorithm; null: not loaded
  std::string m_missing;
};

}  // namespace swimstore
