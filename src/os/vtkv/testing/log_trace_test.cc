// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/log_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/kv_workload.h"

namespace vtkv {
namespace {

const LogTrace::Files kFiles{"/db/log", "/db/manifest", "/slots"};

KvWorkloadSettings settings() {
  KvWorkloadSettings result;
  result.repeated_tags = false;
  result.large_batches = false;
  result.longest_value = 40;
  return result;
}

size_t count(const LogTrace& trace, std::string_view kind) {
  return static_cast<size_t>(std::count_if(trace.lines().begin(), trace.lines().end(),
                                           [&](const std::string& line) { return line.starts_with(kind); }));
}

// An empty database; what follows is recorded.
void create(SimEnv* env, const KvWorkloadSettings& chosen) {
  ASSERT_TRUE(KvWorkload::create(env, chosen).ok());
  env->restart_trace();
}

void open_once(SimEnv* env) {
  create(env, settings());
  KvWorkload workload(env, settings(), {});
  ASSERT_EQ(workload.open(0), "");
}

LogTrace trace_of(const SimTrace& recorded) {
  LogTrace trace(kFiles, {});
  trace.add_run(recorded, recorded.end, kDurableMark);
  return trace;
}

// An empty database that was just made, opened and closed.
TEST(LogTraceTest, OpeningWritesARecoveryRecordAndFlushesIt) {
  SimEnv env;
  open_once(&env);
  LogTrace trace = trace_of(env.trace());
  ASSERT_GE(trace.lines().size(), 2u);
  EXPECT_EQ(trace.lines()[0], "record 2 1 1 0 0 1 0 0 0 1");
  EXPECT_EQ(trace.lines()[1], "flush L0.0");
}

TEST(LogTraceTest, ARunNamesItsDataRecordsFlushesAndAcknowledgments) {
  SimEnv env;
  ASSERT_TRUE(KvWorkload::create(&env, settings()).ok());
  env.restart_trace();
  size_t acknowledged = 0;
  {
    KvWorkload workload(&env, settings(), {});
    ASSERT_EQ(workload.open(0), "");
    workload.run(30, 1);
    workload.close();
  }
  for (const SimMark& mark : env.trace().marks) {
    acknowledged += mark_kind(mark) == kDurableMark ? 1 : 0;
  }
  LogTrace trace = trace_of(env.trace());
  EXPECT_EQ(trace.beyond(), "");
  EXPECT_EQ(count(trace, "acknowledge "), acknowledged);
  EXPECT_EQ(count(trace, "acknowledge 0"), 0u);  // each in some record
  EXPECT_EQ(count(trace, "unflushed"), 0u);
  EXPECT_GT(count(trace, "data "), 0u);
  EXPECT_GT(count(trace, "checkpoint "), 0u);
  EXPECT_GT(count(trace, "record "), 3u);
}

TEST(LogTraceTest, ARecoveryRecordBeforeAllIsSyncedIsSaid) {
  SimEnv env;
  open_once(&env);
  SimTrace without_first = env.trace();
  without_first.syncs.erase(without_first.syncs.begin());
  EXPECT_EQ(count(trace_of(without_first), "unflushed"), 1u);
}

// What is on disk comes from the disk, not from what was written.
TEST(LogTraceTest, ACrashNamesWhatIsThere) {
  SimEnv env;
  open_once(&env);
  LogTrace trace = trace_of(env.trace());
  trace.add_crash(env.trace().base);  // before anything was written
  EXPECT_TRUE(trace.lines().back().starts_with("crash H0=1 ")) << trace.lines().back();
  EXPECT_EQ(trace.lines().back().find("L0.0"), std::string::npos);
  env.restart_trace();
  trace.add_crash(env.trace().base);
  EXPECT_TRUE(trace.lines().back().starts_with("crash H0=1 L0.0=2")) << trace.lines().back();
}

TEST(LogTraceTest, ARecordThatTheModelCannotHoldIsSaid) {
  SimEnv env;
  KvWorkloadSettings large = settings();
  large.longest_value = 3000;
  create(&env, large);
  {
    KvWorkload workload(&env, large, {});
    ASSERT_EQ(workload.open(0), "");
    workload.run(60, 1);
  }
  LogTrace trace(kFiles, {.records = 20});
  trace.add_run(env.trace(), env.trace().end, kDurableMark);
  EXPECT_NE(trace.beyond(), "");
}

}  // namespace
}  // namespace vtkv
