// SPDX-License-Identifier: LGPL-2.1-or-later
// The features of a cube's database (vtkv/util/features.h): looked at, and changed as another program's next checkpoint
// would change them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "vtkv/tree/manifest.h"

namespace swimstore {

inline vtkv::Features database_features(vtkv::Env* env, const std::string& database) {
  std::unique_ptr<vtkv::Manifest> manifest;
  vtkv::Checkpoint newest, older;
  EXPECT_TRUE(vtkv::Manifest::open(env, database, &manifest, &newest, &older).ok());
  return newest.features;
}

inline void give_database_features(vtkv::Env* env, const std::string& database, const vtkv::Features& features) {
  std::unique_ptr<vtkv::Manifest> manifest;
  vtkv::Checkpoint newest, older;
  ASSERT_TRUE(vtkv::Manifest::open(env, database, &manifest, &newest, &older).ok());
  ++newest.epoch;
  newest.features = features;
  ASSERT_TRUE(manifest->write(newest).ok());
}

}  // namespace swimstore
