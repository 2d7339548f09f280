// SPDX-License-Identifier: LGPL-2.1-or-later
// CRC-32C (Castagnoli; polynomial 0x1EDC6F41, initial and final value all ones), computed by a library
// that uses the CPU's instructions. Thread-safe.
//
// Leading zeros count: crc32c("\0") != crc32c(""). crc32c of nothing is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vtkv {

// The checksum of A followed by `data`, given the checksum of A.
uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length);

inline uint32_t crc32c(const void* data, size_t length) { return crc32c_extend(0, data, length); }
inline uint32_t crc32c(std::string_view data) { return crc32c_extend(0, data.data(), data.size()); }

// The checksum of A followed by B, given both checksums and B's length. Does not read A or B: it makes
// the checksum of a large write from those of its blocks. A table serves length_b == 4096; any other
// length costs about a microsecond.
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b);

}  // namespace vtkv
