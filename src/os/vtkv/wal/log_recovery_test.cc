// SPDX-License-Identifier: LGPL-2.1-or-later
// What recovery makes of logs written by hand: where it ends them, and what it refuses.

#include "vtkv/wal/log_recovery.h"

#include <gtest/gtest.h>

#include <optional>

#include "vtkv/testing/mutations.h"
#include "vtkv/testing/raw_log.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

constexpr uint64_t kSegmentBytes = 64 << 10;

WriteBatch put(const std::string& key) {
  WriteBatch batch;
  batch.put(key, "value");
  return batch;
}

WriteBatch external(uint64_t slot) {
  WriteBatch batch = put("external" + std::to_string(slot));
  batch.external_write({.container = 0, .slot = slot, .offset = 0, .length = 4096, .crc32c = 0});
  return batch;
}

// Slots with data, slots that cannot be read, and the others.
class Slots final : public ExternalStore {
 public:
  Status verify(const ExternalWrite& write, bool* matches) override {
    ++asked;
    *matches = arrived.contains(write.slot);
    return unreadable.contains(write.slot) ? Status::from_errno(EIO, "slot") : Status();
  }
  void mark_damaged(const ExternalWrite& write) override { damaged.insert(write.slot); }
  Status sync_all() override { return Status(); }

  std::set<uint64_t> arrived, unreadable, damaged;
  int asked = 0;
};

// The first sequences of the batches that are replayed.
class Replayed final : public BatchVisitor {
 public:
  Status batch(SequenceNumber first, uint32_t, std::string_view, const LogAddress&) override {
    sequences.push_back(first);
    return fails_at == first ? Status::failed("enough") : Status();
  }
  std::vector<SequenceNumber> sequences;
  SequenceNumber fails_at = 0;
};

using Sequences = std::vector<SequenceNumber>;

class LogRecoveryTest : public testing::Test {
 protected:
  explicit LogRecoveryTest(uint64_t segment_bytes = kSegmentBytes) {
    m_geometry.log_segment_bytes = segment_bytes;
    m_geometry.initial_log_segments = 3;
    m_pool = std::make_unique<SegmentPool>(&m_env, "/log", m_geometry, m_uuid);
    EXPECT_TRUE(m_pool->create().ok());
    m_first = m_pool->find(1);
  }
  // The next segment, under the next epoch.
  LogSegment* take() {
    LogSegment* segment = nullptr;
    EXPECT_TRUE(m_pool->take(0, true, &segment).ok());
    return segment;
  }
  LogPosition write(LogSegment* segment, uint64_t offset, const LogPosition& after, const RawRecord& record) {
    return write_raw(segment, offset, m_uuid, after, record);
  }
  LogPosition append(const LogPosition& after, const RawRecord& record) {
    return write(m_pool->find(after.segment_id), after.end_offset, after, record);
  }
  LogPosition append(const LogPosition& after, const WriteBatch& batch, SequenceNumber durable = 0) {
    RawRecord record = raw_record(batch);
    record.durable_seq = durable;
    return append(after, record);
  }
  LogRecovery& recovery(std::set<uint64_t> listed = {}) {
    return m_recovery.emplace(m_pool.get(), m_uuid, m_options, m_start, std::move(listed));
  }
  // The sequence at which the chain ends, all data assumed written.
  SequenceNumber structural_end() {
    LogRecovery& reader = recovery();
    EXPECT_TRUE(reader.read_chain().ok());
    return reader.recovered_end().sequence;
  }
  // Everything: the end, or an error.
  Status recover(SequenceNumber* end) {
    LogRecovery& reader = recovery();
    VTKV_RETURN_IF_ERROR(reader.read_chain());
    VTKV_RETURN_IF_ERROR(reader.report_orphans());
    VTKV_RETURN_IF_ERROR(reader.check_data());
    *end = reader.recovered_end().sequence;
    return Status();
  }
  static bool names(const Status& status, std::string_view text) {
    return status.message().find(text) != std::string_view::npos;
  }

  SimEnv m_env{{.record = false}};
  Geometry m_geometry;
  Uuid m_uuid{1, 2, 3};
  Options m_options;
  std::unique_ptr<SegmentPool> m_pool;
  LogSegment* m_first = nullptr;
  LogPosition m_start{0, 1, 1, kLogBlockBytes, 0};
  std::optional<LogRecovery> m_recovery;
};

// A fragment of a batch; more follow.
RawRecord fragment(const WriteBatch& batch) {
  RawRecord record = raw_record(batch);
  record.flags = kContinues;
  return record;
}

// An earlier recovery ended the log before a batch of which a part lies in another segment, and it went on where it
// was.
TEST_F(LogRecoveryTest, OneReadLeadsIntoNoBranchThatWasLeft) {
  const LogPosition at = append(m_start, put("a"));
  write(take(), kLogBlockBytes, at, fragment(put("left")));
  append(append(append(at, put("b")), put("c")), put("d"));
  SequenceNumber end = 0;
  for (uint64_t n = 1; n <= 20; ++n) {
    m_env.misread_nth(n, SimMisread::bit_flips);
    ASSERT_TRUE(recover(&end).ok()) << n;
    EXPECT_EQ(end, 4u) << "read " << n;
    m_env.clear_faults();
  }
}

TEST_F(LogRecoveryTest, ABatchIsTakenWithItsLastFragmentOnly) {
  LogPosition at = append(m_start, put("a"));
  const LogPosition whole = at;
  at = append(at, fragment(put("b")));
  at = append(at, fragment(put("c")));
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 1u);
  EXPECT_EQ(m_recovery->recovered_end().end_offset, whole.end_offset);
  append(at, put("d"));
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 4u);
  Replayed replayed;
  ASSERT_TRUE(m_recovery->replay(replayed).ok());
  EXPECT_EQ(replayed.sequences, (Sequences{1, 2, 3, 4}));
}

TEST_F(LogRecoveryTest, ALogOfFragmentsAloneEndsAtTheCheckpoint) {
  append(m_start, fragment(put("a")));
  SequenceNumber end = 1;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 0u);
  EXPECT_EQ(m_recovery->recovered_end().end_offset, m_start.end_offset);
}

TEST_F(LogRecoveryTest, ABatchGoesWithTheDataOfItsLastFragment) {
  Slots slots;
  slots.arrived = {1};
  m_options.external_store = &slots;
  LogPosition at = append(m_start, put("a"));
  at = append(at, fragment(external(1)));
  append(at, external(2));
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 1u);
  slots.arrived = {1, 2};
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 3u);
}

// The pipeline writes no such record: durable_seq moves over whole batches.
TEST_F(LogRecoveryTest, ABatchOfWhichSomeWasDurableIsNotLeftOut) {
  LogPosition at = append(m_start, fragment(put("a")));
  RawRecord next = fragment(put("b"));
  next.durable_seq = 1;
  append(at, next);
  SequenceNumber end = 0;
  EXPECT_TRUE(recover(&end).is_corruption());
}

TEST_F(LogRecoveryTest, ChainIsReplayedInOrder) {
  LogPosition at = append(m_start, put("a"));
  at = append(at, put("b"), 1);
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 2u);
  EXPECT_EQ(m_recovery->watermark(), 1u);
  Replayed replayed;
  EXPECT_TRUE(m_recovery->replay(replayed).ok());
  EXPECT_EQ(replayed.sequences, Sequences({1, 2}));
}

TEST_F(LogRecoveryTest, ReplayEndsWithTheVisitorsErrorAndNamesTheRecord) {
  append(append(m_start, put("a")), put("b"));
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  Replayed replayed;
  replayed.fails_at = 1;
  const Status status = m_recovery->replay(replayed);
  EXPECT_EQ(status.code(), Status::Code::failed);
  EXPECT_TRUE(names(status, "/log/000001.log, record at offset 4096")) << status.to_string();
  EXPECT_EQ(replayed.sequences, Sequences({1}));
}

TEST_F(LogRecoveryTest, RecordThatNamesAnotherBeforeItEndsTheChain) {
  LogPosition at = append(m_start, put("a"));
  at.header_checksum ^= 1;
  append(at, put("b"));
  EXPECT_EQ(structural_end(), 1u);
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(Mutation::previous_checksum_dropped);
  EXPECT_EQ(structural_end(), 2u);
}

TEST_F(LogRecoveryTest, RecordOfAnEarlierUseOfItsSegmentEndsTheChain) {
  const LogPosition at = append(m_start, put("a"));
  append(at, put("b"));
  m_first->epoch = 7;  // the segment begins anew: its records are of epoch 1
  m_start.epoch = 7;
  EXPECT_EQ(structural_end(), 0u);
}

TEST_F(LogRecoveryTest, OfTwoSegmentsThatContinueTheNewerOneIsTaken) {
  const LogPosition at = append(m_start, put("a"));
  LogSegment* const second = take();
  LogSegment* const third = take();
  for (const bool third_is_newer : {false, true}) {
    second->epoch = 5;
    third->epoch = third_is_newer ? 6 : 4;
    write(second, kLogBlockBytes, at, raw_record(put("in the second")));
    write(third, kLogBlockBytes, at, raw_record(put("in the third")));
    ASSERT_EQ(structural_end(), 2u);
    EXPECT_EQ(m_recovery->recovered_end().segment_id, third_is_newer ? third->id : second->id);
  }
}

// The mutation takes the newest segment, and is wrong when that one continues nothing.
TEST_F(LogRecoveryTest, NewestSegmentNeedNotBeTheNextOne) {
  const LogPosition at = append(m_start, put("a"));
  LogSegment* const second = take();
  LogSegment* const third = take();
  write(second, kLogBlockBytes, at, raw_record(put("b")));
  for (const uint64_t epoch : {9, 4}) {
    third->epoch = epoch;
    second->epoch = 5;
    write(second, kLogBlockBytes, at, raw_record(put("b")));
    write(third, kLogBlockBytes, {17, 1, 1, 0, 99}, raw_record(put("of nothing")));
    EXPECT_EQ(structural_end(), 2u);
    VTKV_NEEDS_MUTATIONS();
    const ScopedMutation broken(Mutation::next_segment_by_epoch_alone);
    EXPECT_EQ(structural_end(), epoch == 9 ? 1u : 2u);
  }
}

TEST_F(LogRecoveryTest, RecordThatKnewOfMoreThanThereIsIsCorruption) {
  append(m_start, put("a"));
  RawRecord orphan = raw_record(put("b"));
  orphan.durable_seq = 3;
  write(take(), kLogBlockBytes, {8, 1, 1, 0, 5}, orphan);
  LogRecovery& reader = recovery();
  ASSERT_TRUE(reader.read_chain().ok());
  EXPECT_EQ(reader.recovered_end().sequence, 1u);
  const Status status = reader.report_orphans();
  EXPECT_TRUE(status.is_corruption());
  EXPECT_TRUE(names(status, "/log/000002.log: the log ends at sequence 1")) << status.to_string();
  EXPECT_TRUE(names(status, "sequence 3 was durable")) << status.to_string();
}

TEST_F(LogRecoveryTest, SegmentOfTheCheckpointMustBeThere) {
  const LogPosition good = m_start;
  for (int wrong = 0; wrong < 3; ++wrong) {
    m_start = good;
    (wrong == 0 ? m_start.segment_id : wrong == 1 ? m_start.epoch : m_start.end_offset) = kSegmentBytes + 1;
    const Status status = recovery().read_chain();
    EXPECT_TRUE(status.is_corruption()) << wrong;
    EXPECT_TRUE(names(status, "which the newest checkpoint needs")) << status.to_string();
  }
}

TEST_F(LogRecoveryTest, OnlyASegmentThatIsNeededMustBeReadable) {
  LogSegment* const second = take();
  m_start = {0, second->id, second->epoch, kLogBlockBytes, 0};
  m_env.set_bad(SimBad::reads, m_pool->find(1)->path, 0, kSegmentBytes);
  EXPECT_TRUE(recovery().read_chain().ok());
  m_env.set_bad(SimBad::reads, second->path, 0, kSegmentBytes);
  EXPECT_EQ(recovery().read_chain().code(), Status::Code::io_error);
}

TEST_F(LogRecoveryTest, OldSegmentThatHoldsValuesIsNotRead) {
  LogSegment* const second = take();
  m_start = {0, second->id, second->epoch, kLogBlockBytes, 0};
  const auto reads = [this](std::set<uint64_t> listed) {
    const uint64_t before = m_env.calls(SimCall::read);
    EXPECT_TRUE(recovery(std::move(listed)).read_chain().ok());
    return m_env.calls(SimCall::read) - before;
  };
  EXPECT_EQ(reads({1}), reads({}) - kReadTries);  // where the log ends, another look whether it goes on there
}

// ---- what the sweep finds

TEST_F(LogRecoveryTest, RecordThatReachesPastItsSegmentIsNone) {
  LogPosition at{0, 1, 1, kSegmentBytes - kLogBlockBytes, 0};
  RawRecord record = raw_record(put("a"));
  record.more_body_bytes = 2 * kLogBlockBytes;
  append(at, record);
  m_start.end_offset = at.end_offset;
  EXPECT_EQ(structural_end(), 0u);
  EXPECT_EQ(m_recovery->greatest_epoch(), 1u);
}

TEST_F(LogRecoveryTest, RecordWithoutItsBodyEndsTheChain) {
  RawRecord record = raw_record(put("a"));
  record.more_body_bytes = 1;  // the checksum is that of one byte less
  append(m_start, record);
  EXPECT_EQ(structural_end(), 0u);
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(Mutation::body_crc_not_checked);
  EXPECT_EQ(structural_end(), 1u);
}

TEST_F(LogRecoveryTest, EpochOfATornRecordIsNotGivenAgain) {
  LogSegment* const second = take();
  second->epoch = 40;
  RawRecord record = raw_record(put("a"));
  record.more_body_bytes = 1;
  write(second, kLogBlockBytes, m_start, record);
  second->epoch = 2;  // as its header says, which is older
  EXPECT_EQ(structural_end(), 0u);
  EXPECT_EQ(m_recovery->greatest_epoch(), 40u);
}

TEST_F(LogRecoveryTest, SequenceThatOverflowsIsNoRecord) {
  m_start.sequence = UINT64_MAX - 2;
  append(m_start, raw_record(put("a"), 7));
  EXPECT_EQ(structural_end(), UINT64_MAX - 2);
}

class LogRecoveryOfLongRecordsTest : public LogRecoveryTest {
 protected:
  LogRecoveryOfLongRecordsTest() : LogRecoveryTest(4 * kLogReadBytes) {}
};

TEST_F(LogRecoveryOfLongRecordsTest, BodyThatCannotBeReadIsAnError) {
  WriteBatch batch;
  batch.put("long", std::string(2 * kLogReadBytes, 'v'));
  append(m_start, batch);
  ASSERT_EQ(structural_end(), 1u);
  m_env.fail_nth(SimCall::read, 2, Status::from_errno(EIO, "body"), true);
  EXPECT_EQ(recovery().read_chain().code(), Status::Code::io_error);
  m_env.clear_faults();
  Replayed replayed;
  ASSERT_EQ(structural_end(), 1u);
  m_env.fail_nth(SimCall::read, 1, Status::from_errno(EIO, "body"), true);
  EXPECT_EQ(m_recovery->replay(replayed).code(), Status::Code::io_error);
  EXPECT_TRUE(replayed.sequences.empty());
}

// ---- external writes

class LogRecoveryDataTest : public LogRecoveryTest {
 protected:
  LogRecoveryDataTest() { m_options.external_store = &m_slots; }
  Slots m_slots;
};

TEST_F(LogRecoveryDataTest, LogEndsBeforeTheFirstRecordWhoseDataDidNotArrive) {
  m_slots.arrived = {1, 3};
  append(append(append(m_start, external(1)), external(2)), external(3));
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 1u);
  EXPECT_EQ(m_slots.asked, 1 + kReadTries);
  Replayed replayed;
  EXPECT_TRUE(m_recovery->replay(replayed).ok());
  EXPECT_EQ(replayed.sequences, Sequences({1}));
}

TEST_F(LogRecoveryDataTest, NothingIsAskedBelowTheWatermark) {
  append(append(m_start, external(1)), put("b"), 1);  // slot 1 holds something newer
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 2u);
  EXPECT_EQ(m_slots.asked, 0);
}

TEST_F(LogRecoveryDataTest, SlotThatCannotBeReadKeepsItsRecordAndIsMarked) {
  m_slots.unreadable = {1};
  append(m_start, external(1));
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 1u);
  EXPECT_EQ(m_slots.damaged, std::set<uint64_t>({1}));
}

TEST_F(LogRecoveryDataTest, DurableRecordWithoutItsDataIsCorruption) {
  RawRecord both = raw_record(external(1), 2);  // sequences 1 and 2, of which 1 was durable
  both.body += raw_record(put("b")).body;
  both.batch_count = 2;
  reinterpret_cast<batch_frame_t*>(both.body.data())->sequence_count = 1;
  append(append(m_start, both), put("c"), 1);
  SequenceNumber end = 0;
  const Status status = recover(&end);
  EXPECT_TRUE(status.is_corruption());
  EXPECT_TRUE(names(status, "sequence 1 was durable")) << status.to_string();
}

TEST_F(LogRecoveryDataTest, WithoutAStoreItIsRefusedUnlessItIsAssumedWritten) {
  append(m_start, external(1));
  m_options.external_store = nullptr;
  SequenceNumber end = 0;
  const Status status = recover(&end);
  EXPECT_EQ(status.code(), Status::Code::invalid_argument);
  EXPECT_TRUE(names(status, "open it with its external store")) << status.to_string();
  ASSERT_EQ(structural_end(), 1u);
  EXPECT_TRUE(m_recovery->check_data(/*assume_written=*/true).ok());
  EXPECT_EQ(m_recovery->recovered_end().sequence, 1u);
  // A store that is there is asked all the same.
  m_options.external_store = &m_slots;
  ASSERT_EQ(structural_end(), 1u);
  EXPECT_TRUE(m_recovery->check_data(/*assume_written=*/true).ok());
  EXPECT_EQ(m_recovery->recovered_end().sequence, 0u);
}

TEST_F(LogRecoveryDataTest, BatchThatCannotBeDecodedIsCorruption) {
  append(m_start, raw_record(std::string_view("\x09"), 1));
  SequenceNumber end = 0;
  const Status status = recover(&end);
  EXPECT_TRUE(status.is_corruption());
  EXPECT_TRUE(names(status, "000001.log, record at offset 4096: write batch")) << status.to_string();
}

TEST_F(LogRecoveryDataTest, RecordOfSeveralCubesIsOfANewerVersion) {
  RawRecord record = raw_record(put("a"));
  record.flags = kCrossCube;
  append(m_start, record);
  SequenceNumber end = 0;
  EXPECT_EQ(recover(&end).code(), Status::Code::unsupported);
}

// The mutations keep what did not arrive: all of it, or what comes last.
TEST_F(LogRecoveryDataTest, RuleIsNeededForEveryRecord) {
  append(append(m_start, external(1)), external(2));
  SequenceNumber end = 0;
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 0u);
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation last_is_trusted(Mutation::tail_record_trusted);
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 0u);
  m_slots.arrived = {1};
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 2u);
  m_slots.arrived = {};
  const ScopedMutation all_are_trusted(Mutation::data_crc_not_checked);
  ASSERT_TRUE(recover(&end).ok());
  EXPECT_EQ(end, 2u);
}

}  // namespace
}  // namespace vtkv
