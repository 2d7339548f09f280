// SPDX-License-Identifier: LGPL-2.1-or-later
// The workloads themselves, on an engine that is a map: do they write and delete what they say, and do they
// notice an engine that loses or mixes up keys?

#include "vtkv/tool/bench/workload.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "vtkv/tool/bench/runner.h"
#include "vtkv/util/mutex.h"

namespace vtkv::bench {
namespace {

constexpr uint64_t kKeys = 3000;
constexpr size_t kValueBytes = 40;
constexpr std::chrono::milliseconds kSlowPut{110};

class MapScan final : public Scan {
 public:
  MapScan(const std::map<std::string, std::string>& entries, std::string_view lower, std::string_view upper)
      : m_entries(entries.lower_bound(std::string(lower)), entries.lower_bound(std::string(upper))) {}
  void seek_to_first() override { m_at = m_entries.begin(); }
  void seek_to_last() override { m_at = m_entries.empty() ? m_entries.end() : std::prev(m_entries.end()); }
  void seek(std::string_view target) override { m_at = m_entries.lower_bound(std::string(target)); }
  bool valid() const override { return m_at != m_entries.end(); }
  void next() override { ++m_at; }
  void previous() override { m_at = m_at == m_entries.begin() ? m_entries.end() : std::prev(m_at); }
  std::string_view key() const override { return m_at->first; }
  std::string_view value() const override { return m_at->second; }
  Status status() const override { return {}; }

 private:
  const std::map<std::string, std::string> m_entries;
  std::map<std::string, std::string>::const_iterator m_at = m_entries.end();
};

class MapEngine final : public Engine {
 public:
  Status put(std::string_view key, std::string_view value) override {
    MutexLock lock(m_lock);
    if (puts == puts_most) {
      return Status::failed("full");
    }
    if (puts % slow_put_every == slow_put_every - 1) {
      std::this_thread::sleep_for(kSlowPut);
    }
    m_entries[std::string(key)] = value;
    ++puts;
    return {};
  }
  Status put_many(const std::vector<KeyValue>& entries) override {
    for (const KeyValue& entry : entries) {
      VTKV_RETURN_IF_ERROR(put(entry.key, entry.value));
    }
    return {};
  }
  Status remove(std::string_view key) override {
    MutexLock lock(m_lock);
    m_entries.erase(std::string(key));
    return {};
  }
  Status remove_range(std::string_view begin, std::string_view end) override {
    MutexLock lock(m_lock);
    m_entries.erase(m_entries.lower_bound(std::string(begin)), m_entries.lower_bound(std::string(end)));
    return {};
  }
  Status get(std::string_view key, std::string* value) override {
    MutexLock lock(m_lock);
    const auto found = m_entries.find(std::string(key));
    if (found == m_entries.end()) {
      return Status::not_found("no such key");
    }
    *value = found->second;
    return {};
  }
  std::unique_ptr<Scan> new_scan(std::string_view lower, std::string_view upper, ScanLength) override {
    MutexLock lock(m_lock);
    return std::make_unique<MapScan>(m_entries, lower, upper);
  }
  Status settle() override { return {}; }
  Status collect_garbage() override { return {}; }
  Status defragment() override { return {}; }
  EngineReport report() override { return {}; }

  size_t size() const { return m_entries.size(); }
  bool has(uint64_t number) const { return m_entries.contains(std::string(Key(number).view())); }
  std::string& value_of(uint64_t number) { return m_entries[std::string(Key(number).view())]; }
  uint64_t puts = 0;
  uint64_t puts_most = UINT64_MAX;  // then all fail
  uint64_t slow_put_every = UINT64_MAX;

 private:
  Mutex m_lock;
  std::map<std::string, std::string> m_entries;
};

class WorkloadTest : public testing::Test {
 protected:
  WorkloadTest() : m_values(kValueBytes, 1) {
    m_settings.keys = kKeys;
    m_settings.value_bytes = kValueBytes;
    m_settings.threads = 3;
    m_settings.seconds = 0.05;
  }

  // As long as the workload says, or for so many operations.
  Status run(std::string_view name, Result* result, uint64_t operations = 0) {
    const WorkloadKind* kind = find_workload(name);
    ++m_state.version;
    Plan plan;
    const LoadContext context{m_engine, m_settings, m_state, m_values};
    VTKV_RETURN_IF_ERROR(kind->plan(context, &plan));
    if (operations > 0) {
      plan.operations = operations;
      plan.seconds = 0;
    }
    return run_plan(plan, m_engine, m_settings.threads, "/", std::string(name), 0, false, result);
  }
  Status run(std::string_view name) {
    Result ignored;
    return run(name, &ignored);
  }
  void fill() {
    ASSERT_TRUE(run("fillrandom").ok());
    m_state.keys = kKeys;
  }
  uint64_t missing() const {
    uint64_t count = 0;
    for (uint64_t number = 0; number < m_state.keys; ++number) {
      count += !m_engine.has(number);
    }
    return count;
  }

  const Values m_values;
  LoadSettings m_settings;
  DataState m_state;
  MapEngine m_engine;
};

TEST_F(WorkloadTest, EachFillWritesEveryKeyOnce) {
  m_settings.seconds = 60;  // the keys end it
  for (const char* name : {"fillseq", "fillrandom", "fillbatch", "sequential_insertion", "random_append"}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(m_engine.remove_range("", kEndOfKeys).ok());
    m_engine.puts = 0;
    Result result;
    ASSERT_TRUE(run(name, &result).ok());
    m_state.keys = kKeys;
    EXPECT_EQ(missing(), 0u);
    EXPECT_EQ(m_engine.size(), kKeys);
    EXPECT_EQ(m_engine.puts, kKeys);
    EXPECT_EQ(result[Metric::operations], static_cast<double>(kKeys));
    EXPECT_EQ(result[Metric::user_written_bytes], static_cast<double>(kKeys * (kKeyBytes + kValueBytes)));
  }
}

TEST_F(WorkloadTest, WhatPromisesAWholeDatabaseLeavesOne) {
  fill();
  for (const WorkloadKind& kind : workload_kinds()) {
    if (kind.needs == WorkloadKind::Needs::whole && kind.whole_after) {
      SCOPED_TRACE(kind.name);
      Result result;
      const Status status = run(kind.name, &result);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_GT(*result[Metric::operations], 0);
      EXPECT_EQ(missing(), 0u);
      EXPECT_EQ(m_engine.size(), m_state.keys);
    }
  }
  EXPECT_GT(m_state.keys, kKeys) << "YCSB D and E insert";
}

TEST_F(WorkloadTest, DeletesTakeWhatTheySay) {
  fill();
  m_settings.seconds = 10;
  ASSERT_TRUE(run("delete_range").ok());
  EXPECT_EQ(m_engine.size(), 0u);
  fill();
  ASSERT_TRUE(run("deleterandom").ok());
  EXPECT_EQ(m_engine.size(), 0u);
  m_settings.seconds = 0.05;
  for (const char* name : {"scan_range_deleted", "scan_point_deleted"}) {
    fill();
    ASSERT_TRUE(run(name).ok());
    EXPECT_EQ(m_engine.size(), kKeys / 2);
    EXPECT_TRUE(m_engine.has(0) && m_engine.has(kKeys - 1));
  }
}

TEST_F(WorkloadTest, PgLogKeepsItsLength) {
  m_settings.threads = 1;
  Result ignored;
  ASSERT_TRUE(run("pglog", &ignored, 64 * 1000).ok());
  EXPECT_LE(m_engine.size(), 64u * 510);
  EXPECT_GT(m_engine.size(), 64u * 450);
}

TEST_F(WorkloadTest, OperationsOfATenthOfASecondAreStalls) {
  m_settings.threads = 1;
  m_settings.seconds = 60;
  Result result;
  ASSERT_TRUE(run("fillrandom", &result).ok());
  EXPECT_EQ(result[Metric::stalls], 0.0);
  m_engine.slow_put_every = kKeys / 3;
  ASSERT_TRUE(run("fillrandom", &result).ok());
  EXPECT_EQ(result[Metric::stalls], 3.0);
}

TEST_F(WorkloadTest, ALostKeyIsNoticed) {
  fill();
  ASSERT_TRUE(m_engine.remove(Key(kKeys / 2)).ok());
  m_settings.seconds = 5;
  for (const char* name : {"readrandom", "readseq", "readreverse"}) {
    EXPECT_TRUE(run(name).is_corruption()) << name;
  }
}

TEST_F(WorkloadTest, AnotherKeysValueIsNoticed) {
  fill();
  m_engine.value_of(7) = m_engine.value_of(8);
  m_settings.seconds = 5;
  for (const char* name : {"readrandom", "readseq", "readreverse"}) {
    EXPECT_TRUE(run(name).is_corruption()) << name;
  }
}

TEST_F(WorkloadTest, AFailedInsertEndsTheRun) {
  fill();
  m_engine.puts_most = m_engine.puts + 3;
  m_settings.seconds = 60;
  EXPECT_FALSE(run("ycsb_d").ok());
}

TEST_F(WorkloadTest, AKeyWhereNoneMayBeIsNoticed) {
  fill();
  ASSERT_TRUE(m_engine.put(std::string(Key::missing(kKeys / 2).view()) + "x", "value").ok());
  EXPECT_TRUE(run("scan_empty").is_corruption());
}

}  // namespace
}  // namespace vtkv::bench
