// SPDX-License-Identifier: LGPL-2.1-or-later
// Opening a cube whose tree, log or containers say what no healthy cube says.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "swimstore/cube/cube.h"
#include "swimstore/cube/slot_check.h"
#include "swimstore/format/allocation_page.h"
#include "swimstore/format/counter_record.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/raw_log.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fault.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::SimCall;
using vtkv::Status;
using vtkv::WriteBatch;

constexpr const char* kCube = "/cube";

class CubeRecoveryTest : public testing::Test {
 protected:
  CubeRecoveryTest() {
    m_options.database.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.containers.chunk_bytes = 64 << 10;
    m_options.containers.primed_ahead_bytes = 64 << 10;
    m_options.containers.reserve_bytes = 64 << 10;
    m_options.containers.maintenance = false;
    const Status status = Cube::create(&m_env, kCube, m_options);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  Status open() {
    m_cube.reset();
    return Cube::open(&m_env, kCube, m_options, &m_cube);
  }
  void append(const WriteBatch& batch) { vtkv::ClosedLog(&m_env, kCube).append(vtkv::raw_record(batch)); }
  void append_note(const CubeDelta& delta) {
    WriteBatch batch;
    batch.note(delta.encode());
    append(batch);
  }
  // Into the tree, past the cube.
  void put_into_tree(const std::string& key, const std::string& value) {
    std::unique_ptr<vtkv::DB> database;
    ASSERT_TRUE(vtkv::DB::open(&m_env, kCube, m_options.database, &database).ok());
    WriteBatch batch;
    batch.put(key, value);
    ASSERT_TRUE(database->write(std::move(batch)).ok());
    ASSERT_TRUE(database->flush().ok());
  }
  void expect_refused(Status::Code code, std::string_view why) {
    const Status status = open();
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_NE(status.message().find(why), std::string_view::npos) << status.to_string();
  }

  vtkv::SimEnv m_env{{.record = false}};
  CubeOptions m_options;
  std::unique_ptr<Cube> m_cube;
};

// ---- notes in the log

TEST_F(CubeRecoveryTest, FirstNoteThatCannotBeReplayedIsTold) {
  WriteBatch batch;
  batch.note("junk");
  batch.note(CubeDelta{.allocation = {.allocated = {SlotBlocks::all({0, 0})}}}.encode());
  append(batch);
  expect_refused(Status::Code::unsupported, "a note in the log");
}

TEST_F(CubeRecoveryTest, NotesThatContradictTheContainersAreCorruption) {
  append_note({.allocation = {.freed = {SlotBlocks::all({0, 3})}}});
  expect_refused(Status::Code::corruption, "frees the free slot 3 of the 4 KiB container");
}

TEST_F(CubeRecoveryTest, SlotsPastAContainersEndAreCorruption) {
  append_note({.allocation = {.allocated = {SlotBlocks::all({0, 1u << 20})}}});
  expect_refused(Status::Code::corruption, "past the container's end");
}

TEST_F(CubeRecoveryTest, GoodNoteIsReplayed) {
  append_note({.allocation = {.allocated = {SlotBlocks::all({0, 3})}}, .next_object_id = 17});
  ASSERT_TRUE(open().ok());
  EXPECT_TRUE(m_cube->containers().is_owned(SlotBlocks::all({0, 3})));
  EXPECT_EQ(m_cube->new_object_id(), 17u);
}

// ---- data above the watermark

TEST_F(CubeRecoveryTest, RecordOfASlotThatCannotBeIsNotThere) {
  const vtkv::ExternalWrite writes[] = {
      {.container = kSizeClasses, .slot = 0, .offset = 0, .length = 4096, .crc32c = 0},
      {.container = 0, .slot = 0, .offset = 4096, .length = 4096, .crc32c = 0},
      {.container = 0, .slot = uint64_t{1} << 41, .offset = 0, .length = 4096, .crc32c = 0},
      {.container = 0, .slot = 1u << 30, .offset = 0, .length = 4096, .crc32c = 0},
      {.container = 0, .slot = 0, .offset = 0, .length = 4096, .crc32c = 17},
  };
  for (const vtkv::ExternalWrite& write : writes) {
    WriteBatch batch;
    batch.put("key", "value");
    batch.external_write(write);
    append(batch);
    ASSERT_TRUE(open().ok());
    std::string value;
    EXPECT_TRUE(m_cube->database().get("key", &value).is_not_found());
    m_cube.reset();
  }
}

TEST_F(CubeRecoveryTest, SlotThatCannotBeReadIsDamagedAndItsRecordStays) {
  WriteBatch batch;
  batch.put("key", "value");
  batch.note(CubeDelta{.allocation = {.allocated = {SlotBlocks::all({0, 0})}}}.encode());
  batch.external_write({.container = 0, .slot = 0, .offset = 0, .length = 4096, .crc32c = 17});
  append(batch);
  m_env.set_bad(vtkv::SimBad::reads, std::string(kCube) + "/containers/4K", 0, 4096);
  ASSERT_TRUE(open().ok());
  m_env.clear_faults();
  EXPECT_TRUE(m_cube->is_damaged({0, 0}, 0));
  std::string value;
  EXPECT_TRUE(m_cube->database().get("key", &value).ok());
}

// Two slots of one record: one cannot be read, the other's data did not arrive, so the record goes. And a record that
// stays, followed by one that frees its slot.
TEST_F(CubeRecoveryTest, DamageMarkGoesWithItsCause) {
  const auto mark_stays = [this] {
    WriteBatch freed;
    freed.note(CubeDelta{.allocation = {.allocated = {SlotBlocks::all({0, 2})}}}.encode());
    freed.external_write({.container = 0, .slot = 2, .offset = 0, .length = 4096, .crc32c = 17});
    WriteBatch frees;
    frees.note(CubeDelta{.allocation = {.freed = {SlotBlocks::all({0, 2})}}}.encode());
    WriteBatch dropped;
    dropped.note(CubeDelta{.allocation = {.allocated = {SlotBlocks::all({0, 0}), SlotBlocks::all({1, 0})}}}.encode());
    dropped.external_write({.container = 0, .slot = 0, .offset = 0, .length = 4096, .crc32c = 17});
    dropped.external_write({.container = 1, .slot = 0, .offset = 0, .length = 8192, .crc32c = 17});
    for (const WriteBatch& batch : {freed, frees, dropped}) {
      append(batch);
    }
    m_env.set_bad(vtkv::SimBad::reads, std::string(kCube) + "/containers/4K", 0, 4 * 4096);
    EXPECT_TRUE(open().ok());
    m_env.clear_faults();
    EXPECT_FALSE(m_cube->containers().is_owned(SlotBlocks::all({0, 0})));
    EXPECT_FALSE(m_cube->containers().is_owned(SlotBlocks::all({0, 2})));
    const bool stays = m_cube->is_damaged({0, 0}, 0) || m_cube->is_damaged({0, 2}, 0);
    m_cube.reset();
    return stays;
  };
  if (vtkv::kCanMutate) {
    const vtkv::ScopedMutation broken(vtkv::Mutation::damage_mark_kept);
    EXPECT_TRUE(mark_stays());
  }
  EXPECT_FALSE(mark_stays());
}

TEST_F(CubeRecoveryTest, CheckOfASlotReadsItSliceBySliceAndTellsErrors) {
  const uint64_t length = 600 << 10;
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env.open_file("/file", {.create = true}, &file).ok());
  vtkv::AlignedBuffer buffer(1 << 20);
  std::memset(buffer.data(), 'x', 1 << 20);
  ASSERT_TRUE(file->write(0, buffer.data(), 1 << 20).ok());
  const vtkv::ExternalWrite write{.container = 8,
                                  .slot = 0,
                                  .offset = 4096,
                                  .length = length,
                                  .crc32c = vtkv::crc32c(buffer.data() + 4096, length)};
  bool matches = false;
  EXPECT_TRUE(check_slot(*file, write, &matches).ok());
  EXPECT_TRUE(matches);
  for (uint64_t n = 1; n <= 3; ++n) {
    m_env.fail_nth(SimCall::read, n, Status::from_errno(EIO, "bad sector"), false);
    EXPECT_EQ(check_slot(*file, write, &matches).code(), Status::Code::io_error) << n;
    EXPECT_FALSE(matches);
  }
}

// ---- entries of the tree

TEST_F(CubeRecoveryTest, PageThatCannotBeDecodedIsCorruption) {
  put_into_tree(std::string(1, kAllocationKeyPrefix) + "junk", "");
  expect_refused(Status::Code::corruption, "an allocation page in the tree is malformed");
}

TEST_F(CubeRecoveryTest, CounterThatCannotBeDecodedIsCorruption) {
  put_into_tree(std::string(1, kCounterKeyPrefix) + "junk", "");
  expect_refused(Status::Code::corruption, "a counter in the tree is malformed");
}

TEST_F(CubeRecoveryTest, ContainerThatIsTooLargeForItsHostIsCorruption) {
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env.open_file(std::string(kCube) + "/containers/4M", {}, &file).ok());
  m_env.set_capacity(64 << 20);
  ASSERT_TRUE(file->truncate(1 << 30).ok());
  file.reset();
  expect_refused(Status::Code::corruption, "more than could ever be allocated here");
}

// ---- the host

TEST_F(CubeRecoveryTest, EveryFailureOfTheHostIsToldAndTheNextOpenSucceeds) {
  for (const SimCall call : {SimCall::open, SimCall::read, SimCall::write, SimCall::sync, SimCall::sync_directory,
                             SimCall::size, SimCall::list_directory, SimCall::file_system_info}) {
    uint64_t n = 0;
    for (bool reached = true; reached;) {
      vtkv::NthFailure failure(&m_env, call, ++n);
      const Status status = open();
      reached = failure.end();
      EXPECT_TRUE(reached || status.ok()) << status.to_string();
      m_cube.reset();
      ASSERT_TRUE(open().ok());
      m_cube.reset();
      ASSERT_LT(n, 200u);
    }
    EXPECT_GT(n, 1u);
  }
}

TEST_F(CubeRecoveryTest, CreationTellsWhatItRefuses) {
  EXPECT_EQ(Cube::create(&m_env, kCube, m_options).code(), Status::Code::invalid_argument);  // there is one
  m_options.containers.chunk_bytes = 5000;
  const Status status = Cube::create(&m_env, "/other", m_options);
  EXPECT_EQ(status.code(), Status::Code::invalid_argument);
  EXPECT_NE(status.message().find("chunk_bytes 5000"), std::string_view::npos);
}

TEST_F(CubeRecoveryTest, CallersHorizonIsTold) {
  vtkv::SequenceNumber told = 0;
  m_options.database.on_reuse_horizon = [&](vtkv::SequenceNumber horizon) { told = horizon; };
  ASSERT_TRUE(open().ok());
  for (int i = 0; i < 3; ++i) {
    WriteBatch batch;
    batch.put("key", "value");
    ASSERT_TRUE(m_cube->database().write(std::move(batch)).ok());
  }
  m_env.run_until_idle();
  EXPECT_GT(told, 0u);
  m_cube.reset();
}

// ---- claims of a repair

TEST_F(CubeRecoveryTest, OnlyAFreeSlotOfAContainerCanBeClaimed) {
  ASSERT_TRUE(open().ok());
  ContainerSet& containers = m_cube->containers();
  std::vector<SlotBlocks> claimed;
  EXPECT_EQ(containers.claim(SlotBlocks::all({kSizeClasses, 0}), &claimed).code(), Status::Code::invalid_argument);
  EXPECT_EQ(containers.claim(SlotBlocks::all({0, 1u << 30}), &claimed).code(), Status::Code::invalid_argument);
  EXPECT_TRUE(containers.claim(SlotBlocks::all({0, 3}), &claimed).ok());
  EXPECT_EQ(containers.claim(SlotBlocks::all({0, 3}), &claimed).code(), Status::Code::busy);
  m_cube.reset();
}

// A chunk of which nothing is owned or primed was punched: its space is asked for again.
TEST_F(CubeRecoveryTest, ClaimInAChunkWithoutSpaceAsksTheHost) {
  ASSERT_TRUE(open().ok());
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(m_cube->containers().allocate(4 << 20, &slots).ok());  // grows the container of 4 MiB slots
  const SlotAddress slot = slots.front().address;
  uint64_t bytes = 0;
  vtkv::File* const file = m_cube->containers().file(slot.container());
  ASSERT_TRUE(file->size(&bytes).ok() && file->punch_hole(0, bytes).ok());
  std::vector<SlotBlocks> claimed;
  ASSERT_TRUE(open().ok());
  m_env.fail_nth(SimCall::allocate, 1, Status::from_errno(ENOSPC, "full"), false);
  EXPECT_TRUE(m_cube->containers().claim(SlotBlocks::all(slot), &claimed).is_no_space());
  EXPECT_TRUE(m_cube->containers().claim(SlotBlocks::all(slot), &claimed).ok());
  EXPECT_EQ(m_cube->containers().claim(SlotBlocks::all(slot), &claimed).code(), Status::Code::busy);
  m_cube.reset();
}

}  // namespace
}  // namespace swimstore
