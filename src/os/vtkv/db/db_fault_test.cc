// One I/O fails: nothing wrong is ever acknowledged or read, the error is told once, and the database
// opens again with everything that was acknowledged.

#include <gtest/gtest.h>

#include "vtkv/testing/kv_world.h"

namespace vtkv {
namespace {

struct Fault {
  const char* name;
  SimCall call;
  bool persistent;
};

size_t acknowledged(const SimEnv& env) {
  size_t at_least = 0;
  size_t at_most = 0;
  promised(env.trace().marks, &at_least, &at_most);
  return at_least;
}

class DbFaultTest : public testing::TestWithParam<Fault> {};

// Fails the n-th call of a kind, for n = 1, 2, ... until the script no longer reaches it.
TEST_P(DbFaultTest, NthFailureLosesNothing) {
  const Fault& fault = GetParam();
  uint64_t struck = 0;
  for (uint64_t n = 1; n < 400; ++n) {
    SimEnv env({.seed = n});
    ASSERT_TRUE(KvWorld::create(&env, {}).ok());
    KvHistory history;
    const uint64_t before = env.calls(fault.call);
    {
      KvWorld world(&env, {}, {});
      env.fail_nth(fault.call, n, Status::from_errno(EIO, "injected"), fault.persistent);
      if (world.open(0).empty()) {
        world.run(12, n);
        history = world.history();
        // A flush that failed has left writes in doubt: what is acknowledged must not depend on them.
      }
      world.close();
    }
    const bool reached = env.calls(fault.call) - before >= n;
    env.clear_faults();
    KvWorld again(&env, {}, history);
    const std::string violation = again.open(acknowledged(env));
    ASSERT_EQ(violation, "") << fault.name << " " << n;
    again.run(3, n);
    again.close();
    if (!reached) {
      break;
    }
    ++struck;
  }
  EXPECT_GT(struck, 0u);
  EXPECT_LT(struck, 399u) << "the script never ran clean";
}

INSTANTIATE_TEST_SUITE_P(, DbFaultTest,
                         testing::Values(Fault{"write_once", SimCall::write, false},
                                         Fault{"write_always", SimCall::write, true},
                                         Fault{"sync_once", SimCall::sync, false},
                                         Fault{"sync_always", SimCall::sync, true},
                                         Fault{"allocate_once", SimCall::allocate, false},
                                         Fault{"allocate_always", SimCall::allocate, true},
                                         Fault{"sync_directory_once", SimCall::sync_directory, false}),
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

// Of the log, every sector: an error that names the file, or a prefix of the history. (A damaged record at
// the very end cannot be told from one that never arrived.)
TEST(DbDamageTest, FlippedLogNeverGivesWrongData) {
  SimEnv env({.seed = 3});
  KvWorldSettings settings;
  ASSERT_TRUE(KvWorld::create(&env, settings).ok());
  KvWorld world(&env, settings, {});
  ASSERT_EQ(world.open(0), "");
  world.run(30, 3);
  const KvHistory history = world.history();
  world.close();
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
      KvWorld again(&damaged, settings, history);
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
