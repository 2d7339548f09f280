// SPDX-License-Identifier: LGPL-2.1-or-later
// Random choices of a workload. Each thread has its own; none is thread-safe.
#pragma once

#include <cstdint>

namespace vtkv::bench {

// xorshift128+, seeded: every engine meets the same sequence.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  uint64_t below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t m_a, m_b;
};

// Ranks 0 .. count-1, rank r with probability proportional to 1/(r+1)^theta (Gray et al., "Quickly generating
// billion-record synthetic databases", SIGMOD '94; YCSB's constant 0.99).
class Zipfian {
 public:
  static constexpr double kTheta = 0.99;
  explicit Zipfian(uint64_t count);
  uint64_t rank(Random& random) const;
  // A rank's key when the popular ones are scrambled over all keys, as YCSB does for all workloads but D.
  uint64_t scrambled(Random& random) const;

 private:
  const uint64_t m_count;
  double m_zeta = 0, m_alpha = 0, m_eta = 0;
};

}  // namespace vtkv::bench
