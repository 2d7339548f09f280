// SPDX-License-Identifier: LGPL-2.1-or-later
// Ceph's object store tests, on the stores that are built in.

#include <gtest/gtest.h>

#ifndef SWIM_WITH_BLUESTORE
// Ceph's lists name KStore whatever is built.
#pragma push_macro("INSTANTIATE_TEST_SUITE_P")
#undef INSTANTIATE_TEST_SUITE_P
#define INSTANTIATE_TEST_SUITE_P(...) static_assert(true)
#endif

#include "test/objectstore/store_test.cc"

#ifndef SWIM_WITH_BLUESTORE
#pragma pop_macro("INSTANTIATE_TEST_SUITE_P")
INSTANTIATE_TEST_SUITE_P(ObjectStore, StoreTest, ::testing::Values("memstore"));
// Their cases return at once for every store but BlueStore, or have none without it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreTestSpecificAUSize);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeferredWriteTest);
// Tentacle's: only BlueStore's options are varied there.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixSharding);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixShardingLimited);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixLimited);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixCsumAlgorithm);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixCsumVsCompression);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixCompression);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixCompressionAlgorithm);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixNoCsum);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyntheticMatrixPreferDeferred);
#endif

INSTANTIATE_TEST_SUITE_P(SwimStore, StoreTest, ::testing::Values("swimstore"));
