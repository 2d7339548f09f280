// SPDX-License-Identifier: LGPL-2.1-or-later
// Making and opening databases that are not as they should be: what is refused, with which reason, and what is left.

#include <gtest/gtest.h>

#include <cstring>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/db_fixture.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/raw_log.h"
#include "vtkv/testing/sim_fault.h"
#include "vtkv/tree/manifest.h"
#include "vtkv/tree/manifest_format.h"

namespace vtkv {
namespace {

bool names(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

Status open_either(bool read_only, Env* env, const std::string& directory, const Options& options,
                   std::unique_ptr<DB>* db) {
  return read_only ? DB::open_read_only(env, directory, options, db) : DB::open(env, directory, options, db);
}

WriteBatch put(const std::string& key, const std::string& value = "value") {
  WriteBatch batch;
  batch.put(key, value);
  return batch;
}

class DbOpenTest : public testing::Test {
 protected:
  DbOpenTest() {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
  }
  Status create(const std::string& directory = "/db") { return DB::create(&m_env, directory, m_options); }
  Status open() { return DB::open(&m_env, "/db", m_options, &m_db); }
  // A database with one put in its log.
  void make() {
    ASSERT_TRUE(create().ok());
    ASSERT_TRUE(open().ok());
    ASSERT_TRUE(m_db->write(put("a")).ok());
    m_db.reset();
  }
  void append(const RawRecord& record) { ClosedLog(&m_env, "/db").append(record); }
  // To be written to, or read.
  void expect_refused(Status::Code code, std::string_view why) {
    for (const bool read_only : {false, true}) {
      const Status status = open_either(read_only, &m_env, "/db", m_options, &m_db);
      EXPECT_EQ(status.code(), code) << status.to_string();
      EXPECT_TRUE(names(status, why)) << status.to_string();
    }
  }
  void touch(const std::string& path) {
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env.open_file(path, {.create = true}, &file).ok());
  }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
};

// ---- making

TEST_F(DbOpenTest, AbsurdLogsAreNotMade) {
  const Geometry good = m_options.geometry;
  for (const auto& [bytes, segments, why] :
       {std::tuple<uint64_t, uint32_t, const char*>{5000, 3, "log_segment_bytes is 5000"},
        {12288, 3, "log_segment_bytes is 12288"},
        {65536, 1, "initial_log_segments is 1"}}) {
    m_options.geometry.log_segment_bytes = bytes;
    m_options.geometry.initial_log_segments = segments;
    const Status status = create();
    EXPECT_EQ(status.code(), Status::Code::invalid_argument);
    EXPECT_TRUE(names(status, why)) << status.to_string();
    EXPECT_FALSE(m_env.exists("/db"));
  }
  m_options.geometry = good;
  m_options.geometry.zone_bytes = 5000;
  EXPECT_TRUE(names(create(), "zone_bytes is 5000"));
  EXPECT_FALSE(m_env.exists("/db/manifest"));
}

TEST_F(DbOpenTest, OnlyEmptyDirectoriesOfOthersMayBeThere) {
  ASSERT_TRUE(m_env.create_directory("/db").ok());
  ASSERT_TRUE(m_env.create_directory("/db/containers").ok());
  touch("/db/notes");
  const Status status = create();
  EXPECT_EQ(status.code(), Status::Code::invalid_argument);
  EXPECT_TRUE(names(status, "is not empty (notes)")) << status.to_string();
  EXPECT_FALSE(m_env.exists("/db/lock"));
  ASSERT_TRUE(m_env.remove_file("/db/notes").ok());
  EXPECT_TRUE(create().ok());
  EXPECT_TRUE(m_env.exists("/db/containers"));
  EXPECT_TRUE(names(create(), "holds a database already"));
}

// A monitor's store is made where there is none: what has lost its manifest must not be taken for that.
TEST_F(DbOpenTest, ADatabaseWithoutItsManifestIsNotMadeAnew) {
  ASSERT_TRUE(create().ok());
  ASSERT_TRUE(m_env.remove_file("/db/manifest").ok());
  const Status status = create();
  EXPECT_EQ(status.code(), Status::Code::invalid_argument);
  EXPECT_TRUE(names(status, "no manifest")) << status.to_string();
  EXPECT_TRUE(m_env.exists("/db/tree"));
  EXPECT_TRUE(m_env.exists("/db/log/000001.log"));
  EXPECT_TRUE(names(open(), "may be a damaged one"));
}

TEST_F(DbOpenTest, TheMarkOfAMakingGoesBeforeAnythingIsWritten) {
  m_env.fail_nth(SimCall::remove, 1, Status::from_errno(EIO, "injected"), false);
  ASSERT_FALSE(create().ok());
  ASSERT_TRUE(m_env.exists("/db/create_unfinished"));
  ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
  EXPECT_FALSE(m_env.exists("/db/create_unfinished"));
  m_db.reset();
  EXPECT_TRUE(names(create(), "holds a database already"));
}

// The leftovers of a making that failed late are removed, or the host's error is told and they can be removed later.
TEST_F(DbOpenTest, MakingItAgainTellsEveryErrorAndThenSucceeds) {
  for (const SimCall call : {SimCall::remove, SimCall::create_directory, SimCall::open, SimCall::list_directory}) {
    uint64_t n = 0;
    for (bool reached = true; reached;) {
      const std::string directory = "/db" + std::to_string(static_cast<int>(call)) + "_" + std::to_string(++n);
      m_env.fail_nth(SimCall::rename, 1, Status::from_errno(EIO, "injected"), false);
      ASSERT_FALSE(create(directory).ok());
      ASSERT_TRUE(m_env.create_directory(directory + "/containers").ok());
      NthFailure failure(&m_env, call, n);
      const Status status = create(directory);
      reached = failure.end();
      EXPECT_EQ(status.ok(), !reached) << static_cast<int>(call) << " " << n << ": " << status.to_string();
      if (!status.ok() && !m_env.exists(directory + "/manifest")) {
        ASSERT_TRUE(create(directory).ok());
      }
      EXPECT_TRUE(DB::open(&m_env, directory, m_options, &m_db).ok());
      m_db.reset();
    }
    EXPECT_GT(n, 1u);
  }
}

TEST(DbOpenHostTest, DirectoriesMayBeRelativeOrEndWithASlash) {
  char base[] = "db_open_test.XXXXXX";
  ASSERT_NE(mkdtemp(base), nullptr);
  Options options;
  options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
  const std::string plain = std::string(base) + "_plain";
  for (const std::string& directory : {std::string(base) + "/db//", plain}) {
    const Status status = DB::create(posix_env(), directory, options);
    EXPECT_TRUE(status.ok()) << status.to_string();
    std::unique_ptr<DB> db;
    EXPECT_TRUE(DB::open(posix_env(), directory, options, &db).ok());
  }
  std::filesystem::remove_all(base);
  std::filesystem::remove_all(plain);
}

// ---- opening

TEST_F(DbOpenTest, WhatIsNoDatabaseIsNotFound) {
  EXPECT_TRUE(names(open(), "there is no such directory"));
  ASSERT_TRUE(m_env.create_directory("/db").ok());
  EXPECT_TRUE(open().is_not_found());
  EXPECT_TRUE(names(open(), "holds no database"));
}

TEST_F(DbOpenTest, RecordThatKnewOfMoreIsRefused) {
  make();
  {
    ClosedLog log(&m_env, "/db");
    RawRecord orphan = raw_record(put("b"));
    orphan.durable_seq = 90;
    write_raw(log.last_segment(), log.end().end_offset + kLogBlockBytes, log.uuid(), {100, 1, 1, 0, 5}, orphan);
  }
  expect_refused(Status::Code::corruption, "sequence 90 was durable");
}

// It is one of two that a salvage has.
TEST_F(DbOpenTest, WhatIsRefusedKeepsItsTornCheckpoint) {
  make();
  std::unique_ptr<File> file;
  uint64_t bytes = 0, torn = 0;
  {
    std::unique_ptr<Manifest> manifest;
    Checkpoint newest, older;
    ASSERT_TRUE(Manifest::open(&m_env, "/db", &manifest, &newest, &older).ok());
    ASSERT_TRUE(m_env.open_file("/db/manifest", {}, &file).ok());
    ASSERT_TRUE(file->size(&bytes).ok());
    torn = (newest.epoch + 1) % 2 * (bytes / 2);
  }
  AlignedBuffer block(kLogBlockBytes), found(kLogBlockBytes);
  std::memset(block.data(), 'x', kLogBlockBytes);
  ASSERT_TRUE(file->write(torn, block.data(), kLogBlockBytes).ok());
  const auto is_torn = [&] {
    EXPECT_TRUE(file->read(torn, kLogBlockBytes, found.data()).ok());
    return std::memcmp(found.data(), block.data(), kLogBlockBytes) == 0;
  };
  ASSERT_TRUE(m_env.rename_file("/db/log/000001.log", "/db/log/000001.away").ok());
  expect_refused(Status::Code::corruption, "log segment 1, which the newest checkpoint needs");
  EXPECT_TRUE(is_torn());
  ASSERT_TRUE(m_env.rename_file("/db/log/000001.away", "/db/log/000001.log").ok());
  ASSERT_TRUE(open().ok());
  EXPECT_FALSE(is_torn());
}

TEST_F(DbOpenTest, MissingSegmentOfTheCheckpointIsRefused) {
  make();
  ASSERT_TRUE(m_env.remove_file("/db/log/000001.log").ok());
  expect_refused(Status::Code::corruption, "log segment 1, which the newest checkpoint needs");
}

TEST_F(DbOpenTest, BatchThatCannotBeDecodedIsRefused) {
  make();
  append(raw_record(std::string_view("\x09"), 1));
  expect_refused(Status::Code::corruption, "write batch: malformed operation");
}

TEST_F(DbOpenTest, DurableBatchThatCannotBeDecodedIsRefusedByReplay) {
  make();
  {
    ClosedLog log(&m_env, "/db");
    log.append(raw_record(std::string_view("\x09"), 1));
    RawRecord next = raw_record(put("b"));
    next.durable_seq = log.end().sequence;
    log.append(next);
  }
  expect_refused(Status::Code::corruption, "write batch: malformed operation");
}

TEST_F(DbOpenTest, BatchThatClaimsOtherSequencesIsRefused) {
  make();
  append(raw_record(put("b"), 2));
  expect_refused(Status::Code::corruption, "a batch of 1 operations claims 2 sequence numbers");
}

TEST_F(DbOpenTest, ExternalWritesNeedTheirStoreUnlessOneOnlyLooks) {
  make();
  WriteBatch batch = put("b");
  batch.external_write({.container = 0, .slot = 1, .offset = 0, .length = 4096, .crc32c = 0});
  append(raw_record(batch));
  EXPECT_EQ(open().code(), Status::Code::invalid_argument);
  ASSERT_TRUE(DB::open_read_only(&m_env, "/db", m_options, &m_db).ok());
  std::string value;
  EXPECT_TRUE(m_db->get("b", &value).ok());
}

// A store whose own files cannot be made durable.
class StoreThatFails final : public ExternalStore {
 public:
  Status verify(const ExternalWrite&, bool* matches) override {
    *matches = false;
    return Status();
  }
  void mark_damaged(const ExternalWrite&) override {}
  Status sync_all() override { return Status::from_errno(EIO, "the store's files"); }
};

TEST_F(DbOpenTest, RecoveryEndsOnlyWhenTheStoresFilesAreDurable) {
  make();
  StoreThatFails store;
  m_options.external_store = &store;
  EXPECT_TRUE(names(open(), "the store's files"));
  m_options.external_store = nullptr;
  EXPECT_TRUE(open().ok());
}

TEST_F(DbOpenTest, ReadingAsksTheStoreThatIsThere) {
  make();
  RawRecord both = raw_record(put("b"), 2);  // of which the first was durable, and whose data did not arrive
  WriteBatch batch = put("c");
  batch.external_write({.container = 0, .slot = 1, .offset = 0, .length = 4096, .crc32c = 0});
  both.body += raw_record(batch).body;
  both.batch_count = 2;
  reinterpret_cast<batch_frame_t*>(both.body.data())->sequence_count = 1;
  {
    ClosedLog log(&m_env, "/db");
    const SequenceNumber first = log.end().sequence + 1;
    log.append(both);
    RawRecord next = raw_record(put("d"));
    next.durable_seq = first;
    log.append(next);
  }
  StoreThatFails store;
  m_options.external_store = &store;
  expect_refused(Status::Code::corruption, "was durable; restore the database from a copy");
}

class Participant final : public CheckpointParticipant {
 public:
  Status load(const TreeReader& tree) override {
    const auto it = tree("", "z");
    for (it->seek_to_first(); it->valid(); it->next()) {
      loaded.emplace_back(it->key());
    }
    return load_status;
  }
  Status replay(SequenceNumber, std::string_view) override {
    ++replayed;
    return replay_status;
  }
  void collect(SequenceNumber, std::vector<CheckpointEntry>*) override {}
  void checkpoint_durable(SequenceNumber as_of) override { durable = as_of; }

  Status load_status, replay_status;
  std::vector<std::string> loaded;
  int replayed = 0;
  SequenceNumber durable = 0;
};

// Who waits for both manifest copies asks once, and then nobody may write for a long time.
TEST_F(DbOpenTest, ARequestedCheckpointReachesBothManifestCopies) {
  Participant participant;
  m_options.participant = &participant;
  ASSERT_TRUE(create().ok());
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(m_db->write(put("a")).ok());
  ASSERT_TRUE(m_db->flush().ok());
  ASSERT_TRUE(m_db->flush().ok());
  m_db.reset();
  ASSERT_TRUE(open().ok());
  for (const char* key : {"b", ""}) {
    if (*key != '\0') {
      ASSERT_TRUE(m_db->write(put(key)).ok());
    }
    const SequenceNumber now = m_db->statistics().last_sequence;
    m_db->request_checkpoint();
    m_env.run_until_idle();
    EXPECT_GE(participant.durable, now);
  }
  m_db.reset();
}

TEST_F(DbOpenTest, ParticipantSeesTheTreeThenTheLogAndMayRefuse) {
  ASSERT_TRUE(create().ok());
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(m_db->write(put("in the tree")).ok());
  ASSERT_TRUE(m_db->flush().ok());
  ASSERT_TRUE(m_db->write(put("in the log")).ok());
  m_db.reset();
  Participant participant;
  m_options.participant = &participant;
  participant.load_status = Status::corruption("bad page");
  EXPECT_TRUE(names(open(), "bad page"));
  EXPECT_EQ(participant.replayed, 0);
  participant.load_status = Status();
  participant.replay_status = Status::corruption("bad note");
  EXPECT_TRUE(names(open(), "bad note"));
  EXPECT_EQ(participant.replayed, 1);
  participant = Participant();
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(participant.loaded, std::vector<std::string>{"in the tree"});
  EXPECT_GT(participant.replayed, 0);
  m_db.reset();
  participant = Participant();
  ASSERT_TRUE(DB::open_read_only(&m_env, "/db", m_options, &m_db).ok());
  EXPECT_EQ(participant.loaded, std::vector<std::string>{"in the tree"});
  EXPECT_GT(participant.replayed, 0);
}

// ---- what a newer program wrote

class NewerDbTest : public DbOpenTest {
 protected:
  // As a newer program would write its next checkpoint.
  void give(const Features& features) {
    Checkpoint newest = checkpoint();
    ++newest.epoch;
    newest.features = features;
    ASSERT_TRUE(m_manifest->write(newest).ok());
    m_manifest.reset();
  }
  Checkpoint checkpoint() {
    Checkpoint newest, older;
    EXPECT_TRUE(Manifest::open(&m_env, "/db", &m_manifest, &newest, &older).ok());
    return newest;
  }
  Status open_to_read() { return DB::open_read_only(&m_env, "/db", m_options, &m_db); }

  std::unique_ptr<Manifest> m_manifest;
};

TEST_F(NewerDbTest, AnUnknownCompatFeatureIsKept) {
  make();
  const Features features{.compat = {"dots"}};
  give(features);
  ASSERT_TRUE(open().ok());
  for (int checkpoints = 0; checkpoints < 2; ++checkpoints) {
    ASSERT_TRUE(m_db->write(put("b")).ok());
    ASSERT_TRUE(m_db->flush().ok());
  }
  m_db.reset();
  EXPECT_EQ(checkpoint().features, features);
}

TEST_F(NewerDbTest, WithAnUnknownReadOnlyFeatureItIsReadAndNotWritten) {
  make();
  give({.ro_compat = {"lines"}});
  const uint64_t writes = m_env.calls(SimCall::write);
  const Status status = open();
  EXPECT_EQ(status.code(), Status::Code::unsupported);
  EXPECT_TRUE(names(status, "/db/manifest: a newer program wrote here") && names(status, ": lines. "))
      << status.to_string();
  EXPECT_EQ(m_env.calls(SimCall::write), writes);
  ASSERT_TRUE(open_to_read().ok());
  std::string value;
  EXPECT_TRUE(m_db->get("a", &value).ok());
}

TEST_F(NewerDbTest, WithAnUnknownIncompatFeatureItIsNotRead) {
  make();
  give({.compat = {"dots"}, .ro_compat = {"lines"}, .incompat = {"planes"}});
  expect_refused(Status::Code::unsupported, "cannot read without: planes; use that program");
}

TEST_F(NewerDbTest, ADatabaseWithoutFeaturesGetsNone) {
  m_options.compress_blocks = false;
  make();
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(m_db->flush().ok());
  m_db.reset();
  EXPECT_TRUE(checkpoint().features.empty());
}

// It is no record that did not arrive: the log does not end before it.
TEST_F(NewerDbTest, ARecordOfALaterVersionIsNotPassedOver) {
  make();
  RawRecord newer = raw_record(put("b"));
  newer.version = kRecordVersion + 1;
  append(newer);
  expect_refused(Status::Code::unsupported, "/db/log/000001.log, record at offset ");
}

// ---- looking

TEST_F(DbOpenTest, VerifyTellsALogThatNoLongerReachesWhatIsDurable) {
  ASSERT_TRUE(create().ok());
  ASSERT_TRUE(open().ok());
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(m_db->write(put(key)).ok());
  }
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
  m_env.flip_bits("/db/log/000001.log", 2 * kLogBlockBytes + 20, 1);  // behind the recovery record
  m_db->verify(&findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].find("log: it can be read up to sequence 1 only"), std::string::npos) << findings[0];
}

TEST_F(DbOpenTest, WithoutTheRecoveryRecordNothingIsWritten) {
  make();
  const uint64_t end = ClosedLog(&m_env, "/db").end().end_offset;
  VTKV_NEEDS_MUTATIONS();
  {
    const ScopedMutation broken(Mutation::no_recovery_record);
    ASSERT_TRUE(open().ok());
    m_db.reset();
  }
  EXPECT_EQ(ClosedLog(&m_env, "/db").end().end_offset, end);
  ASSERT_TRUE(open().ok());
  m_db.reset();
  EXPECT_EQ(ClosedLog(&m_env, "/db").end().end_offset, end + kLogBlockBytes);
}

// Power is lost again while a recovery writes its record to the last spare segment, and the host is full.
TEST(DbRecoveryTest, OneThatIsCutShortLeavesRoomForTheNext) {
  Options options;
  options.geometry = {.log_segment_bytes = 32 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
  options.checkpoint_log_bytes = 1 << 30;
  uint64_t states = 0;
  for (int batches = 1; batches <= 13; ++batches) {  // the last one fills the last but one
    SimEnv env;
    ASSERT_TRUE(DB::create(&env, "/db", options).ok());
    env.set_capacity(env.allocated_bytes());
    std::unique_ptr<DB> db;
    ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
    for (int i = 0; i < batches; ++i) {
      ASSERT_TRUE(db->write(put("key" + std::to_string(i))).ok());
    }
    db.reset();
    env.restart_trace();
    ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
    CrashImages images(env.trace(), {.samples = 20});
    for (CrashState state; images.next(&state); ++states) {
      const auto crashed = images.materialize(state);
      crashed->set_capacity(crashed->allocated_bytes());
      std::unique_ptr<DB> again;
      const Status status = DB::open(crashed.get(), "/db", options, &again);
      ASSERT_TRUE(status.ok()) << batches << " batches: " << status.to_string() << "\n" << state.to_string();
      std::string value;
      for (int i = 0; i < batches; ++i) {
        ASSERT_TRUE(again->get("key" + std::to_string(i), &value).ok()) << i;
      }
    }
  }
  std::printf("%lu states\n", states);
}

// What a session leaves in the log, the next one has to read again: it counts until a checkpoint comes.
class DbSessionsTest : public DbOpenTest {
 protected:
  void SetUp() override { ASSERT_TRUE(create().ok()); }
  // So many sessions, each with so many durable puts. The greatest size of the log.
  uint64_t log_after(int sessions, int puts) {
    uint64_t bytes = 0;
    for (int session = 0; session < sessions; ++session) {
      EXPECT_TRUE(open().ok());
      for (int i = 0; i < puts; ++i) {
        EXPECT_TRUE(m_db->write(put("key" + std::to_string(i))).ok());
      }
      m_env.run_until_idle();
      bytes = std::max(bytes, m_db->statistics().log_file_bytes);
      m_db.reset();
    }
    return bytes;
  }
};

TEST_F(DbSessionsTest, ShortOnesDoNotEnlargeTheLog) {
  const uint64_t few = log_after(12, 6);
  EXPECT_LE(log_after(100, 6), few + m_options.geometry.log_segment_bytes);
}

TEST_F(DbSessionsTest, OpensWithoutAWriteDoNotEnlargeTheLog) {
  const uint64_t few = log_after(60, 0);
  EXPECT_LE(log_after(300, 0), few + m_options.geometry.log_segment_bytes);
}

// Of values that stay in the log, too.
TEST_F(DbSessionsTest, ShortOnesWithValuesInTheLogDoNotEnlargeIt) {
  m_options.value_separation_bytes = 4;
  const uint64_t few = log_after(30, 6);
  EXPECT_LE(log_after(200, 6), few + m_options.geometry.log_segment_bytes);
}

}  // namespace
}  // namespace vtkv
