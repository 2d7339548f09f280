// SPDX-License-Identifier: LGPL-2.1-or-later
// How one transaction changes the usage of pools: mostly of one, often not at all.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "swimstore/cube/cube.h"

namespace swimstore {

class PoolUsageDelta {
 public:
  PoolUsage& of(int64_t pool) {
    for (auto& [number, usage] : m_pools) {
      if (number == pool) {
        return usage;
      }
    }
    return m_pools.emplace_back(pool, PoolUsage()).second;
  }
  void add_to(std::map<int64_t, PoolUsage>* pools) const {
    for (const auto& [number, usage] : m_pools) {
      if (!usage.is_zero()) {
        (*pools)[number] += usage;
      }
    }
  }

 private:
  boost::container::small_vector<std::pair<int64_t, PoolUsage>, 2> m_pools;
};

}  // namespace swimstore
