// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/distribution.h"

#include <algorithm>
#include <cmath>

#include "vtkv/util/hash.h"

namespace vtkv::bench {

Random::Random(uint64_t seed) : m_a(mix64(seed + 1) | 1), m_b(mix64(seed + 2) | 1) {}

uint64_t Random::next() {
  uint64_t x = m_a;
  const uint64_t y = m_b;
  m_a = y;
  x ^= x << 23;
  m_b = x ^ y ^ (x >> 17) ^ (y >> 26);
  return m_b + y;
}

Zipfian::Zipfian(uint64_t count) : m_count(std::max<uint64_t>(count, 2)) {
  for (uint64_t i = 1; i <= m_count; ++i) {
    m_zeta += std::pow(static_cast<double>(i), -kTheta);
  }
  const double zeta_2 = 1 + std::pow(0.5, kTheta);
  m_alpha = 1 / (1 - kTheta);
  m_eta = (1 - std::pow(2.0 / static_cast<double>(m_count), 1 - kTheta)) / (1 - zeta_2 / m_zeta);
}

uint64_t Zipfian::rank(Random& random) const {
  const double unit = random.unit(), scaled = unit * m_zeta;
  if (scaled < 1) {
    return 0;
  }
  if (scaled < 1 + std::pow(0.5, kTheta)) {
    return 1;
  }
  const double rank = static_cast<double>(m_count) * std::pow(m_eta * unit - m_eta + 1, m_alpha);
  return std::min(static_cast<uint64_t>(rank), m_count - 1);
}

uint64_t Zipfian::scrambled(Random& random) const { return mix64(rank(random) + 1) % m_count; }

}  // namespace vtkv::bench
