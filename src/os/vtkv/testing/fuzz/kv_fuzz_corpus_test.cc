// SPDX-License-Identifier: LGPL-2.1-or-later
// The kept corpus of the fuzz targets, and small changes of it, through the same entry points as the fuzzer's.
// SWIM_WRITE_CORPUS=1 makes its seeds anew (qa/fuzz/make_corpus.sh).

#include <gtest/gtest.h>

#include <cstdlib>

#include "vtkv/testing/fuzz/kv_fuzz_targets.h"

namespace vtkv {
namespace {

constexpr uint64_t kChanges = 20'000;

class KvFuzzCorpusTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(KvFuzzCorpusTest, KeptSeedsAreWhatTheEncoderMakes) {
  EXPECT_EQ(check_seeds(GetParam(), SWIM_FUZZ_CORPUS, std::getenv("SWIM_WRITE_CORPUS") != nullptr), "");
}

TEST_P(KvFuzzCorpusTest, NoBytesDoHarm) {
  EXPECT_GT(replay_corpus(GetParam(), SWIM_FUZZ_CORPUS, kChanges, 1), kChanges);
}

INSTANTIATE_TEST_SUITE_P(, KvFuzzCorpusTest, testing::ValuesIn(kv_fuzz_targets().begin(), kv_fuzz_targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace vtkv
