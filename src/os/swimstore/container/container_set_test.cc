// SPDX-License-Identifier: LGPL-2.1-or-later
// Containers on the host's file system, without a database: the test plays its part.

#include "swimstore/container/container_set.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "swimstore/container/best_fit.h"
#include "vtkv/env/env_wrapper.h"

namespace swimstore {
namespace {

using vtkv::SequenceNumber;
using vtkv::Status;

constexpr uint64_t kKiB = 1024;
const std::string kMark = "a mark";

class ContainerSetTest : public testing::Test {
 protected:
  ContainerSetTest() {
    m_folder = std::filesystem::current_path() / "container_set_test.XXXXXX";
    EXPECT_NE(::mkdtemp(m_folder.data()), nullptr);
    m_options.chunk_bytes = 256 * kKiB;
    m_options.primed_ahead_bytes = 128 * kKiB;
    m_options.reserve_bytes = 64 * kKiB;
  }
  ~ContainerSetTest() override {
    m_set.reset();
    std::filesystem::remove_all(m_folder);
  }

  std::string directory() const { return m_folder + "/containers"; }

  void create() {
    const Status status = ContainerSet::create(vtkv::posix_env(), directory(), m_options);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  // As the database does: pages, then deltas, then the end of recovery.
  void open() {
    m_set.reset();
    Status status = ContainerSet::open(vtkv::posix_env(), directory(), m_options, &m_set);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(m_set->begin_recovery().ok());
    for (const auto& [key, value] : m_pages) {
      ASSERT_TRUE(m_set->load_page(key, value).ok());
    }
    for (const AllocationDelta& delta : m_log) {
      ASSERT_TRUE(m_set->replay(delta).ok());
    }
    ASSERT_TRUE(m_set->finish_recovery().ok());
  }
  void create_and_open() {
    create();
    open();
  }

  std::vector<AllocatedSlot> allocate(uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    const Status status = m_set->allocate(bytes, &slots);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return slots;
  }
  void apply(const std::vector<SlotAddress>& allocated, const std::vector<SlotAddress>& freed) {
    AllocationDelta delta;
    for (const SlotAddress& slot : allocated) {
      delta.allocated.push_back(SlotBlocks::all(slot));
    }
    for (const SlotAddress& slot : freed) {
      delta.freed.push_back(SlotBlocks::all(slot));
    }
    apply(std::move(delta));
  }
  void apply(AllocationDelta delta) {
    m_log.push_back(std::move(delta));
    m_set->apply(++m_sequence, m_log.back());
  }
  void checkpoint() {
    std::vector<vtkv::CheckpointEntry> entries;
    m_set->collect_pages(m_sequence, &entries);
    for (const auto& [key, value] : entries) {
      value ? void(m_pages[key] = *value) : void(m_pages.erase(key));
    }
    m_log.clear();
    m_set->checkpoint_durable(m_sequence);
  }
  template <class Predicate>
  void eventually(Predicate predicate) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool done = predicate();
    while (!done && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      done = predicate();
    }
    EXPECT_TRUE(done);
  }

  // Slots of 256 KiB, owned and primed as of a durable checkpoint, each with a mark on its first bytes.
  std::vector<SlotAddress> own_and_mark(int count) {
    m_options.primed_ahead_bytes = 4 * kKiB;
    create_and_open();
    std::vector<SlotAddress> slots;
    for (int i = 0; i < count; i++) {
      slots.push_back(allocate(256 * kKiB)[0].address);
      apply({slots.back()}, {});
      m_set->mark_primed({slots.back()});
      std::fstream(container_path(), std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(slots.back().index * 256 * kKiB))
          .write(kMark.data(), kMark.size());
    }
    checkpoint();
    return slots;
  }
  bool holds_mark(const SlotAddress& slot) const {
    std::string found(kMark.size(), 0);
    std::ifstream(container_path(), std::ios::binary)
        .seekg(static_cast<std::streamoff>(slot.index * 256 * kKiB))
        .read(found.data(), static_cast<std::streamsize>(found.size()));
    return found == kMark;
  }
  void free_all(const std::vector<SlotAddress>& slots) {
    for (const SlotAddress& slot : slots) {
      apply({}, {slot});
    }
    m_set->set_reuse_horizon(m_sequence);
    apply({}, {});
  }
  std::string container_path() const { return directory() + "/256K"; }

  std::string m_folder;
  ContainerOptions m_options;
  std::unique_ptr<ContainerSet> m_set;
  SequenceNumber m_sequence = 0;
  std::map<std::string, std::string> m_pages;
  std::vector<AllocationDelta> m_log;
};

TEST_F(ContainerSetTest, FirstWritesFindPrimedSlots) {
  vtkv::FileSystemInfo host;
  create_and_open();
  ASSERT_TRUE(vtkv::posix_env()->file_system_info(m_folder, &host).ok());
  EXPECT_EQ(allocate(4 * kKiB)[0].primed, host.single_flush);
  EXPECT_FALSE(allocate(1024 * kKiB)[0].primed);
}

TEST_F(ContainerSetTest, CutsLargeWritesByBestFit) {
  create_and_open();
  const std::vector<AllocatedSlot> slots = allocate(4100 * kKiB);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].address.size_class, kSizeClasses - 1);
  EXPECT_EQ(slots[0].bytes, kSlotBytesMax);
  EXPECT_EQ(slots[1].address.size_class, 0);
  EXPECT_EQ(slots[1].bytes, kBlockBytes);
}

TEST_F(ContainerSetTest, GivesNoSlotTwice) {
  create_and_open();
  std::set<SlotAddress> seen;
  for (int i = 0; i < 500; i++) {
    for (const AllocatedSlot& slot : allocate(4 * kKiB << (i % 5))) {
      EXPECT_TRUE(seen.insert(slot.address).second);
    }
  }
}

TEST_F(ContainerSetTest, ReusesAFreedSlotOnlyBelowTheHorizon) {
  create_and_open();
  const SlotAddress slot = allocate(64 * kKiB)[0].address;
  apply({slot}, {});
  apply({}, {slot});
  EXPECT_TRUE(m_set->has_waiting());
  m_set->set_reuse_horizon(m_sequence - 1);
  EXPECT_TRUE(m_set->has_waiting());
  std::vector<SlotAddress> taken;
  for (int i = 0; i < 20; i++) {
    taken.push_back(allocate(64 * kKiB)[0].address);
    EXPECT_NE(taken.back(), slot);
  }
  m_set->set_reuse_horizon(m_sequence);
  EXPECT_FALSE(m_set->has_waiting());
  eventually([&] {
    taken.push_back(allocate(64 * kKiB)[0].address);
    return taken.back() == slot;
  });
}

TEST_F(ContainerSetTest, AbandonedSlotsAreFreeAtOnce) {
  create_and_open();
  const std::vector<AllocatedSlot> slots = allocate(4096 * kKiB);
  m_set->abandon(slots);
  const auto statistics = m_set->statistics();
  EXPECT_EQ(statistics.classes[kSizeClasses - 1].free, statistics.classes[kSizeClasses - 1].slots);
}

TEST_F(ContainerSetTest, RecoversFromPagesAndDeltas) {
  create_and_open();
  std::vector<SlotAddress> owned;
  for (int i = 0; i < 40; i++) {
    const SlotAddress slot = allocate(4 * kKiB << (i % 6))[0].address;
    apply({slot}, {});
    owned.push_back(slot);
    if (i == 20) {
      checkpoint();
    }
    if (i % 7 == 3) {
      apply({}, {owned[0]});
      owned.erase(owned.begin());
    }
  }
  open();
  std::set<SlotAddress> expected(owned.begin(), owned.end());
  uint64_t owned_bytes = 0;
  for (const SlotAddress& slot : expected) {
    EXPECT_TRUE(m_set->is_owned(SlotBlocks::all(slot)));
    owned_bytes += slot_bytes(slot.size_class);
  }
  EXPECT_EQ(m_set->statistics().owned_bytes, owned_bytes);
  for (int i = 0; i < 200; i++) {
    EXPECT_FALSE(expected.contains(allocate(4 * kKiB << (i % 6))[0].address));
  }
}

TEST_F(ContainerSetTest, EverySlotIsCountedOnce) {
  create_and_open();
  for (int i = 0; i < 60; i++) {
    const SlotAddress slot = allocate(4 * kKiB << (i % 11))[0].address;
    apply({slot}, {});
    if (i % 3 == 0) {
      apply({}, {slot});
    }
  }
  eventually([&] {
    uint64_t reserved = 0;
    const ContainerStatistics statistics = m_set->statistics();
    for (const auto& it : statistics.classes) {
      EXPECT_EQ(it.owned + it.free + it.waiting + it.reserved, it.slots);
      reserved += it.reserved;  // those being primed
    }
    return reserved == 0;
  });
  EXPECT_EQ(m_set->statistics().classes[0].waiting, 2u);
}

TEST_F(ContainerSetTest, PrimesAheadOfDemand) {
  vtkv::FileSystemInfo host;
  create_and_open();
  ASSERT_TRUE(vtkv::posix_env()->file_system_info(m_folder, &host).ok());
  if (!host.single_flush) {
    GTEST_SKIP() << "nothing is gained by priming on this file system";
  }
  for (int i = 0; i < 200; i++) {
    apply({allocate(4 * kKiB)[0].address}, {});
  }
  // The last of them may have taken up to a quarter of what was filled up before: that is left for the next round.
  const uint64_t least = m_options.primed_ahead_bytes / 4 * 3;
  eventually([&] { return m_set->statistics().classes[0].primed_free * 4 * kKiB >= least; });
  EXPECT_GT(m_set->statistics().primed_bytes_total, 0u);
}

TEST_F(ContainerSetTest, FirstFillsArePrimedOnceTheyAreDurable) {
  create_and_open();
  const AllocatedSlot slot = allocate(256 * kKiB)[0];
  EXPECT_FALSE(slot.primed);
  apply({slot.address}, {});
  EXPECT_FALSE(m_set->is_primed(slot.address));
  vtkv::File* const file = m_set->file(slot.address.container());
  ASSERT_TRUE(file->write_zeros(slot.address.byte_offset(), slot.bytes).ok());
  ASSERT_TRUE(file->sync().ok());
  m_set->mark_primed({slot.address});
  EXPECT_TRUE(m_set->is_primed(slot.address));
  checkpoint();
  open();
  EXPECT_TRUE(m_set->is_primed(slot.address));
}

TEST_F(ContainerSetTest, PunchesNoPrimedSlotBeforeTheCheckpointIsDurable) {
  const std::vector<SlotAddress> slots = own_and_mark(30);
  free_all(slots);
  eventually([&] { return !m_set->is_primed(slots.back()); });  // withheld
  m_set->stop();  // the round that withheld it is over
  for (const SlotAddress& slot : slots) {
    EXPECT_TRUE(holds_mark(slot)) << slot.index;
  }
}

TEST_F(ContainerSetTest, PunchesOnceTheCheckpointIsDurable) {
  const std::vector<SlotAddress> slots = own_and_mark(30);
  const uint64_t before = std::filesystem::file_size(container_path());
  free_all(slots);
  eventually([&] {
    apply({}, {});
    checkpoint();
    return !holds_mark(slots.back()) && m_set->statistics().punched_bytes_total > 0;
  });
  EXPECT_GE(std::filesystem::file_size(container_path()), before);
  // The class grows into the holes again.
  for (int i = 0; i < 40; i++) {
    allocate(256 * kKiB);
  }
}

TEST_F(ContainerSetTest, KeepsItsGeometryWhateverTheOptionsSay) {
  create();
  m_options.chunk_bytes = 1024 * kKiB;
  open();
  allocate(32 * kKiB);
  EXPECT_EQ(m_set->statistics().classes[3].slots, 256 * kKiB / (32 * kKiB));
}

TEST_F(ContainerSetTest, NamesADamagedHeader) {
  create();
  {
    std::unique_ptr<vtkv::File> file;
    vtkv::OpenOptions options;
    options.direct = false;
    ASSERT_TRUE(vtkv::posix_env()->open_file(directory() + "/header", options, &file).ok());
    ASSERT_TRUE(file->write(40, "x", 1).ok());
  }
  const Status status = ContainerSet::open(vtkv::posix_env(), directory(), m_options, &m_set);
  EXPECT_TRUE(status.is_corruption());
  EXPECT_NE(status.message().find("containers/header"), std::string::npos);
}

TEST_F(ContainerSetTest, RefusesAnAbsurdChunk) {
  m_options.chunk_bytes = 5000;
  EXPECT_EQ(ContainerSet::create(vtkv::posix_env(), directory(), m_options).code(), Status::Code::invalid_argument);
}

// Starts a worker that falls asleep, and is called for, before its owner has it.
class QuickWorkerEnv final : public vtkv::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  std::function<void()> before_it_is_handed_over;
  int wakes = 0;

  std::unique_ptr<vtkv::Worker> start_worker(std::string, unsigned, vtkv::Worker::Step step) override {
    class Idle final : public vtkv::Worker {
     public:
      explicit Idle(int* wakes) : m_wakes(wakes) {}
      void wake() override { ++*m_wakes; }

     private:
      int* const m_wakes;
    };
    class NoQueue final : public vtkv::IoQueue {
      void submit(vtkv::IoRequest*) override { ADD_FAILURE(); }
      void reap(std::vector<vtkv::IoRequest*>*) override {}
      size_t in_flight() const override { return 0; }
    } queue;
    for (int steps = 0; steps < 1000 && step(queue).when != vtkv::NextStep::When::on_event; ++steps) {
    }
    before_it_is_handed_over();
    return std::make_unique<Idle>(&wakes);
  }
};

TEST_F(ContainerSetTest, AWorkerThatIsCalledForBeforeItsOwnerHasItIsWoken) {
  create();
  QuickWorkerEnv env(vtkv::posix_env());
  ASSERT_TRUE(ContainerSet::open(&env, directory(), m_options, &m_set).ok());
  env.before_it_is_handed_over = [&] { m_set->checkpoint_durable(1); };
  ASSERT_TRUE(m_set->begin_recovery().ok());
  ASSERT_TRUE(m_set->finish_recovery().ok());
  EXPECT_EQ(env.wakes, 1);
  m_set.reset();
}

}  // namespace
}  // namespace swimstore
