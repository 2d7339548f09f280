// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/mutations.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

namespace vtkv {

namespace {

#define VTKV_MUTATION(name, broken) Mutation::name,
constexpr Mutation kMutations[] = {VTKV_ENGINE_MUTATIONS(VTKV_MUTATION) VTKV_STORE_MUTATIONS(VTKV_MUTATION)};
constexpr Mutation kOfEngine[] = {VTKV_ENGINE_MUTATIONS(VTKV_MUTATION)};
#undef VTKV_MUTATION

#define VTKV_MUTATION(name, broken) #name,
constexpr std::string_view kNames[] = {VTKV_ENGINE_MUTATIONS(VTKV_MUTATION) VTKV_STORE_MUTATIONS(VTKV_MUTATION)};
#undef VTKV_MUTATION

#define VTKV_MUTATION(name, broken) broken,
constexpr std::string_view kBroken[] = {VTKV_ENGINE_MUTATIONS(VTKV_MUTATION) VTKV_STORE_MUTATIONS(VTKV_MUTATION)};
#undef VTKV_MUTATION

static_assert(std::size(kMutations) <= 64);  // bits of BrokenRules
static_assert(kCanMutate || !mutated(Mutation::flush_removed));

}  // namespace

ScopedMutation::ScopedMutation(Mutation rule)
    : m_before(BrokenRules::s_rules.fetch_or(kCanMutate ? BrokenRules::bit(rule) : 0)) {}

ScopedMutation::~ScopedMutation() { BrokenRules::s_rules.store(m_before); }

std::span<const Mutation> mutations() { return kMutations; }

bool is_of_engine(Mutation mutation) { return static_cast<size_t>(mutation) < std::size(kOfEngine); }

std::string_view to_string(Mutation mutation) { return kNames[static_cast<size_t>(mutation)]; }

std::string_view what_is_broken(Mutation mutation) { return kBroken[static_cast<size_t>(mutation)]; }

Status parse_mutation(std::string_view name, Mutation* mutation) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return Status::invalid_argument("there is no mutation '" + std::string(name) +
                                    "': swimstore_crash_explorer --list-mutations names them");
  }
  if (!kCanMutate) {
    return Status::unsupported("this build cannot break the rule '" + std::string(name) +
                               "': it was configured with SWIM_MUTATIONS=OFF");
  }
  *mutation = kMutations[found - std::begin(kNames)];
  return {};
}

}  // namespace vtkv
