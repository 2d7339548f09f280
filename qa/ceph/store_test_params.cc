// Ceph's object store tests, with SwimStore as one more store to run them on.
#include "test/objectstore/store_test.cc"

#ifdef SWIM_HAVE_SWIMSTORE
INSTANTIATE_TEST_SUITE_P(SwimStore, StoreTest, ::testing::Values("swimstore"));
#endif
