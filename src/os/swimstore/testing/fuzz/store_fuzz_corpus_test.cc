// SPDX-License-Identifier: LGPL-2.1-or-later
// The kept corpus of the store's fuzz targets, and small changes of it; see vtkv/testing/fuzz/kv_fuzz_corpus_test.cc.

#include <gtest/gtest.h>

#include <cstdlib>

#include "swimstore/testing/fuzz/store_fuzz_targets.h"

namespace swimstore {

namespace {

constexpr uint64_t kChanges = 20'000;

class StoreFuzzCorpusTest : public testing::TestWithParam<vtkv::FuzzTarget> {};

TEST_P(StoreFuzzCorpusTest, KeptSeedsAreWhatTheEncoderMakes) {
  EXPECT_EQ(check_seeds(GetParam(), SWIM_FUZZ_CORPUS, std::getenv("SWIM_WRITE_CORPUS") != nullptr), "");
}

TEST_P(StoreFuzzCorpusTest, NoBytesDoHarm) {
  EXPECT_GT(replay_corpus(GetParam(), SWIM_FUZZ_CORPUS, kChanges, 1), kChanges);
}

INSTANTIATE_TEST_SUITE_P(, StoreFuzzCorpusTest,
                         testing::ValuesIn(store_fuzz_targets().begin(), store_fuzz_targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

}  // namespace swimstore
