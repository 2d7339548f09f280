// SPDX-License-Identifier: LGPL-2.1-or-later
// The peers' settings, in one place: what their own guides recommend for data that does not compress, on a
// fast disk, within a memory budget. doc/vtkv_bench.md gives the source of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace vtkv::bench::peer {

// All engines: half of the budget for memtables (two of them), half for cached blocks.
inline constexpr size_t write_buffer_bytes(size_t memory_bytes) { return memory_bytes / 4; }
inline constexpr size_t cache_bytes(size_t memory_bytes) { return memory_bytes / 2; }
inline constexpr int kWriteBuffers = 2;
inline constexpr size_t kBlockBytes = 4096;
inline constexpr double kBloomBitsPerKey = 10;
// Logs and tables go to the device as they are written, instead of when the kernel finds the time.
inline constexpr uint64_t kBytesPerSync = 1 << 20;

// RocksDB, leveled.
inline constexpr int kBackgroundJobs = 2;
inline constexpr int kL0Trigger = 4;
inline constexpr uint64_t level_base_bytes(size_t memory_bytes) {
  return kL0Trigger * write_buffer_bytes(memory_bytes);
}
inline constexpr uint64_t kFilesPerLevelBase = 10;
inline constexpr size_t kCompactionReadaheadBytes = 2 << 20;
inline constexpr size_t kLongScanReadaheadBytes = 2 << 20;
inline constexpr size_t kMetadataBlockBytes = 4096;

// BlobDB: blob files are collected whole, oldest first, so they have to be a small part of the data.
inline constexpr uint64_t kMinBlobBytes = 512;
inline constexpr double kGcAgeCutoff = 0.5;
inline constexpr double kGcForceThreshold = 0.5;
inline constexpr uint64_t blob_file_bytes(uint64_t data_bytes) {
  return std::clamp<uint64_t>(data_bytes / 32, 4 << 20, 256 << 20);
}
// The tree holds keys and references only.
inline constexpr uint64_t kBlobReferenceBytes = 40;

// LevelDB.
inline constexpr size_t kLeveldbFileBytes = 2 << 20;

// LMDB: address space; the file grows as needed.
inline constexpr uint64_t kMapBytesMin = 4ull << 30;
inline constexpr uint64_t kMapTimesData = 8;

}  // namespace vtkv::bench::peer
