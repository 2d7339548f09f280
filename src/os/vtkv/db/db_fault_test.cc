// SPDX-License-Identifier: LGPL-2.1-or-later
// One I/O fails: nothing wrong is ever acknowledged or read, the error is told once, and the database
// opens again with everything that was acknowledged.

#include <gtest/gtest.h>

#include <utility>

#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/kv_workload.h"
#include "vtkv/testing/sim_fault.h"

namespace vtkv {
namespace {

size_t acknowledged(const SimEnv& env) {
  size_t at_least = 0;
  size_t at_most = 0;
  promised(env.trace().marks, &at_least, &at_most);
  return at_least;
}

// What a loss of power leaves at the end: first without anything in doubt, which a failed sync has left there for ever.
std::string after_power_loss(const SimEnv& env, const KvHistory& history, uint64_t seed) {
  CrashImages images(env.trace(), {.seed = seed});
  const size_t end = images.cut_count() - 1;
  const uint64_t count = images.state_count(end);
  for (const uint64_t number : {uint64_t{0}, seed % count, count - 1}) {
    const CrashState state = images.state(end, number);
    const auto crashed = images.materialize(state);
    KvWorkload workload(crashed.get(), {}, history);
    if (std::string text = workload.open(acknowledged(env), collected(env.trace().marks)); !text.empty()) {
      return text + ", in " + state.to_string();
    }
  }
  return {};
}

class DbFaultTest : public testing::TestWithParam<SimFault> {};

// Fails the n-th call of a kind, for n = 1, 2, ... until the script no longer reaches it.
TEST_P(DbFaultTest, NthFailureLosesNothing) {
  const SimFault& fault = GetParam();
  uint64_t struck = 0;
  for (uint64_t n = 1; n < 400; ++n) {
    SimEnv env({.seed = n, .interleaved = n % 2 == 0});
    ASSERT_TRUE(KvWorkload::create(&env, {}).ok());
    KvHistory history;
    NthFailure failure(&env, fault.call, n, fault.persistent, fault.error_number);
    {
      KvWorkload workload(&env, {}, {});
      if (workload.open(0).empty()) {
        workload.run(12, n);
        history = workload.history();
        // A flush that failed has left writes in doubt: what is acknowledged must not depend on them.
      }
      workload.close();
    }
    const bool reached = failure.end();
    ASSERT_EQ(after_power_loss(env, history, n), "") << fault.name << " " << n;
    KvWorkload again(&env, {}, history);
    const std::string violation = again.open(acknowledged(env), collected(env.trace().marks));
    ASSERT_EQ(violation, "") << fault.name << " " << n;
    again.run(3, n);
    again.close();
    if (!reached) {
      break;
    }
    ++struck;
  }
  std::printf("%s: %lu calls failed, one after the other\n", fault.name, struck);
  EXPECT_LT(struck, 399u) << "the script never ran clean";
}

// A failed sync of whatever file may have lost what others wrote: one flush covers them all. After the n-th step.
TEST(DbSyncFaultTest, FailedSyncOfAnotherFileLosesNothing) {
  uint64_t struck = 0;
  for (uint64_t n = 1;; ++n) {
    SimEnv env({.seed = 3});
    ASSERT_TRUE(KvWorkload::create(&env, {}).ok());
    std::unique_ptr<File> other;
    ASSERT_TRUE(env.open_file("/other", {.create = true}, &other).ok());
    uint64_t steps = 0;
    KvHistory history;
    {
      KvWorkload workload(&env, {}, {});
      ASSERT_EQ(workload.open(0), "");
      env.set_step_observer([&] {
        if (++steps == n) {
          env.fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "injected"), false);
          EXPECT_FALSE(other->sync().ok());
        }
      });
      workload.run(40, 3);
      history = workload.history();
      env.set_step_observer({});
      workload.close();
    }
    other.reset();
    env.clear_faults();
    ASSERT_EQ(after_power_loss(env, history, n), "") << "after step " << n;
    if (steps < n) {
      break;
    }
    ++struck;
  }
  std::printf("%lu syncs failed, one after the other\n", struck);
  EXPECT_GT(struck, 20u);
}

// Making a database fails: it says so, and the directory can be used again.
TEST_P(DbFaultTest, NthFailureOfCreateLeavesADirectoryToUse) {
  const SimFault& fault = GetParam();
  for (uint64_t n = 1; n < 200; ++n) {
    SimEnv env({.seed = n});
    NthFailure failure(&env, fault.call, n, fault.persistent, fault.error_number);
    const Status status = KvWorkload::create(&env, {});
    const bool reached = failure.end();
    EXPECT_EQ(status.ok(), !reached) << fault.name << " " << n << ": " << status.to_string();
    if (!status.ok() && !env.exists("/db/manifest")) {
      if (env.exists("/slots")) {
        ASSERT_TRUE(env.remove_file("/slots").ok());
      }
      const Status again = KvWorkload::create(&env, {});
      ASSERT_TRUE(again.ok()) << fault.name << " " << n << ": " << again.to_string();
    }
    KvWorkload workload(&env, {}, {});
    ASSERT_EQ(workload.open(0), "") << fault.name << " " << n;
    workload.run(3, n);
    workload.close();
    if (!reached) {
      return;
    }
  }
  FAIL() << "create never ran clean";
}

INSTANTIATE_TEST_SUITE_P(
    , DbFaultTest,
    testing::ValuesIn(sim_faults({{"remove_once", SimCall::remove, false},
                                  {"write_without_space_once", SimCall::write, false, ENOSPC},
                                  {"write_without_space_always", SimCall::write, true, ENOSPC},
                                  {"sync_without_space_once", SimCall::sync, false, ENOSPC},
                                  {"allocate_without_space_once", SimCall::allocate, false, ENOSPC},
                                  {"allocate_without_space_always", SimCall::allocate, true, ENOSPC}})),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DbDamageTest, FailureIsToldOnceAndEndsEverything) {
  SimEnv env;
  Options options;
  options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
  int told = 0;
  options.on_fatal = [&](const Status&) { ++told; };
  ASSERT_TRUE(DB::create(&env, "/db", options).ok());
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
  WriteBatch batch;
  batch.put("a", "1");
  ASSERT_TRUE(db->write(batch).ok());
  env.fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "injected"), false);
  EXPECT_EQ(db->write(batch).code(), Status::Code::failed);
  EXPECT_EQ(db->write(batch).code(), Status::Code::failed);
  EXPECT_EQ(db->flush().code(), Status::Code::failed);
  EXPECT_EQ(db->wait_durable(db->statistics().last_sequence).code(), Status::Code::failed);
  EXPECT_EQ(told, 1);
  std::string value;
  EXPECT_TRUE(db->get("a", &value).ok());
}

// Whoever asks later is told the same as the one that met it.
TEST(DbDamageTest, TheFirstCauseIsToldWithItsNumber) {
  SimEnv env({.record = false});
  Options options;
  options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
  Status fatal;
  options.on_fatal = [&](const Status& status) { fatal = status; };
  ASSERT_TRUE(DB::create(&env, "/db", options).ok());
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
  env.run_until_idle();
  WriteBatch batch;
  batch.put("a", "1");
  env.fail_nth(SimCall::write, 1, Status::from_errno(ENOSPC, "the log's device"), false);
  env.fail_nth(SimCall::write, 2, Status::from_errno(EIO, "another one"), true);
  const uint64_t last = db->statistics().last_sequence;
  for (const Status& status : {db->write(batch), db->write(batch), db->write(batch, {.sync = false}), db->flush(),
                               db->wait_durable(last + 1), fatal}) {
    EXPECT_EQ(status.code(), Status::Code::failed);
    EXPECT_EQ(status.error_number(), ENOSPC);
    EXPECT_NE(status.message().find("the log's device"), std::string_view::npos) << status.to_string();
  }
}

TEST(DbDamageTest, FullDiskDelaysTheFlushAndLosesNothing) {
  SimEnv env;
  Options options;
  options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 4, .zone_bytes = 64 << 10};
  ASSERT_TRUE(DB::create(&env, "/db", options).ok());
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
  env.run_until_idle();
  WriteBatch batch;
  batch.put("a", std::string(1000, 'x'));
  ASSERT_TRUE(db->write(batch).ok());
  env.set_capacity(env.allocated_bytes());
  EXPECT_TRUE(db->flush().is_no_space());
  ASSERT_TRUE(db->write(batch).ok());
  env.set_capacity(uint64_t{1} << 40);
  EXPECT_TRUE(db->flush().ok());
  db.reset();
  ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
  std::string value;
  EXPECT_TRUE(db->get("a", &value).ok());
}

// The n-th read of an open fails, or gives other bytes, or none, and the same read is right when it is tried again.
// After a loss of power, at places in the history where what is acknowledged lies in the log alone, or in the tree.
TEST(DbDamageTest, OneReadDecidesNothing) {
  const std::pair<const char*, void (*)(SimEnv*, uint64_t)> faults[] = {
      {"fails",
       [](SimEnv* env, uint64_t n) { env->fail_nth(SimCall::read, n, Status::from_errno(EIO, "injected"), false); }},
      {"has other bits", [](SimEnv* env, uint64_t n) { env->misread_nth(n, SimMisread::bit_flips); }},
      {"gives zeros", [](SimEnv* env, uint64_t n) { env->misread_nth(n, SimMisread::zeros); }},
  };
  uint64_t struck = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SimEnv env({.seed = seed});
    ASSERT_TRUE(KvWorkload::create(&env, {}).ok());
    KvWorkload workload(&env, {}, {});
    ASSERT_EQ(workload.open(0), "");
    workload.run(4 * seed, seed);
    const KvHistory history = workload.history();
    CrashImages images(env.trace(), {.seed = seed});
    const CrashState state = images.state(images.cut_count() - 1, 0);
    for (const auto& [what, strike] : faults) {
      for (uint64_t n = 1;; ++n, ++struck) {
        const auto crashed = images.materialize(state);
        const uint64_t before = crashed->calls(SimCall::read);
        strike(crashed.get(), n);
        KvWorkload again(crashed.get(), {}, history);
        ASSERT_EQ(again.open(acknowledged(env), collected(env.trace().marks)), "")
            << "seed " << seed << ", read " << n << ' ' << what;
        if (crashed->calls(SimCall::read) - before < n) {
          break;
        }
      }
    }
    workload.close();
  }
  EXPECT_GT(struck, 300u);
}

// Of the log, every sector: an error that names the file, or a prefix of the history. (A damaged record at
// the very end cannot be told from one that never arrived.)
TEST(DbDamageTest, FlippedLogNeverGivesWrongData) {
  SimEnv env({.seed = 3});
  KvWorkloadSettings settings;
  ASSERT_TRUE(KvWorkload::create(&env, settings).ok());
  KvWorkload workload(&env, settings, {});
  ASSERT_EQ(workload.open(0), "");
  workload.run(30, 3);
  const KvHistory history = workload.history();
  workload.close();
  env.restart_trace();
  uint64_t refused = 0;
  uint64_t opened = 0;
  for (const std::string& path : env.files()) {
    if (path.find("/log/") == std::string::npos) {
      continue;
    }
    for (uint64_t sector = 0; sector < settings.log_segment_bytes / 512; ++sector) {
      SimEnv damaged({}, env.trace().base, env.trace().next_inode);
      damaged.flip_bits(path, sector * 512 + sector % 60, 0x10);
      KvWorkload again(&damaged, settings, history);
      const std::string text = again.open(0);
      if (text.empty()) {
        ++opened;
      } else {
        ++refused;
        EXPECT_NE(text.find("corruption: "), std::string::npos) << path << " sector " << sector << ": " << text;
        EXPECT_NE(text.find("/log/"), std::string::npos) << text;
      }
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(opened, 0u);
}

}  // namespace
}  // namespace vtkv
