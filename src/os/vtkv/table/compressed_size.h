// SPDX-License-Identifier: LGPL-2.1-or-later
// How many bytes of entries a block should gather, so that it is about as large as wanted once it is compressed: a
// guess by the blocks before it. A read takes as many bytes as before; there are more entries in them.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

namespace vtkv {

class CompressedSize {
 public:
  size_t plain_bytes(size_t wanted_bytes) const {
    return static_cast<size_t>(static_cast<double>(wanted_bytes) * std::max(1.0, m_ratio * kMargin));
  }
  // Of a block: how many times smaller it could be made. A few entries that are left over at an end tell nothing: they
  // compress badly.
  void saw(double ratio) {
    const double limited = std::min(ratio, kRatioMax);
    m_ratio = limited < m_ratio ? limited : m_ratio + (limited - m_ratio) * kGrowth;
  }

 private:
  // A larger block is decompressed, and kept in the cache, for the sake of one entry.
  static constexpr double kRatioMax = 4;
  // A block that comes out a little too large takes a unit more: rather a little too small. After one that is hard to
  // compress the next may be, too: down at once, and up slowly.
  static constexpr double kMargin = 0.97, kGrowth = 0.25;
  double m_ratio = 1;
};

}  // namespace vtkv
