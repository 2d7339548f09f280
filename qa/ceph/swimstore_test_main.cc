// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs SwimStore's unit tests in a CephContext of their own: no configuration file,
// no daemon, nothing of the host's.

#include <gtest/gtest.h>

#include "common/ceph_argparse.h"
#include "global/global_context.h"
#include "global/global_init.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // A process of a CephContext has threads; one that is only forked may find what they had locked locked for ever.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto args = argv_to_vec(argc, argv);
  auto cct =
      global_init(nullptr, args, CEPH_ENTITY_TYPE_CLIENT, CODE_ENVIRONMENT_UTILITY, CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(g_ceph_context);
  // Tests may change any option.
  g_ceph_context->_conf._clear_safe_to_start_threads();
  return RUN_ALL_TESTS();
}
