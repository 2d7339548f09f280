// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/mutations.h"

#include "vtkv/testing/mutations.h"

namespace swimstore {

std::vector<std::string> mutation_names() {
  std::vector<std::string> names = {"slot_punched_early", "fragment_punched_early", "failed_punch_trusted",
                                    "damage_mark_kept",   "quarantine_forgotten",   "single_flush_everywhere"};
  for (const vtkv::Mutation& mutation : vtkv::mutations()) {
    names.emplace_back(mutation.name);
  }
  return names;
}

bool apply_mutation(const std::string& name, CubeOptions* options) {
  if (name == "slot_punched_early") {
    options->containers.punch_at_once = true;
    return true;
  }
  if (name == "fragment_punched_early") {
    options->containers.punch_fragments_at_once = true;
    return true;
  }
  if (name == "failed_punch_trusted") {
    options->containers.trust_failed_punch = true;
    return true;
  }
  if (name == "damage_mark_kept") {
    options->keep_damage_marks = true;
    return true;
  }
  if (name == "quarantine_forgotten") {
    options->containers.forget_quarantine = true;
    return true;
  }
  if (name == "single_flush_everywhere") {
    options->database.single_flush = true;
    return true;
  }
  if (name == "slot_reused_at_once") {
    options->containers.skip_reuse_horizon = true;
    return true;
  }
  return vtkv::apply_mutation(name, &options->database.mutations);
}

}  // namespace swimstore
