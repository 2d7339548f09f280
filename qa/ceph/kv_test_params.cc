// SPDX-License-Identifier: LGPL-2.1-or-later
// Ceph's key-value store tests, with vtkv as one more store to run them on.

#include <gtest/gtest.h>

#ifndef SWIM_WITH_BLUESTORE
// There is no RocksDB here: its parameters are not instantiated, and the cases of a fixture that opens it
// are compiled but not registered.
#pragma push_macro("INSTANTIATE_TEST_SUITE_P")
#pragma push_macro("TEST_F")
#undef INSTANTIATE_TEST_SUITE_P
#undef TEST_F
#define INSTANTIATE_TEST_SUITE_P(...) static_assert(true)
#define TEST_F(suite, name)                              \
  struct suite##_##name##_needs_rocksdb : public suite { \
    void TestBody() override;                            \
  };                                                     \
  inline void suite##_##name##_needs_rocksdb::TestBody()
#endif

#include "test/objectstore/test_kv.cc"

#ifndef SWIM_WITH_BLUESTORE
#pragma pop_macro("INSTANTIATE_TEST_SUITE_P")
#pragma pop_macro("TEST_F")
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RocksDBShardingTest);
#endif

INSTANTIATE_TEST_SUITE_P(Vtkv, KVTest, ::testing::Values("vtkv"));
