// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/gc_requests.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

TEST(GcRequestsTest, ServesTogetherWhatWasAskedForBeforeItWasTakenUp) {
  GcRequests requests;
  EXPECT_FALSE(requests.take());
  EXPECT_EQ(requests.request(GcRequest::full), 1u);
  EXPECT_EQ(requests.request(GcRequest::settle), 2u);
  ASSERT_TRUE(requests.take());
  EXPECT_TRUE(requests.serving(GcRequest::full));  // the one that does most
  EXPECT_EQ(requests.served(), 0u);
  requests.end();
  EXPECT_EQ(requests.served(), 2u);
  EXPECT_FALSE(requests.serving());
}

TEST(GcRequestsTest, WhatIsAskedForMeanwhileIsServedAfterwards) {
  GcRequests requests;
  requests.request(GcRequest::round);
  ASSERT_TRUE(requests.take());
  const uint64_t number = requests.request(GcRequest::settle);
  EXPECT_FALSE(requests.take());  // one at a time
  requests.end();
  EXPECT_LT(requests.served(), number);
  ASSERT_TRUE(requests.take());
  EXPECT_TRUE(requests.serving(GcRequest::settle));
  requests.end();
  EXPECT_EQ(requests.served(), number);
}

}  // namespace
}  // namespace vtkv
