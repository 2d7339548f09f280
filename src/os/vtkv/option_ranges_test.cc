// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/option_ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

// An option that no database can be opened with, and words of the refusal.
struct Refused {
  std::function<void(Options*)> set;
  std::string words;
};

TEST(OptionRangesTest, AnOpenRefusesWhatCannotWork) {
  SimEnv env({.record = false});
  Options good;
  good.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
  ASSERT_TRUE(DB::create(&env, "/db", good).ok());
  const uint64_t opened = env.calls(SimCall::open);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [set, words] : std::vector<Refused>{
           {[](Options* o) { o->io_depth = 0; }, "option io_depth is 0: use 1 to 4096"},
           {[](Options* o) { o->io_depth = 5000; }, "option io_depth is 5000: use 1 to 4096"},
           {[](Options* o) { o->memtable_bytes = 0; }, "option memtable_bytes is 0: use 4096 to"},
           {[](Options* o) { o->memtable_bytes = SIZE_MAX; },
            "option memtable_bytes is 18446744073709551615: use 4096"},
           {[](Options* o) { o->checkpoint_log_bytes = 1; }, "option checkpoint_log_bytes is 1: use 0, or 4096 to"},
           {[](Options* o) { o->block_cache_bytes = SIZE_MAX; }, "option block_cache_bytes is"},
           {[](Options* o) { o->value_separation_bytes = SIZE_MAX; }, "option value_separation_bytes is"},
           {[](Options* o) { o->fragmented_values_min = UINT32_MAX; }, "option fragmented_values_min is"},
           {[](Options* o) { o->gc_lookup_cost_bytes = UINT32_MAX; }, "option gc_lookup_cost_bytes is"},
           {[](Options* o) { o->runs_per_level = 1; }, "option runs_per_level is 1: use 2 to"},
           {[](Options* o) { o->growth_factor = 0; }, "option growth_factor is 0: use 2 to"},
           {[](Options* o) { o->primed_bytes_per_commit = UINT64_MAX; }, "option primed_bytes_per_commit is"},
           {[](Options* o) { o->space_amplification_target = 0.5; },
            "option space_amplification_target is 0.5: use 0, or 1 to"},
           {[=](Options* o) { o->space_amplification_target = nan; }, "option space_amplification_target is nan"},
           {[](Options* o) { o->filter_false_positive_rate = 0; }, "option filter_false_positive_rate is 0: use"},
           {[](Options* o) { o->filter_false_positive_rate = 1; }, "option filter_false_positive_rate is 1: use"},
       }) {
    Options options = good;
    set(&options);
    std::unique_ptr<DB> db;
    bool changed = false;
    for (const Status& status : {DB::open(&env, "/db", options, &db), DB::open_read_only(&env, "/db", options, &db),
                                 DB::upgrade(&env, "/db", options, &changed)}) {
      EXPECT_EQ(status.code(), Status::Code::invalid_argument) << words;
      EXPECT_EQ(status.message().substr(0, words.size()), words);
    }
  }
  EXPECT_EQ(env.calls(SimCall::open), opened);
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::open(&env, "/db", good, &db).ok());
}

TEST(OptionRangesTest, ALogThatNoDiskHoldsIsNotMade) {
  SimEnv env({.record = false});
  for (const Geometry& geometry : {Geometry{.log_segment_bytes = 1ull << 50}, Geometry{.initial_log_segments = 1 << 20},
                                   Geometry{.zone_bytes = 1ull << 50}, Geometry{.block_bytes = 0}}) {
    Options options;
    options.geometry = geometry;
    EXPECT_EQ(DB::create(&env, "/db", options).code(), Status::Code::invalid_argument);
    EXPECT_FALSE(env.exists("/db"));
  }
}

TEST(OptionRangesTest, APassThatWouldNeverEndDoesNotBegin) {
  SimEnv env({.record = false});
  Options options;
  options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
  ASSERT_TRUE(DB::create(&env, "/db", options).ok());
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
  for (const DefragmentOptions& pass :
       {DefragmentOptions{.bytes_per_step = 0}, DefragmentOptions{.gain_min = std::nan("")}}) {
    EXPECT_EQ(db->begin_defragment(pass).code(), Status::Code::invalid_argument);
    EXPECT_EQ(db->defragment(pass).code(), Status::Code::invalid_argument);
  }
  EXPECT_TRUE(db->defragment({}).ok());
}

}  // namespace
}  // namespace vtkv
