// SPDX-License-Identifier: LGPL-2.1-or-later
// What every Env promises, asked of each of them: the host with io_uring, the host without, the simulator.
// tidy: long because the fixture, which every test here takes, has an Env of each kind.

#include "vtkv/env.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/posix/posix_env.h"
#include "vtkv/env/read_all.h"
#include "vtkv/env/shared_threads.h"
#include "vtkv/env/small_file.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {
namespace {

// An Env and an empty folder in it. The host's folder is in the working directory: a build folder is on
// a disk, where /tmp may have no direct I/O.
struct EnvUnderTest {
  std::unique_ptr<Env> base;  // of env, if it has one
  std::unique_ptr<Env> env;
  std::string folder;
  bool on_host = true;
};

EnvUnderTest host_env(bool use_io_uring) {
  std::string folder = std::filesystem::current_path() / "env_test.XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  return {nullptr, std::make_unique<PosixEnv>(use_io_uring), folder};
}

EnvUnderTest simulated_env() {
  auto env = std::make_unique<SimEnv>();
  EXPECT_TRUE(env->create_directory("/store").ok());
  return {nullptr, std::move(env), "/store", /*on_host=*/false};
}

EnvUnderTest with_shared_threads(EnvUnderTest base) {
  auto env = std::make_unique<SharedThreads>(base.env.get());
  return {std::move(base.env), std::move(env), base.folder, base.on_host};
}

struct Kind {
  const char* name;
  std::function<EnvUnderTest()> make;
};

class EnvTest : public testing::TestWithParam<Kind> {
 protected:
  EnvTest() : m_under_test(GetParam().make()) {}
  ~EnvTest() override {
    if (m_under_test.on_host) {
      std::filesystem::remove_all(m_under_test.folder);
    }
  }

  Env* env() { return m_under_test.env.get(); }
  std::string path(const std::string& name) { return m_under_test.folder + "/" + name; }

  std::unique_ptr<File> create(const std::string& name, bool direct = true) {
    std::unique_ptr<File> file;
    const Status status = env()->open_file(path(name), {.create = true, .direct = direct}, &file);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return file;
  }

  static AlignedBuffer filled(size_t length, char value) {
    AlignedBuffer buffer(length);
    buffer.resize(length);
    std::memset(buffer.data(), value, length);
    return buffer;
  }

  static std::string contents(File* file, uint64_t offset, size_t length) {
    AlignedBuffer buffer(length);
    buffer.resize(length);
    const Status status = file->read(offset, length, buffer.data());
    return status.ok() ? std::string(buffer.view()) : status.to_string();
  }

  EnvUnderTest m_under_test;
};

TEST_P(EnvTest, WrittenBytesAreRead) {
  auto file = create("a");
  const AlignedBuffer data = filled(8192, 'x');
  ASSERT_TRUE(file->write(4096, data.data(), data.size()).ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(contents(file.get(), 4096, 8192), std::string(8192, 'x'));
  EXPECT_EQ(contents(file.get(), 0, 4096), std::string(4096, '\0'));
  uint64_t size = 0;
  ASSERT_TRUE(file->size(&size).ok());
  EXPECT_EQ(size, 12288U);
}

TEST_P(EnvTest, ReadPastTheEndIsCorruption) {
  auto file = create("a");
  const AlignedBuffer data = filled(4096, 'x');
  ASSERT_TRUE(file->write(0, data.data(), data.size()).ok());
  AlignedBuffer buffer = filled(8192, '?');
  EXPECT_TRUE(file->read(0, 8192, buffer.data()).is_corruption());
  EXPECT_TRUE(file->read(8192, 4096, buffer.data()).is_corruption());
}

TEST_P(EnvTest, ReadsManyBlocksAtOnceAndTellsOfEachOnce) {
  constexpr size_t kBlocks = 100;  // more than a ring takes
  auto file = create("a");
  for (size_t i = 0; i < kBlocks; ++i) {
    const AlignedBuffer data = filled(4096, static_cast<char>('0' + i % 10));
    ASSERT_TRUE(file->write(i * 4096, data.data(), data.size()).ok());
  }
  AlignedBuffer bytes = filled((kBlocks + 1) * 4096, '?');
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i <= kBlocks; ++i) {
    const size_t block = kBlocks - i;  // the first one lies past the end
    requests.push_back({file.get(), block * 4096, 4096, bytes.data() + block * 4096, {}});
  }
  std::vector<int> told(requests.size());
  read_all(requests, [&](ReadRequest& request) {
    ++told[static_cast<size_t>(&request - requests.data())];
    const size_t block = request.offset / 4096;
    if (block == kBlocks) {
      EXPECT_TRUE(request.result.is_corruption()) << request.result.to_string();
    } else {
      EXPECT_TRUE(request.result.ok()) << request.result.to_string();
      EXPECT_EQ(std::string(request.destination, 4096), std::string(4096, static_cast<char>('0' + block % 10)));
    }
  });
  EXPECT_EQ(told, std::vector<int>(requests.size(), 1));
}

TEST_P(EnvTest, MissingFileIsNotFoundAndNamed) {
  std::unique_ptr<File> file;
  const Status status = env()->open_file(path("missing"), {}, &file);
  EXPECT_TRUE(status.is_not_found());
  EXPECT_NE(status.message().find(path("missing")), std::string::npos);
  EXPECT_TRUE(env()->remove_file(path("missing")).is_not_found());
  EXPECT_FALSE(env()->exists(path("missing")));
}

TEST_P(EnvTest, ExclusiveCreationFailsWhenPresent) {
  auto file = create("a");
  std::unique_ptr<File> second;
  const Status status = env()->open_file(path("a"), {.create = true, .exclusive = true}, &second);
  EXPECT_EQ(status.error_number(), EEXIST);
}

TEST_P(EnvTest, ReadOnlyFileRefusesWrites) {
  create("a");
  std::unique_ptr<File> file;
  ASSERT_TRUE(env()->open_file(path("a"), {.read_only = true}, &file).ok());
  const AlignedBuffer data = filled(4096, 'x');
  EXPECT_FALSE(file->write(0, data.data(), data.size()).ok());
}

TEST_P(EnvTest, AllocatedSpaceReadsAsZerosAndCountsInTheSize) {
  auto file = create("a");
  ASSERT_TRUE(file->allocate(0, 65536).ok());
  uint64_t size = 0;
  ASSERT_TRUE(file->size(&size).ok());
  EXPECT_EQ(size, 65536U);
  EXPECT_EQ(contents(file.get(), 61440, 4096), std::string(4096, '\0'));
}

TEST_P(EnvTest, WriteZerosClearsAndExtends) {
  auto file = create("a");
  const AlignedBuffer data = filled(8192, 'x');
  ASSERT_TRUE(file->write(0, data.data(), data.size()).ok());
  const Status status = file->write_zeros(4096, 3 << 20);
  ASSERT_TRUE(status.ok()) << status.to_string();
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(contents(file.get(), 0, 8192), std::string(4096, 'x') + std::string(4096, '\0'));
  uint64_t size = 0;
  ASSERT_TRUE(file->size(&size).ok());
  EXPECT_EQ(size, (3U << 20) + 4096);
}

TEST_P(EnvTest, PunchedHoleReadsAsZerosAndKeepsTheSize) {
  auto file = create("a");
  const AlignedBuffer data = filled(16384, 'x');
  ASSERT_TRUE(file->write(0, data.data(), data.size()).ok());
  ASSERT_TRUE(file->punch_hole(4096, 12288).ok());
  EXPECT_EQ(contents(file.get(), 0, 8192), std::string(4096, 'x') + std::string(4096, '\0'));
  uint64_t size = 0;
  ASSERT_TRUE(file->size(&size).ok());
  EXPECT_EQ(size, 16384U);
}

// Edges of ranges, in slices.
std::vector<uint64_t> edges(const std::vector<FileRange>& ranges, uint64_t slice) {
  std::vector<uint64_t> found;
  for (const FileRange& range : ranges) {
    found.push_back(range.offset / slice);
    found.push_back((range.offset + range.length) / slice);
  }
  return found;
}

TEST_P(EnvTest, TheMapTellsHolesReservedAndWrittenSpaceApart) {
  auto file = create("a");
  constexpr uint64_t kSlice = 64 << 10;
  ASSERT_TRUE(file->truncate(6 * kSlice).ok());
  ASSERT_TRUE(file->allocate(kSlice, 4 * kSlice).ok());
  ASSERT_TRUE(file->punch_hole(2 * kSlice, kSlice).ok());
  const AlignedBuffer data = filled(kSlice, 'x');
  ASSERT_TRUE(file->write(3 * kSlice, data.data(), data.size()).ok());
  FileSpace space;
  const Status status = file->map_space(&space);
  if (status.code() == Status::Code::unsupported) {
    GTEST_SKIP() << status.message();
  }
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(edges(space.holes, kSlice), (std::vector<uint64_t>{0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(edges(space.unwritten, kSlice), (std::vector<uint64_t>{1, 2, 4, 5}));
}

TEST_P(EnvTest, TruncateCutsAndExtends) {
  auto file = create("a");
  const AlignedBuffer data = filled(8192, 'x');
  ASSERT_TRUE(file->write(0, data.data(), data.size()).ok());
  ASSERT_TRUE(file->truncate(4096).ok());
  ASSERT_TRUE(file->truncate(8192).ok());
  EXPECT_EQ(contents(file.get(), 0, 8192), std::string(4096, 'x') + std::string(4096, '\0'));
}

TEST_P(EnvTest, DirectoriesListSortedAndRenameReplaces) {
  ASSERT_TRUE(env()->create_directory(path("d")).ok());
  ASSERT_TRUE(env()->create_directory(path("d")).ok()) << "fine when it exists";
  auto b = create("d/b");
  auto a = create("d/a");
  const AlignedBuffer data = filled(4096, 'a');
  ASSERT_TRUE(a->write(0, data.data(), data.size()).ok());
  std::vector<std::string> names;
  ASSERT_TRUE(env()->list_directory(path("d"), &names).ok());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(env()->rename_file(path("d/a"), path("d/b")).ok());
  ASSERT_TRUE(env()->sync_directory(path("d")).ok());
  ASSERT_TRUE(env()->list_directory(path("d"), &names).ok());
  EXPECT_EQ(names, std::vector<std::string>{"b"});
  std::unique_ptr<File> file;
  ASSERT_TRUE(env()->open_file(path("d/b"), {}, &file).ok());
  EXPECT_EQ(contents(file.get(), 0, 4096), std::string(4096, 'a'));
  EXPECT_TRUE(env()->list_directory(path("none"), &names).is_not_found());
  EXPECT_EQ(env()->list_directory(path("d/b"), &names).error_number(), ENOTDIR);
  EXPECT_TRUE(env()->sync_directory(path("none")).is_not_found());
}

TEST_P(EnvTest, RemovedFileStaysUsableWhileOpen) {
  auto file = create("a");
  const AlignedBuffer data = filled(4096, 'a');
  ASSERT_TRUE(file->write(0, data.data(), data.size()).ok());
  ASSERT_TRUE(env()->remove_file(path("a")).ok());
  EXPECT_FALSE(env()->exists(path("a")));
  EXPECT_EQ(contents(file.get(), 0, 4096), std::string(4096, 'a'));
}

TEST_P(EnvTest, SmallFileIsReplacedWhole) {
  std::string text;
  EXPECT_TRUE(read_small_file(env(), path("current"), &text).is_not_found());
  ASSERT_TRUE(replace_small_file(env(), path("current"), "a long first version").ok());
  ASSERT_TRUE(replace_small_file(env(), path("current"), "second").ok());
  ASSERT_TRUE(read_small_file(env(), path("current"), &text).ok());
  EXPECT_EQ(text, "second");
}

TEST_P(EnvTest, SecondLockIsBusyUntilTheFirstIsGone) {
  std::unique_ptr<FileLock> first;
  std::unique_ptr<FileLock> second;
  ASSERT_TRUE(env()->lock_file(path("lock"), &first).ok());
  EXPECT_EQ(env()->lock_file(path("lock"), &second).code(), Status::Code::busy);
  // A ring made while the lock is held refers to it, and must not keep it from being given up.
  auto worker = env()->start_worker("ring", 4, [](IoQueue&) { return NextStep::on_event(); });
  first.reset();
  EXPECT_TRUE(env()->lock_file(path("lock"), &second).ok());
}

TEST_P(EnvTest, FileSystemInfoHasRoom) {
  FileSystemInfo info;
  ASSERT_TRUE(env()->file_system_info(m_under_test.folder, &info).ok());
  EXPECT_GT(info.total_bytes, 0U);
  EXPECT_LE(info.available_bytes, info.total_bytes);
  EXPECT_FALSE(info.read_only);
  EXPECT_FALSE(info.mount_point.empty());
  EXPECT_EQ(info.single_flush, info.kind == FileSystemKind::ext4 || info.kind == FileSystemKind::xfs);
  EXPECT_FALSE(env()->file_system_info(path("missing"), &info).ok());
}

// A worker that writes `count` blocks with all of them submitted at once, syncs, then reads them back.
class BlockTransfer {
 public:
  BlockTransfer(Env* env, File* file, size_t count) : m_env(env), m_signal(env->new_signal()) {
    for (size_t i = 0; i < count; ++i) {
      m_buffers.emplace_back(4096);
      m_buffers.back().resize(4096);
      std::memset(m_buffers.back().data(), static_cast<char>('a' + i % 26), 4096);
      IoRequest request;
      request.file = file;
      request.offset = i * 4096;
      request.buffers = {{m_buffers.back().data(), 4096}};
      m_requests.push_back(request);
    }
    m_sync.op = IoRequest::Op::sync;
    m_sync.file = file;
  }

  void run(unsigned depth) {
    auto worker = m_env->start_worker("transfer", depth, [this](IoQueue& io) { return step(io); });
    MutexLock lock(m_mutex);
    m_signal->wait(lock, [this] { return m_done; });
  }

  std::vector<IoRequest> m_requests;
  std::vector<AlignedBuffer> m_buffers;
  IoRequest m_sync;

 private:
  NextStep step(IoQueue& io) {
    std::vector<IoRequest*> completed;
    io.reap(&completed);
    m_left -= completed.size();
    if (m_left != 0) {
      return NextStep::on_event();
    }
    switch (m_phase++) {
      case 0:
        submit_all(io);
        break;
      case 1:
        io.submit(&m_sync);
        m_left = 1;
        break;
      case 2:
        for (size_t i = 0; i < m_requests.size(); ++i) {
          EXPECT_TRUE(m_requests[i].result.ok()) << m_requests[i].result.to_string();
          m_requests[i].op = IoRequest::Op::read;
          std::memset(m_buffers[i].data(), '?', 4096);
        }
        submit_all(io);
        break;
      default: {
        EXPECT_EQ(io.in_flight(), 0U);
        const MutexLock lock(m_mutex);
        m_done = true;
        m_signal->notify_all();
      }
    }
    return NextStep::on_event();
  }

  void submit_all(IoQueue& io) {
    for (IoRequest& request : m_requests) {
      io.submit(&request);
    }
    m_left = m_requests.size();
    EXPECT_EQ(io.in_flight(), m_left);
  }

  Env* const m_env;
  Mutex m_mutex;
  std::unique_ptr<Signal> m_signal;
  bool m_done = false;
  int m_phase = 0;
  size_t m_left = 0;
};

TEST_P(EnvTest, QueueTransfersMoreThanItsDepth) {
  auto file = create("a");
  for (const unsigned depth : {1U, 4U, 128U}) {
    BlockTransfer transfer(env(), file.get(), 100);
    transfer.run(depth);
    EXPECT_TRUE(transfer.m_sync.result.ok());
    for (size_t i = 0; i < 100; ++i) {
      ASSERT_TRUE(transfer.m_requests[i].result.ok()) << transfer.m_requests[i].result.to_string();
      ASSERT_EQ(transfer.m_buffers[i].view(), std::string(4096, static_cast<char>('a' + i % 26)));
    }
  }
}

// Runs one request through a worker and returns its result.
Status run_request(Env* env, IoRequest* request) {
  auto signal = env->new_signal();
  Mutex mutex;
  bool submitted = false;
  bool done = false;
  auto worker = env->start_worker("one", 4, [&](IoQueue& io) {
    if (!submitted) {
      io.submit(request);
      submitted = true;
    }
    std::vector<IoRequest*> completed;
    io.reap(&completed);
    if (!completed.empty()) {
      const MutexLock lock(mutex);
      done = true;
      signal->notify_all();
    }
    return NextStep::on_event();
  });
  MutexLock lock(mutex);
  signal->wait(lock, [&] { return done; });
  return request->result;
}

TEST_P(EnvTest, VectorsAreTransferredInOrder) {
  auto file = create("a");
  AlignedBuffer first = filled(4096, '1');
  AlignedBuffer second = filled(8192, '2');
  IoRequest write;
  write.file = file.get();
  write.offset = 4096;
  write.buffers = {{first.data(), 4096}, {second.data(), 8192}};
  ASSERT_TRUE(run_request(env(), &write).ok());
  EXPECT_EQ(contents(file.get(), 4096, 12288), std::string(4096, '1') + std::string(8192, '2'));
}

TEST_P(EnvTest, QueuedReadPastTheEndIsCorruption) {
  auto file = create("a");
  AlignedBuffer data = filled(8192, 'x');
  ASSERT_TRUE(file->write(0, data.data(), 4096).ok());
  IoRequest read;
  read.op = IoRequest::Op::read;
  read.file = file.get();
  read.buffers = {{data.data(), 8192}};
  const Status status = run_request(env(), &read);
  EXPECT_TRUE(status.is_corruption()) << status.to_string();
}

TEST_P(EnvTest, QueuedWriteToAReadOnlyFileFailsAndNamesIt) {
  create("a");
  std::unique_ptr<File> file;
  ASSERT_TRUE(env()->open_file(path("a"), {.read_only = true}, &file).ok());
  AlignedBuffer data = filled(4096, 'x');
  IoRequest write;
  write.file = file.get();
  write.buffers = {{data.data(), 4096}};
  const Status status = run_request(env(), &write);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(path("a")), std::string::npos);
}

// A sync alone, beside a write, beside another file's, in any order; undisturbed, and woken all the while.
TEST_P(EnvTest, SyncsCompleteWithAndWithoutOthersAndWakes) {
  auto first = create("a"), second = create("b");
  AlignedBuffer block(4096);
  auto signal = env()->new_signal();
  Mutex mutex;
  for (const auto& [depth, wake] : {std::pair(4U, false), {4U, true}, {2U, false}, {2U, true}, {1U, false}}) {
    std::array<IoRequest, 3> requests;
    requests[0].op = requests[2].op = IoRequest::Op::sync;
    requests[0].file = first.get();
    requests[0].any_file = true;
    requests[1].file = requests[2].file = second.get();
    requests[1].buffers = {{block.data(), block.size()}};
    size_t rounds = 0, left = 0;
    auto worker = env()->start_worker("sync", depth, [&](IoQueue& io) {
      std::vector<IoRequest*> completed;
      io.reap(&completed);
      const MutexLock lock(mutex);
      left -= completed.size();
      if (left == 0 && rounds++ < 90) {
        for (; left <= rounds / 10 % requests.size(); ++left) {
          io.submit(&requests[(left + rounds) % requests.size()]);
        }
        EXPECT_EQ(io.in_flight(), left);
        io.await_all();
      }
      signal->notify_all();
      return NextStep::on_event();
    });
    for (bool ended = false; !ended;) {
      worker->wake();
      MutexLock lock(mutex);
      signal->wait(lock, [&, wake = wake] { return wake || rounds > 90; });
      ended = rounds > 90;
    }
    EXPECT_TRUE(requests[0].result.ok() && requests[1].result.ok() && requests[2].result.ok());
  }
}

TEST_P(EnvTest, WakeIsNeverLost) {
  auto signal = env()->new_signal();
  Mutex mutex;
  uint64_t asked = 0;
  uint64_t answered = 0;
  for (const unsigned depth : {0U, 8U}) {
    auto worker = env()->start_worker("echo", depth, [&](IoQueue&) {
      const MutexLock lock(mutex);
      answered = asked;
      signal->notify_all();
      return NextStep::on_event();
    });
    for (int i = 0; i < 2000; ++i) {
      MutexLock lock(mutex);
      ++asked;
      lock.unlock();
      worker->wake();
      lock.lock();
      signal->wait(lock, [&] { return answered == asked; });
    }
  }
  EXPECT_EQ(answered, 4000U);
}

TEST_P(EnvTest, LaterCallsAgainWithoutAnEvent) {
  auto signal = env()->new_signal();
  Mutex mutex;
  for (const unsigned depth : {0U, 8U}) {
    int calls = 0;
    const uint64_t start = env()->now_us();
    auto worker = env()->start_worker("timer", depth, [&](IoQueue&) {
      const MutexLock lock(mutex);
      ++calls;
      signal->notify_all();
      return NextStep::later(std::chrono::microseconds(2000));
    });
    MutexLock lock(mutex);
    signal->wait(lock, [&] { return calls >= 4; });
    EXPECT_GE(env()->now_us() - start, 6000U);
  }
}

TEST_P(EnvTest, NowCallsAgainAtOnceAndStartsTheRequests) {
  auto file = create("a");
  AlignedBuffer data = filled(4096, 'x');
  IoRequest write;
  write.file = file.get();
  write.buffers = {{data.data(), 4096}};
  auto signal = env()->new_signal();
  Mutex mutex;
  bool submitted = false;
  bool done = false;
  auto worker = env()->start_worker("busy", 4, [&](IoQueue& io) {
    if (!submitted) {
      io.submit(&write);
      submitted = true;
    }
    std::vector<IoRequest*> completed;
    io.reap(&completed);
    const MutexLock lock(mutex);
    done = done || !completed.empty();
    signal->notify_all();
    return done ? NextStep::on_event() : NextStep::now();
  });
  MutexLock lock(mutex);
  signal->wait(lock, [&] { return done; });
  EXPECT_TRUE(write.result.ok());
}

TEST_P(EnvTest, DestroyingAWorkerWaitsForItsRequests) {
  auto file = create("a");
  AlignedBuffer data = filled(1 << 20, 'x');
  for (int round = 0; round < 20; ++round) {
    std::vector<IoRequest> writes(8);
    for (size_t i = 0; i < writes.size(); ++i) {
      writes[i].file = file.get();
      writes[i].offset = i << 20;
      writes[i].buffers = {{data.data(), 1 << 20}};
      writes[i].result = Status::failed("not written");
    }
    auto signal = env()->new_signal();
    Mutex mutex;
    bool submitted = false;
    {
      auto worker = env()->start_worker("gone", 4, [&](IoQueue& io) {
        const MutexLock lock(mutex);
        if (!submitted) {
          for (IoRequest& write : writes) {
            io.submit(&write);
          }
          submitted = true;
          signal->notify_all();
        }
        return NextStep::on_event();
      });
      MutexLock lock(mutex);
      signal->wait(lock, [&] { return submitted; });
    }
    for (const IoRequest& write : writes) {
      ASSERT_TRUE(write.result.ok()) << write.result.to_string();
    }
  }
}

TEST_P(EnvTest, ClocksAndRandomness) {
  const uint64_t before = env()->now_us();
  EXPECT_LE(before, env()->now_us());
  EXPECT_GT(env()->wall_clock_us(), 1'500'000'000'000'000U);
  EXPECT_NE(env()->random_u64(), env()->random_u64());
}

INSTANTIATE_TEST_SUITE_P(All, EnvTest,
                         testing::Values(Kind{"io_uring", [] { return host_env(true); }},
                                         Kind{"blocking", [] { return host_env(false); }},
                                         Kind{"simulated", simulated_env},
                                         Kind{"shared", [] { return with_shared_threads(host_env(true)); }},
                                         Kind{"shared_simulated", [] { return with_shared_threads(simulated_env()); }}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace vtkv
