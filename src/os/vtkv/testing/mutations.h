// SPDX-License-Identifier: LGPL-2.1-or-later
// Breaks safety rules (util/mutations.h), and knows their names.
#pragma once

#include <span>
#include <string_view>

#include "vtkv/status.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

// While it lives, the rule is broken in the whole process; in a build that cannot (kCanMutate), it is not. They may be
// nested.
class ScopedMutation {
 public:
  explicit ScopedMutation(Mutation rule);
  ~ScopedMutation();
  ScopedMutation(const ScopedMutation&) = delete;
  ScopedMutation& operator=(const ScopedMutation&) = delete;

 private:
  const uint64_t m_before;
};

// Those of the engine first.
std::span<const Mutation> mutations();
// False: only a cube, or a store, has the rule.
bool is_of_engine(Mutation mutation);
std::string_view to_string(Mutation mutation);
std::string_view what_is_broken(Mutation mutation);
// Code::invalid_argument: there is none of that name. Code::unsupported: this build can break none.
Status parse_mutation(std::string_view name, Mutation* mutation);

// At the begin of a test, or of what in it needs a broken rule.
#define VTKV_NEEDS_MUTATIONS() \
  if (!::vtkv::kCanMutate) GTEST_SKIP() << "this build cannot break rules (SWIM_MUTATIONS=OFF)"

}  // namespace vtkv
