// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/format_version.h"

#include <string>

namespace swimstore {

const vtkv::Features& features_of_version_2() {
  static const vtkv::Features features{.compat = {}, .ro_compat = {}, .incompat = {"split_slots"}};
  return features;
}

const vtkv::Features& known_features() {
  static const vtkv::Features features = [] {
    vtkv::Features all = features_of(2);
    all.ro_compat.insert(kGroupsInCube0Feature);
    all.incompat.insert(kMetadataElsewhereFeature);
    return all;
  }();
  return features;
}

vtkv::Features features_of(unsigned cubes) {
  vtkv::Features features = features_of_version_2();
  features.incompat.insert(kCompressionFeature);
  if (cubes > 1) {
    features.ro_compat.insert(kWitnessFeature);
  }
  return features;
}

vtkv::Status check_version(std::string_view what, uint32_t found, uint32_t known, uint32_t oldest) {
  if (found == 0) {
    return vtkv::Status::corruption(std::string(what) + ": format version 0 does not exist; the bytes are damaged");
  }
  if (found > known) {
    return vtkv::Status::unsupported(std::string(what) + ": written in format version " + std::to_string(found) +
                                     ", this program knows versions up to " + std::to_string(known) +
                                     "; use the newer program that wrote it");
  }
  if (found < oldest) {
    return vtkv::Status::unsupported(std::string(what) + ": written in format version " + std::to_string(found) +
                                     ", this program reads versions from " + std::to_string(oldest) +
                                     " on; export the store with the program that wrote it and import it into a new " +
                                     "one, or let Ceph refill the OSD");
  }
  return {};
}

}  // namespace swimstore
