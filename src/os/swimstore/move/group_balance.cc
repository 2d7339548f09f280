// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/group_balance.h"

#include <algorithm>
#include <map>

namespace swimstore {

namespace {

uint64_t weight(const GroupSize& group) { return group.slot_bytes + kGroupWeight; }

}  // namespace

std::vector<GroupMove> plan_balance(const std::vector<GroupSize>& groups, const std::vector<unsigned>& cubes) {
  std::map<unsigned, std::vector<GroupSize>> unmoved;
  std::map<unsigned, uint64_t> held;
  for (const unsigned cube : cubes) {
    held[cube] = 0;
  }
  uint64_t total = 0;
  std::vector<GroupSize> elsewhere;
  for (const GroupSize& group : groups) {
    total += weight(group);
    if (held.contains(group.cube)) {
      unmoved[group.cube].push_back(group);
      held[group.cube] += weight(group);
    } else {
      elsewhere.push_back(group);
    }
  }
  const auto by_bytes = [](const auto& a, const auto& b) { return a.second < b.second; };
  std::vector<GroupMove> moves;
  std::stable_sort(elsewhere.begin(), elsewhere.end(),
                   [](const GroupSize& a, const GroupSize& b) { return weight(a) > weight(b); });
  for (const GroupSize& group : elsewhere) {
    const auto emptiest = std::min_element(held.begin(), held.end(), by_bytes);
    moves.push_back({group.cid, group.cube, emptiest->first, group.slot_bytes});
    emptiest->second += weight(group);
  }
  for (std::map<unsigned, uint64_t> sources = held; !sources.empty();) {
    const auto fullest = std::max_element(sources.begin(), sources.end(), by_bytes);
    const auto emptiest = std::min_element(held.begin(), held.end(), by_bytes);
    const uint64_t gap = fullest->second - emptiest->second;
    if (gap <= total / cubes.size() / 10) {
      return moves;  // nor do others differ by more
    }
    // What is left of the gap, and the half of what is copied.
    const auto cost = [gap](const GroupSize& group) {
      const uint64_t moved = 2 * weight(group);
      return (moved > gap ? moved - gap : gap - moved) + weight(group) / 2;
    };
    std::vector<GroupSize>& candidates = unmoved[fullest->first];
    const auto best = std::min_element(candidates.begin(), candidates.end(),
                                       [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
    if (best == candidates.end() || cost(*best) > gap) {
      sources.erase(fullest);
      continue;
    }
    moves.push_back({best->cid, fullest->first, emptiest->first, best->slot_bytes});
    emptiest->second += weight(*best);
    held[fullest->first] -= weight(*best);
    fullest->second = held[fullest->first];
    if (const auto source = sources.find(emptiest->first); source != sources.end()) {
      source->second = emptiest->second;
    }
    candidates.erase(best);
  }
  return moves;
}

}  // namespace swimstore
