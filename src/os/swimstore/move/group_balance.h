// SPDX-License-Identifier: LGPL-2.1-or-later
// Which placement groups to move so that the cubes of a store hold about as much each.
//
// A group weighs what its blocks take of slots, and kGroupWeight: so groups without data, or with omap alone, are
// spread by their number. Until two cubes differ by a tenth of what a cube holds on average, at most, a group goes from
// the fullest cube to the emptiest: the one for which the difference that is left and half of what is copied are least
// together, if they are less than the difference was. A cube of which no group goes is left as it is, and the next
// fullest one is looked at. (The greedy rule for moving jobs between machines: G. Aggarwal, R. Motwani, A. Zhu, "The
// load rebalancing problem", SPAA 2003.)
//
// Cost: groups times cubes, for each move.
#pragma once

#include <cstdint>
#include <vector>

#include "osd/osd_types.h"

namespace swimstore {

struct GroupMove {
  coll_t cid;
  unsigned from = 0, to = 0;
  uint64_t slot_bytes = 0;  // that its blocks take, at most
};

struct GroupSize {
  coll_t cid;
  unsigned cube = 0;
  uint64_t slot_bytes = 0;
};

inline constexpr uint64_t kGroupWeight = 1u << 20;  // bytes

// In the order in which they are to be made; each group moves once at most.
// Groups that lie in none of `cubes` are moved first, all of them, the largest first, each to the emptiest cube.
std::vector<GroupMove> plan_balance(const std::vector<GroupSize>& groups, const std::vector<unsigned>& cubes);

}  // namespace swimstore
