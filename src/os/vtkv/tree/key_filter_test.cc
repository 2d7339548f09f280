#include "vtkv/tree/key_filter.h"

#include <gtest/gtest.h>

#include "vtkv/util/hash.h"

namespace vtkv {
namespace {

uint64_t hash_of(int i) { return hash64("key" + std::to_string(i)); }

TEST(KeyFilter, NeverDeniesAKeyThatWasAdded) {
  for (const int keys : {1, 2, 100, 50000}) {
    KeyFilter filter(keys);
    for (int i = 0; i < keys; ++i) {
      filter.add(hash_of(i));
    }
    for (int i = 0; i < keys; ++i) {
      ASSERT_TRUE(filter.may_hold(hash_of(i)));
    }
  }
}

TEST(KeyFilter, DeniesNearlyAllOthers) {
  constexpr int kKeys = 20000;
  KeyFilter filter(kKeys);
  for (int i = 0; i < kKeys; ++i) {
    filter.add(hash_of(i));
  }
  int wrong = 0;
  for (int i = kKeys; i < 2 * kKeys; ++i) {
    wrong += filter.may_hold(hash_of(i));
  }
  EXPECT_LT(wrong, kKeys * 25 / 1000);
}

TEST(KeyFilter, SurvivesBeingStored) {
  KeyFilter filter(100), again;
  filter.add(hash_of(5));
  ASSERT_TRUE(KeyFilter::from_bytes(filter.bytes(), &again));
  EXPECT_TRUE(again.may_hold(hash_of(5)));
  EXPECT_EQ(again.bytes(), filter.bytes());
  EXPECT_FALSE(KeyFilter::from_bytes(filter.bytes().substr(1), &again));
}

TEST(KeyFilter, WithoutKeysItSaysMay) {
  EXPECT_TRUE(KeyFilter().may_hold(1));
  KeyFilter none;
  ASSERT_TRUE(KeyFilter::from_bytes("", &none));
  EXPECT_TRUE(none.may_hold(1));
}

}  // namespace
}  // namespace vtkv
