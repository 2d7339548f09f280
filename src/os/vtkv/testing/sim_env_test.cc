// SPDX-License-Identifier: LGPL-2.1-or-later
// What is special to the simulator; what it shares with the host is in env/env_test.cc.

#include "vtkv/testing/sim_env.h"

#include <gtest/gtest.h>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/mutex.h"

namespace vtkv {
namespace {

AlignedBuffer filled(size_t length, char value) {
  AlignedBuffer buffer;
  buffer.append(std::string(length, value));
  return buffer;
}

std::unique_ptr<File> open(Env* env, const std::string& path) {
  std::unique_ptr<File> file;
  const Status status = env->open_file(path, {.create = true}, &file);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return file;
}

Status write(File* file, uint64_t offset, size_t length, char value) {
  const AlignedBuffer data = filled(length, value);
  return file->write(offset, data.data(), data.size());
}

char first_byte(File* file, uint64_t offset) {
  AlignedBuffer data = filled(4096, '?');
  const Status status = file->read(offset, 4096, data.data());
  return status.ok() ? data.data()[0] : '!';
}

TEST(SimEnv, UnalignedDirectIoIsRefused) {
  SimEnv env;
  auto file = open(&env, "/a");
  const AlignedBuffer data = filled(8192, 'x');
  EXPECT_EQ(file->write(512, data.data(), 4096).error_number(), EINVAL);
  EXPECT_EQ(file->write(0, data.data(), 512).error_number(), EINVAL);
  EXPECT_EQ(file->write(0, data.data() + 512, 4096).error_number(), EINVAL);
}

TEST(SimEnv, NthCallFailsOnce) {
  SimEnv env;
  auto file = open(&env, "/a");
  env.fail_nth(SimCall::write, 2, Status::from_errno(EIO, "disk"), /*persistent=*/false);
  EXPECT_TRUE(write(file.get(), 0, 4096, '1').ok());
  EXPECT_EQ(write(file.get(), 0, 4096, '2').error_number(), EIO);
  EXPECT_EQ(first_byte(file.get(), 0), '1');
  EXPECT_TRUE(write(file.get(), 0, 4096, '3').ok());
  EXPECT_EQ(env.calls(SimCall::write), 3U);
}

TEST(SimEnv, PersistentFaultLastsUntilCleared) {
  SimEnv env;
  auto file = open(&env, "/a");
  env.fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "disk"), /*persistent=*/true);
  EXPECT_FALSE(file->sync().ok());
  EXPECT_FALSE(file->sync().ok());
  env.clear_faults();
  EXPECT_TRUE(file->sync().ok());
}

TEST(SimEnv, FullDiskRefusesNewSpaceOnly) {
  SimEnv env({.capacity_bytes = 16384});
  auto file = open(&env, "/a");
  EXPECT_TRUE(file->allocate(0, 8192).ok());
  EXPECT_TRUE(write(file.get(), 0, 16384, 'x').ok());
  EXPECT_TRUE(write(file.get(), 16384, 4096, 'x').is_no_space());
  EXPECT_TRUE(write(file.get(), 0, 4096, 'y').ok());
  FileSystemInfo info;
  ASSERT_TRUE(env.file_system_info("/", &info).ok());
  EXPECT_EQ(info.available_bytes, 0U);
  EXPECT_TRUE(file->punch_hole(0, 8192).ok());
  EXPECT_TRUE(file->write_zeros(16384, 8192).ok());
  EXPECT_TRUE(file->allocate(65536, 4096).is_no_space());
}

TEST(SimEnv, RemovedFileGivesItsSpaceBack) {
  SimEnv env({.capacity_bytes = 8192});
  auto a = open(&env, "/a");
  EXPECT_TRUE(write(a.get(), 0, 8192, 'x').ok());
  EXPECT_TRUE(env.remove_file("/a").ok());
  auto b = open(&env, "/b");
  EXPECT_TRUE(write(b.get(), 0, 8192, 'x').ok());
}

TEST(SimEnv, DamagedWritesReportSuccess) {
  SimEnv env;
  auto file = open(&env, "/a");
  ASSERT_TRUE(write(file.get(), 0, 16384, '0').ok());
  env.damage_nth_write(1, SimDamage::lost);
  env.damage_nth_write(2, SimDamage::misdirected);
  env.damage_nth_write(3, SimDamage::bit_flip);
  EXPECT_TRUE(write(file.get(), 0, 4096, '1').ok());
  EXPECT_EQ(first_byte(file.get(), 0), '0');
  EXPECT_TRUE(write(file.get(), 8192, 4096, '2').ok());
  EXPECT_EQ(first_byte(file.get(), 8192), '0');
  EXPECT_EQ(first_byte(file.get(), 4096), '2');
  EXPECT_TRUE(write(file.get(), 12288, 4096, '3').ok());
  AlignedBuffer data = filled(4096, '?');
  ASSERT_TRUE(file->read(12288, 4096, data.data()).ok());
  EXPECT_EQ(std::count(data.data(), data.data() + 4096, '3'), 4095);
}

TEST(SimEnv, BadRangeRefusesWhatItIsBadFor) {
  SimEnv env;
  auto file = open(&env, "/a");
  ASSERT_TRUE(write(file.get(), 0, 16384, 'a').ok());
  env.set_bad(SimBad::reads, "/a", 4096, 8192);
  env.set_bad(SimBad::writes, "/a", 8192, 12288);
  env.set_bad(SimBad::punches, "/a", 12288, 16384);
  AlignedBuffer data = filled(4096, '?');
  EXPECT_EQ(file->read(4096, 4096, data.data()).error_number(), EIO);
  EXPECT_TRUE(file->read(8192, 4096, data.data()).ok());
  EXPECT_TRUE(write(file.get(), 4096, 4096, 'b').ok());
  EXPECT_EQ(write(file.get(), 4096, 8192, 'b').error_number(), EIO);
  EXPECT_EQ(file->write_zeros(8192, 4096).error_number(), EIO);
  EXPECT_EQ(file->punch_hole(8192, 8192).error_number(), EIO);
  EXPECT_EQ(first_byte(file.get(), 8192), '\0');  // up to there it was punched
  EXPECT_EQ(first_byte(file.get(), 12288), 'a');
  env.clear_faults();
  EXPECT_EQ(first_byte(file.get(), 4096), 'b');
  EXPECT_TRUE(file->punch_hole(0, 16384).ok());
}

TEST(SimEnv, FlippedBitsAreRead) {
  SimEnv env;
  auto file = open(&env, "/a");
  ASSERT_TRUE(write(file.get(), 0, 8192, 'a').ok());
  env.flip_bits("/a", 4096, 3);
  EXPECT_EQ(first_byte(file.get(), 4096), 'a' ^ 3);
  EXPECT_EQ(first_byte(file.get(), 0), 'a');
}

// The order in which two workers' requests and steps run.
std::string history(uint64_t seed) {
  SimEnv env({.seed = seed});
  auto file = open(&env, "/a");
  AlignedBuffer data = filled(4096, 'x');
  std::string events;
  std::vector<IoRequest> requests(8);
  size_t next = 0;
  const auto step = [&](char name) {
    return [&, name, reaped = std::vector<IoRequest*>()](IoQueue& io) mutable {
      reaped.clear();
      io.reap(&reaped);
      for (const IoRequest* request : reaped) {
        events += static_cast<char>('0' + (request - requests.data()));
      }
      events += name;
      for (int i = 0; i < 2 && next < requests.size(); ++i) {
        requests[next].file = file.get();
        requests[next].offset = next * 4096;
        requests[next].buffers = {{data.data(), 4096}};
        io.submit(&requests[next++]);
      }
      return NextStep::on_event();
    };
  };
  auto a = env.start_worker("a", 4, step('a'));
  auto b = env.start_worker("b", 4, step('b'));
  env.run_until_idle();
  return events;
}

TEST(SimEnv, SameSeedSameRun) {
  std::set<std::string> histories;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(history(seed), history(seed));
    histories.insert(history(seed));
  }
  EXPECT_GT(histories.size(), 10U) << "seeds make no difference";
}

TEST(SimEnv, AdvanceFiresTimersThatComeDue) {
  SimEnv env;
  int calls = 0;
  auto worker = env.start_worker("timer", 0, [&](IoQueue&) {
    ++calls;
    return NextStep::later(std::chrono::milliseconds(10));
  });
  env.run_until_idle();
  EXPECT_EQ(calls, 1);
  env.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(calls, 1);
  env.advance(std::chrono::milliseconds(100));
  EXPECT_GE(calls, 10);
}

TEST(SimEnvDeathTest, WaitingForNothingIsADeadlock) {
  SimEnv env;
  auto signal = env.new_signal();
  Mutex mutex;
  MutexLock lock(mutex);
  EXPECT_DEATH(signal->wait(lock, [] { return false; }), "deadlock");
}

TEST(SimEnvDeathTest, BufferChangedInFlightIsCaught) {
  SimEnv env;
  auto file = open(&env, "/a");
  AlignedBuffer data = filled(4096, 'x');
  IoRequest request;
  request.file = file.get();
  request.buffers = {{data.data(), 4096}};
  auto change_in_flight = [&] {
    auto worker = env.start_worker("w", 4, [&](IoQueue& io) {
      if (io.in_flight() == 0) {
        io.submit(&request);
        data.data()[0] = 'y';
      }
      return NextStep::on_event();
    });
    env.run_until_idle();
  };
  EXPECT_DEATH(change_in_flight(), "buffer_unchanged_in_flight");
}

TEST(SimEnvDeathTest, StepThatWaitsForAnotherWorkerIsCaught) {
  SimEnv env;
  auto signal = env.new_signal();
  Mutex mutex;
  auto wait_in_step = [&] {
    auto worker = env.start_worker("w", 0, [&](IoQueue&) {
      MutexLock lock(mutex);
      signal->wait(lock, [] { return false; });
      return NextStep::on_event();
    });
    env.run_until_idle();
  };
  EXPECT_DEATH(wait_in_step(), "waiting_inside_a_step");
}

TEST(SimEnv, UnrecordedRunKeepsNothing) {
  SimEnv env({.record = false});
  for (int round = 0; round < 2000; ++round) {
    auto file = open(&env, "/a");
    ASSERT_TRUE(write(file.get(), 0, 4096, 'x').ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(env.remove_file("/a").ok());
  }
  EXPECT_LT(env.trace().ops.size(), 2000U);
  EXPECT_LT(env.trace().base.inodes.size(), 10U);
}

}  // namespace
}  // namespace vtkv
