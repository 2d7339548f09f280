// SPDX-License-Identifier: LGPL-2.1-or-later
// A slot write that fails ends the cube, and is not met again: the slot is known to be bad from then on.

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "swimstore/container/quarantine.h"
#include "swimstore/cube/cube.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::SimBad;
using vtkv::SimEnv;
using vtkv::Status;

constexpr const char* kCube = "/cube";
constexpr const char* kQuarantine = "/cube/containers/quarantine";

class Write final : public CubeTransaction {
 public:
  bool done = false;
  Status status;
  vtkv::AlignedBuffer bytes;

 private:
  void committed(const Status& it) override {
    status = it;
    done = true;
  }
};

class CubeQuarantineTest : public testing::Test {
 protected:
  CubeQuarantineTest() {
    m_options.database.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.database.single_flush = true;
    m_options.database.on_fatal = [this](const Status& status) { m_fatal = status; };
    m_options.containers.chunk_bytes = 64 << 10;
    m_options.containers.primed_ahead_bytes = 64 << 10;
    m_options.containers.reserve_bytes = 64 << 10;
    EXPECT_TRUE(Cube::create(&m_env, kCube, m_options).ok());
    EXPECT_TRUE(m_env.sync_directory("/").ok());
    open(&m_env);
  }
  ~CubeQuarantineTest() override { m_cube.reset(); }

  void open(SimEnv* env) {
    m_cube.reset();
    m_fatal = {};
    m_used = env;
    const Status status = Cube::open(env, kCube, m_options, &m_cube);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  // One transaction of so many slots of 4 KiB; *slots: those. False: it failed.
  bool write(uint64_t count, std::vector<SlotAddress>* slots, const std::vector<SlotAddress>& freed = {}) {
    Write write;
    write.bytes = vtkv::AlignedBuffer(kBlockBytes);
    std::memset(write.bytes.data(), 'w', kBlockBytes);
    for (uint64_t i = 0; i < count; i++) {
      std::vector<AllocatedSlot> one;
      EXPECT_TRUE(m_cube->containers().allocate(kBlockBytes, &one).ok());
      write.add_slot_write(m_cube->containers(), one[0], 0, {{write.bytes.data(), kBlockBytes}}, kBlockBytes,
                           vtkv::crc32c(write.bytes.data(), kBlockBytes));
      write.delta.allocation.allocated.push_back(one[0].blocks());
      slots->push_back(one[0].address);
    }
    for (const SlotAddress& slot : freed) {
      write.delta.allocation.freed.push_back(SlotBlocks::all(slot));
    }
    m_cube->submit(&write);
    for (int i = 0; i < 100 && !write.done; i++) {
      m_used->advance(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(write.done);
    return write.status.ok();
  }
  void make_bad(SimEnv* env, uint64_t first, uint64_t count) {
    env->set_bad(SimBad::writes, "/cube/containers/4K", first * kBlockBytes, (first + count) * kBlockBytes);
  }
  // Fails one write with slots 5 and 6 of 4 KiB in it.
  void meet_bad_slots() {
    make_bad(&m_env, 5, 2);
    std::vector<SlotAddress> slots;
    ASSERT_FALSE(write(12, &slots));
    ASSERT_FALSE(m_fatal.ok());
  }
  // Every slot of the first chunk is taken and given back, twice. How often was a bad one among them?
  uint64_t times_bad_slots_are_used() {
    uint64_t times = 0;
    for (int round = 0; round < 2; round++) {
      std::vector<SlotAddress> slots;
      EXPECT_TRUE(write(40, &slots) || !m_fatal.ok());
      for (const SlotAddress& slot : slots) {
        times += slot == SlotAddress{0, 5} || slot == SlotAddress{0, 6};
      }
      if (!m_fatal.ok()) {
        return times;
      }
      std::vector<SlotAddress> none;
      EXPECT_TRUE(write(0, &none, slots));
      m_used->advance(std::chrono::seconds(2));
    }
    return times;
  }

  SimEnv m_env;
  SimEnv* m_used = &m_env;
  CubeOptions m_options;
  Status m_fatal;
  std::unique_ptr<Cube> m_cube;
};

const std::vector<SlotAddress> kBadSlots = {{0, 5}, {0, 6}};

TEST_F(CubeQuarantineTest, BadSlotIsNamedAndNotMetAgain) {
  meet_bad_slots();
  EXPECT_NE(m_fatal.message().find("2 slots of /cube/containers/4K from slot 5 on quarantined"), std::string::npos)
      << m_fatal.to_string();
  for (int life = 0; life < 3; life++) {
    open(&m_env);
    EXPECT_EQ(m_cube->containers().quarantined(), kBadSlots);
    EXPECT_EQ(times_bad_slots_are_used(), 0u);
    EXPECT_TRUE(m_fatal.ok()) << m_fatal.to_string();
  }
}

TEST_F(CubeQuarantineTest, AForgottenQuarantineIsNoticed) {
  meet_bad_slots();
  VTKV_NEEDS_MUTATIONS();
  const vtkv::ScopedMutation broken(vtkv::Mutation::quarantine_forgotten);
  open(&m_env);
  EXPECT_GT(times_bad_slots_are_used(), 0u);
  EXPECT_FALSE(m_fatal.ok());
}

// Whatever the power's failure takes: it was durable before the process ended.
TEST_F(CubeQuarantineTest, IsDurableWhenTheProcessEnds) {
  m_env.restart_trace();
  meet_bad_slots();
  vtkv::CrashImages images(m_env.trace(), {});
  const size_t end = images.cut_count() - 1;
  for (const uint64_t state : {uint64_t{0}, images.state_count(end) - 1}) {
    const auto crashed = images.materialize(images.state(end, state));
    make_bad(crashed.get(), 5, 2);
    open(crashed.get());
    EXPECT_EQ(m_cube->containers().quarantined(), kBadSlots);
    EXPECT_EQ(times_bad_slots_are_used(), 0u);
    m_cube.reset();
  }
}

// It may have been written before it went bad.
TEST_F(CubeQuarantineTest, OwnedSlotIsReadAsEverAndIsNotFreeAfterwards) {
  std::vector<SlotAddress> slots;
  ASSERT_TRUE(write(12, &slots));
  ASSERT_TRUE(m_cube->database().flush().ok());
  m_cube.reset();
  {
    std::unique_ptr<ContainerSet> containers;
    ASSERT_TRUE(ContainerSet::open(&m_env, "/cube/containers", m_options.containers, &containers).ok());
    vtkv::AlignedBuffer bytes(2 * kBlockBytes);
    bytes.resize(2 * kBlockBytes);
    std::memset(bytes.data(), 'w', bytes.size());
    make_bad(&m_env, 5, 2);
    EXPECT_NE(containers->note_failed_write(containers->file(0), 5 * kBlockBytes, {{bytes.data(), bytes.size()}}), "");
  }
  open(&m_env);
  for (const SlotAddress& slot : kBadSlots) {
    EXPECT_TRUE(m_cube->containers().is_owned(SlotBlocks::all(slot)));
    vtkv::AlignedBuffer bytes(kBlockBytes);
    EXPECT_TRUE(m_cube->containers().file(0)->read(slot.byte_offset(), kBlockBytes, bytes.data()).ok());
    EXPECT_EQ(bytes.data()[0], 'w');
  }
  std::vector<SlotAddress> none;
  ASSERT_TRUE(write(0, &none, slots));
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(times_bad_slots_are_used(), 0u);
  EXPECT_TRUE(m_fatal.ok());
}

// A write that fails once and not again says nothing about its slot.
TEST_F(CubeQuarantineTest, PassingErrorQuarantinesNothing) {
  m_env.fail_nth(vtkv::SimCall::write, 1, Status::from_errno(EIO, "hiccup"), false);
  std::vector<SlotAddress> slots;
  ASSERT_FALSE(write(1, &slots));
  EXPECT_NE(m_fatal.message().find("none was refused"), std::string::npos) << m_fatal.to_string();
  open(&m_env);
  EXPECT_TRUE(m_cube->containers().quarantined().empty());
}

// ---- the file

TEST_F(CubeQuarantineTest, StoresOfOlderProgramsGetTheFile) {
  m_cube.reset();
  ASSERT_TRUE(m_env.remove_file(kQuarantine).ok());
  open(&m_env);
  EXPECT_TRUE(m_env.exists(kQuarantine));
  meet_bad_slots();
  open(&m_env);
  EXPECT_EQ(m_cube->containers().quarantined(), kBadSlots);
}

TEST_F(CubeQuarantineTest, OneDamagedCopyIsNoHarmAndTwoAreTold) {
  meet_bad_slots();  // its list is in the second copy
  m_cube.reset();
  m_env.flip_bits(kQuarantine, 100, 1);
  open(&m_env);
  EXPECT_EQ(m_cube->containers().quarantined(), kBadSlots);
  m_cube.reset();
  m_env.flip_bits(kQuarantine, 4096 + 100, 1);
  const Status status = Cube::open(&m_env, kCube, m_options, &m_cube);
  EXPECT_TRUE(status.is_corruption()) << status.to_string();
  EXPECT_NE(status.message().find("remove the file"), std::string::npos);
}

TEST_F(CubeQuarantineTest, FullListSaysSo) {
  m_cube.reset();
  Quarantine quarantine(&m_env, "/cube/containers");
  std::vector<SlotAddress> many;
  for (uint64_t i = 0; i <= QuarantineRecord::kSlotsMax; i++) {
    many.push_back({3, i});
  }
  ASSERT_TRUE(quarantine.open({}).ok());
  ASSERT_TRUE(quarantine.add({{3, 7}}).ok());
  const Status status = quarantine.add(many);
  EXPECT_TRUE(status.is_no_space());
  EXPECT_NE(status.message().find("replace the disk"), std::string::npos);
  EXPECT_EQ(quarantine.slots().size(), QuarantineRecord::kSlotsMax);
}

}  // namespace
}  // namespace swimstore
