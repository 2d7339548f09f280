// SPDX-License-Identifier: LGPL-2.1-or-later
// A cube on the host's file system.

#include "swimstore/cube/cube.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "swimstore/cube/damage_list.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {
namespace {

using vtkv::AlignedBuffer;
using vtkv::Status;

constexpr uint64_t kKiB = 1024;

class TestTransaction final : public CubeTransaction {
 public:
  Status wait() {
    std::unique_lock lock(m_lock);
    m_changed.wait(lock, [this] { return m_done; });
    return m_status;
  }
  AlignedBuffer data;

 private:
  void committed(const Status& status) override {
    std::lock_guard lock(m_lock);
    m_status = status;
    m_done = true;
    m_changed.notify_all();
  }
  std::mutex m_lock;
  std::condition_variable m_changed;
  bool m_done = false;
  Status m_status;
};

class CubeTest : public testing::Test {
 protected:
  CubeTest() {
    m_folder = std::filesystem::current_path() / "cube_test.XXXXXX";
    EXPECT_NE(::mkdtemp(m_folder.data()), nullptr);
    vtkv::FileSystemInfo host;
    EXPECT_TRUE(vtkv::posix_env()->file_system_info(m_folder, &host).ok());
    m_options.database.single_flush = host.single_flush;
    m_options.database.geometry = {.log_segment_bytes = 1 << 20, .initial_log_segments = 3, .zone_bytes = 1 << 20};
    m_options.containers.chunk_bytes = 1 << 20;
    m_options.containers.primed_ahead_bytes = 1 << 20;
    m_options.containers.reserve_bytes = 1 << 20;
  }
  ~CubeTest() override {
    m_cube.reset();
    std::filesystem::remove_all(m_folder);
  }

  std::string directory() const { return m_folder + "/cube"; }
  void open() {
    m_cube.reset();
    const Status status = Cube::open(vtkv::posix_env(), directory(), m_options, &m_cube);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void create_and_open() {
    const Status status = Cube::create(vtkv::posix_env(), directory(), m_options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    open();
  }
  // Writes `bytes` of `fill` to new slots, in one durable transaction that frees `freed`.
  std::vector<AllocatedSlot> write(uint64_t bytes, char fill, std::vector<SlotBlocks> freed = {}) {
    TestTransaction transaction;
    std::vector<AllocatedSlot> slots;
    if (bytes > 0) {
      transaction.data = AlignedBuffer(bytes);
      transaction.data.resize(bytes);
      std::memset(transaction.data.data(), fill, bytes);
      EXPECT_TRUE(m_cube->containers().allocate(bytes, &slots).ok());
    }
    char* at = transaction.data.data();
    for (const AllocatedSlot& slot : slots) {
      transaction.add_slot_write(m_cube->containers(), slot, 0, {{at, slot.bytes}}, slot.bytes,
                                 vtkv::crc32c(at, slot.bytes));
      transaction.delta.allocation.allocated.push_back(SlotBlocks::all(slot.address));
      at += slot.bytes;
    }
    transaction.delta.allocation.freed = std::move(freed);
    transaction.delta.pools[7] = {0, static_cast<int64_t>(bytes), 0, 1};
    transaction.delta.next_object_id = m_cube->new_object_id() + 1;
    transaction.batch.put("o" + std::string(1, fill), "here");
    m_cube->submit(&transaction);
    const Status status = transaction.wait();
    EXPECT_TRUE(status.ok()) << status.to_string();
    return slots;
  }
  char first_byte(const AllocatedSlot& slot) {
    AlignedBuffer buffer(kBlockBytes);
    buffer.resize(kBlockBytes);
    const Status status = m_cube->containers()
                              .file(slot.address.size_class)
                              ->read(slot.address.byte_offset(), kBlockBytes, buffer.data());
    EXPECT_TRUE(status.ok()) << status.to_string();
    return *buffer.data();
  }

  std::string m_folder;
  CubeOptions m_options;
  std::unique_ptr<Cube> m_cube;
};

TEST_F(CubeTest, KeepsWhatWasCommittedOverAReopening) {
  create_and_open();
  const auto small = write(4 * kKiB, 'a');
  const auto large = write(300 * kKiB, 'b');
  for (int checkpointed = 0; checkpointed < 2; checkpointed++) {
    open();
    std::string value;
    EXPECT_TRUE(m_cube->database().get("oa", &value).ok());
    EXPECT_EQ(first_byte(small[0]), 'a');
    for (const AllocatedSlot& slot : large) {
      EXPECT_EQ(first_byte(slot), 'b');
      EXPECT_TRUE(m_cube->containers().is_owned(slot.blocks()));
    }
    EXPECT_EQ(m_cube->pool_usage()[7].stored, static_cast<int64_t>(304 * kKiB));
    EXPECT_EQ(m_cube->pool_usage()[7].objects, 2);
    EXPECT_EQ(m_cube->new_object_id(), 3u);
    EXPECT_TRUE(m_cube->database().flush().ok());
  }
}

TEST_F(CubeTest, FreedSlotsBecomeFreeWhenNothingElseHappens) {
  create_and_open();
  const auto slots = write(64 * kKiB, 'a');
  write(0, 'b', {slots[0].blocks()});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (m_cube->containers().has_waiting() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(m_cube->containers().has_waiting());
}

TEST_F(CubeTest, AFirstFillThatFallsALittleShortLeavesThePrimedSlotBehind) {
  m_options.database.single_flush = true;
  create_and_open();
  const auto slots = write(116 * kKiB, 'a');
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_FALSE(slots[0].primed);
  EXPECT_TRUE(m_cube->containers().is_primed(slots[0].address));
}

TEST_F(CubeTest, IsInUseByOneAtATime) {
  create_and_open();
  std::unique_ptr<Cube> second;
  EXPECT_EQ(Cube::open(vtkv::posix_env(), directory(), m_options, &second).code(), Status::Code::busy);
}

TEST_F(CubeTest, NamesWhatIsMissing) {
  create_and_open();
  m_cube.reset();
  std::filesystem::remove(directory() + "/containers/header");
  const Status status = Cube::open(vtkv::posix_env(), directory(), m_options, &m_cube);
  EXPECT_TRUE(status.is_not_found());
  EXPECT_NE(status.message().find("containers/header"), std::string::npos);
}

TEST_F(CubeTest, NoTransactionIsLostWhenManyThreadsSubmit) {
  create_and_open();
  std::vector<std::thread> threads;
  std::mutex lock;
  std::vector<std::pair<AllocatedSlot, char>> written;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      std::vector<AllocatedSlot> mine;
      for (int i = 0; i < 50; i++) {
        std::vector<SlotBlocks> freed;
        if (i % 2 == 1) {
          freed.push_back(SlotBlocks::all(mine[0].address));
        }
        mine = write(4 * kKiB << (i % 3), static_cast<char>('a' + t), freed);
      }
      std::lock_guard guard(lock);
      written.emplace_back(mine[0], static_cast<char>('a' + t));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  open();
  for (const auto& [slot, fill] : written) {
    EXPECT_EQ(first_byte(slot), fill);
    EXPECT_TRUE(m_cube->containers().is_owned(slot.blocks()));
  }
  EXPECT_EQ(m_cube->pool_usage()[7].objects, 200);
}

TEST(DamageList, ForgetsASlotThatChangesHands) {
  DamageList damage;
  const SlotAddress slot{4, 17};
  EXPECT_FALSE(damage.contains(slot, 2));
  damage.add({4, 17, 2 * kBlockBytes, 3 * kBlockBytes, 0});
  EXPECT_FALSE(damage.contains(slot, 1));
  EXPECT_TRUE(damage.contains(slot, 2));
  EXPECT_TRUE(damage.contains(slot, 4));
  EXPECT_FALSE(damage.contains(slot, 5));
  EXPECT_FALSE(damage.contains({4, 18}, 2));
  damage.apply({{}, {SlotBlocks::all(slot)}});
  EXPECT_FALSE(damage.contains(slot, 2));
}

TEST(DamageList, ForgetsTheBlocksOfASlotThatAreFreed) {
  DamageList damage;
  const SlotAddress slot{4, 17};
  damage.add({4, 17, 2 * kBlockBytes, 6 * kBlockBytes, 0});
  damage.apply({{}, {{slot, 4, 2, 16}}});
  for (uint32_t block = 0; block < 16; block++) {
    EXPECT_EQ(damage.contains(slot, block), block == 2 || block == 3 || block == 6 || block == 7) << block;
  }
  // As a fragment of the slot it has another name.
  EXPECT_TRUE(damage.contains({1, 17 << 3 | 3, 3}, 0));
  EXPECT_FALSE(damage.contains({1, 17 << 3 | 2, 3}, 0));
}

}  // namespace
}  // namespace swimstore
