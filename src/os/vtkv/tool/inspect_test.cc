// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/inspect.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "vtkv/db.h"
#include "vtkv/testing/raw_log.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

// Takes the states of records, by their first sequence.
class RecordStatesReport final : public Report {
 public:
  void field(const char*, ReportValue) override {}
  void begin_table(const char* name, bool) override { m_records = std::string_view(name) == "records"; }
  void row(const ReportFields& fields) override {
    uint64_t sequence = 0;
    for (const auto& [name, value] : fields) {
      if (m_records && std::string_view(name) == "first_sequence") {
        sequence = std::get<uint64_t>(value);
      }
      if (m_records && std::string_view(name) == "state") {
        states[sequence] = std::get<std::string>(value);
      }
    }
  }
  void end_table() override {}
  void finish() override {}
  void fail(std::string_view) override {}

  std::map<uint64_t, std::string> states;

 private:
  bool m_records = false;
};

class InspectLogTest : public testing::Test {
 protected:
  void SetUp() override {
    Options options;
    options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    ASSERT_TRUE(DB::create(&m_env, "/db", options).ok());
    std::unique_ptr<DB> db;
    ASSERT_TRUE(DB::open(&m_env, "/db", options, &db).ok());
    ASSERT_TRUE(db->write(put("whole")).ok());
  }
  static WriteBatch put(const std::string& key) {
    WriteBatch batch;
    batch.put(key, "value");
    return batch;
  }
  // Behind what the database wrote.
  void append(const std::string& key, uint16_t flags, SequenceNumber durable_seq = 0) {
    ClosedLog log(&m_env, "/db");
    m_at = m_at.sequence == 0 ? log.end() : m_at;
    RawRecord record = raw_record(put(key));
    record.flags = flags;
    record.durable_seq = durable_seq;
    m_at = write_raw(log.pool()->find(m_at.segment_id), m_at.end_offset, log.uuid(), m_at, record);
  }
  std::map<uint64_t, std::string> states() {
    std::unique_ptr<Inspection> inspection;
    EXPECT_TRUE(Inspection::open(&m_env, "/db", &inspection).ok());
    RecordStatesReport report;
    EXPECT_TRUE(inspection->dump_log(false, report).ok());
    return report.states;
  }

  SimEnv m_env{{.record = false}};
  LogPosition m_at;
};

TEST_F(InspectLogTest, HalfABatchIsNotToBeReplayed) {
  append("a", kContinues);
  const uint64_t first = m_at.sequence;
  append("b", kContinues);
  EXPECT_EQ(states().at(first - 1), "replay");
  EXPECT_EQ(states().at(first), "half");
  EXPECT_EQ(states().at(first + 1), "half");
  append("c", 0);
  for (uint64_t sequence = first; sequence < first + 3; ++sequence) {
    EXPECT_EQ(states().at(sequence), "replay");
  }
}

TEST_F(InspectLogTest, WhatLiesBehindAGapIsStale) {
  append("a", 0);
  m_at.header_checksum ^= 1;  // of a record that is not there
  append("b", 0);
  EXPECT_EQ(states().at(m_at.sequence - 1), "replay");
  EXPECT_EQ(states().at(m_at.sequence), "stale");
}

// The next open refuses such a log: nothing of it is to be thrown away.
TEST_F(InspectLogTest, WhatSomebodyKnowsToBeDurableIsNeitherHalfNorStale) {
  append("a", kContinues);
  const uint64_t first = m_at.sequence;
  m_at.sequence++;  // the last fragment, which is not there any more
  m_at.header_checksum ^= 1;
  append("c", 0, first + 1);
  EXPECT_EQ(states().at(first), "replay");
  EXPECT_EQ(states().at(first + 2), "replay");
}

}  // namespace
}  // namespace vtkv
