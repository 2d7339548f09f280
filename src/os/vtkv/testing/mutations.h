// SPDX-License-Identifier: LGPL-2.1-or-later
// The safety rules that a test can break, by name.
#pragma once

#include <span>
#include <string_view>

#include "vtkv/options.h"

namespace vtkv {

struct Mutation {
  std::string_view name;
  bool Options::Mutations::* rule;
};

std::span<const Mutation> mutations();
// False: there is none of that name.
bool apply_mutation(std::string_view name, Options::Mutations* mutations);

}  // namespace vtkv
