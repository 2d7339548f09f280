// SPDX-License-Identifier: LGPL-2.1-or-later
// What mkfs and mount refuse, and that they change nothing then.

#include "swimstore/swimstore.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/config.h"
#include "global/global_context.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/superblock.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/ops/options.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/ops/settings.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fault.h"
#include "vtkv/util/coding.h"

namespace swimstore {

namespace {

constexpr const char* kPath = "/osd";

class MountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set("swimstore_log_segment_size", "131072");
    set("swimstore_log_segments", "2");
    set("swimstore_zone_size", "65536");
    set("swimstore_chunk_size", "4194304");
    set("swimstore_memtable_size", "65536");
    set("swimstore_primed_ahead_size", "65536");
    set("swimstore_reserve_size", "1048576");
    set("swimstore_cache_autotune", "false");
    ASSERT_TRUE(m_env.create_directory(kPath).ok());
  }
  void TearDown() override {
    for (const std::string& name : m_changed) {
      g_ceph_context->_conf.rm_val(name);
    }
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  void set(const std::string& name, const std::string& value) {
    g_ceph_context->_conf.set_val_or_die(name, value);
    g_ceph_context->_conf.apply_changes(nullptr);
    m_changed.push_back(name);
  }

  int mkfs(const std::string& fsid = {}, const std::string& path = kPath) {
    SwimStore store(g_ceph_context, path, &m_env);
    set_fsid(store, fsid);
    return store.mkfs();
  }
  int mount(const std::string& path = kPath) {
    SwimStore store(g_ceph_context, path, &m_env);
    const int r = store.mount();
    return r < 0 ? r : store.umount();
  }
  static void set_fsid(SwimStore& store, const std::string& fsid) {
    uuid_d uuid;
    if (!fsid.empty()) {
      ASSERT_TRUE(uuid.parse(fsid.c_str()));
    }
    store.set_fsid(uuid);
  }
  std::string contents(const std::string& name) {
    std::unique_ptr<vtkv::File> file;
    EXPECT_TRUE(m_env.open_file(std::string(kPath) + "/" + name, {.direct = false}, &file).ok());
    uint64_t size = 0;
    EXPECT_TRUE(file->size(&size).ok());
    std::string bytes(size, '\0');
    EXPECT_TRUE(size == 0 || file->read(0, size, bytes.data()).ok());
    return bytes;
  }
  void replace(const std::string& name, const std::string& bytes) {
    std::unique_ptr<vtkv::File> file;
    const std::string path = std::string(kPath) + "/" + name;
    ASSERT_TRUE(m_env.open_file(path, {.create = true, .direct = false}, &file).ok());
    ASSERT_TRUE(file->truncate(0).ok());
    ASSERT_TRUE(file->write(0, bytes.data(), bytes.size()).ok());
  }

  vtkv::SimEnv m_env{{.seed = 1, .record = false}};
  std::vector<std::string> m_changed;
  const std::string m_fsid = "11111111-2222-3333-4444-555555555555";
  const std::string m_other_fsid = "66666666-7777-8888-9999-aaaaaaaaaaaa";
};

}  // namespace

TEST_F(MountTest, AStoreThatWasMadeMounts) {
  ASSERT_EQ(0, mkfs(m_fsid));
  SwimStore store(g_ceph_context, kPath, &m_env);
  ASSERT_EQ(0, store.mount());
  EXPECT_EQ(m_fsid, store.get_fsid().to_string());
  EXPECT_EQ(0, store.umount());
}

TEST_F(MountTest, MakingItAgainIsFine) {
  ASSERT_EQ(0, mkfs(m_fsid));
  const std::string superblock = contents("superblock");
  EXPECT_EQ(0, mkfs(m_fsid));
  EXPECT_EQ(superblock, contents("superblock"));
}

TEST_F(MountTest, MkfsRefusesAnotherFsid) {
  ASSERT_EQ(0, mkfs(m_fsid));
  const std::string superblock = contents("superblock");
  EXPECT_EQ(-EEXIST, mkfs(m_other_fsid));
  EXPECT_EQ(superblock, contents("superblock"));
}

TEST_F(MountTest, AMissingDirectoryIsNotMade) {
  EXPECT_EQ(-ENOENT, mkfs(m_fsid, "/nowhere"));
  EXPECT_EQ(-ENOENT, mount("/nowhere"));
  EXPECT_FALSE(m_env.exists("/nowhere"));
}

TEST_F(MountTest, AnEmptyDirectoryDoesNotMount) {
  EXPECT_EQ(-ENOENT, mount());
  EXPECT_TRUE(m_env.files().empty());
}

TEST_F(MountTest, AnotherStoresDirectoryIsLeftAlone) {
  replace("type", "bluestore\n");
  const auto before = m_env.files();
  EXPECT_EQ(-EINVAL, mkfs(m_fsid));
  EXPECT_EQ(-EINVAL, mount());
  EXPECT_EQ(before, m_env.files());
}

// What cannot be read may be another store's, and is no missing directory.
TEST_F(MountTest, ADirectoryThatCannotBeReadIsLeftAlone) {
  replace("type", "bluestore\n");
  const auto before = m_env.files();
  for (const vtkv::SimCall call : {vtkv::SimCall::list_directory, vtkv::SimCall::open, vtkv::SimCall::read}) {
    for (const bool mounting : {false, true}) {
      m_env.fail_nth(call, 1, vtkv::Status::from_errno(EIO, "injected"), false);
      EXPECT_EQ(-EIO, mounting ? mount() : mkfs(m_fsid));
      m_env.clear_faults();
      EXPECT_EQ(before, m_env.files());
    }
  }
}

// A sound disk would be exchanged for a limit, or an attribute of a file.
TEST_F(MountTest, TheRemedyIsChosenByTheKindOfError) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::Not;
  ASSERT_EQ(0, mkfs());
  const auto said = [this](int error_number) {
    m_env.fail_nth(vtkv::SimCall::open, 4, vtkv::Status::from_errno(error_number, "cannot open /osd/file"), false);
    testing::internal::CaptureStderr();
    EXPECT_EQ(-error_number, mount());
    m_env.clear_faults();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(EIO), AllOf(HasSubstr("Check the disk"), HasSubstr("ceph-swimstore-tool fsck /osd")));
  EXPECT_THAT(said(EMFILE), AllOf(HasSubstr("LimitNOFILE"), Not(HasSubstr("disk"))));
  EXPECT_THAT(said(EPERM), AllOf(HasSubstr("'lsattr -R /osd'"), Not(HasSubstr("disk"))));
  EXPECT_THAT(said(EROFS), AllOf(HasSubstr("remount,rw"), Not(HasSubstr("disk"))));
}

TEST_F(MountTest, AFileIsNoDirectory) {
  replace("file", "text");
  EXPECT_EQ(-ENOENT, mkfs(m_fsid, std::string(kPath) + "/file"));
}

TEST_F(MountTest, FilesOfTwoStoresDoNotMount) {
  ASSERT_EQ(0, mkfs(m_fsid));
  replace("fsid", m_other_fsid + "\n");
  EXPECT_EQ(-EINVAL, mount());
}

TEST_F(MountTest, ATruncatedSuperblockDoesNotMount) {
  ASSERT_EQ(0, mkfs(m_fsid));
  replace("superblock", contents("superblock").substr(0, 100));
  EXPECT_EQ(-EIO, mount());
}

TEST_F(MountTest, OneWholeCopyOfTheSuperblockIsEnoughAndRenewsTheOther) {
  ASSERT_EQ(0, mkfs(m_fsid));
  const std::string whole = contents("superblock");
  for (const size_t copy : {0, 1}) {
    std::string bytes = whole;
    bytes[copy * Superblock::kCopyBytes + 20] ^= 1;
    replace("superblock", bytes);
    EXPECT_EQ(0, mount());
    EXPECT_EQ(whole, contents("superblock"));
  }
  std::string bytes = whole;
  bytes[20] ^= 1;
  bytes[Superblock::kCopyBytes + 20] ^= 1;
  replace("superblock", bytes);
  EXPECT_EQ(-EIO, mount());
}

TEST_F(MountTest, AFormatFromTheFutureDoesNotMount) {
  ASSERT_EQ(0, mkfs(m_fsid));
  std::string copy = contents("superblock").substr(0, Superblock::kCopyBytes);
  copy[8] = 99;
  vtkv::encode_fixed32(copy.data() + 76, Superblock::checksum(copy));
  replace("superblock", copy + copy);
  EXPECT_EQ(-EOPNOTSUPP, mount());
}

TEST_F(MountTest, AStoreInUseDoesNotMount) {
  ASSERT_EQ(0, mkfs(m_fsid));
  SwimStore first(g_ceph_context, kPath, &m_env);
  ASSERT_EQ(0, first.mount());
  SwimStore second(g_ceph_context, kPath, &m_env);
  EXPECT_TRUE(second.test_mount_in_use());
  EXPECT_EQ(-EBUSY, second.mount());
  EXPECT_EQ(0, first.umount());
  EXPECT_FALSE(second.test_mount_in_use());
}

// ---- what mkfs makes of an fsid, and of a host that fails

TEST_F(MountTest, MkfsTakesTheFsidOfTheFile) {
  replace("fsid", m_other_fsid + "\n");
  EXPECT_EQ(-EINVAL, mkfs(m_fsid));
  SwimStore store(g_ceph_context, kPath, &m_env);
  EXPECT_EQ(0, store.mkfs());
  EXPECT_EQ(m_other_fsid, store.get_fsid().to_string());
  SwimStore again(g_ceph_context, kPath, &m_env);
  EXPECT_EQ(0, again.mkfs());
  EXPECT_EQ(m_other_fsid, again.get_fsid().to_string());
}

TEST_F(MountTest, AnFsidThatIsNoneIsRefused) {
  replace("fsid", "nonsense\n");
  EXPECT_EQ(-EINVAL, mkfs());
  EXPECT_FALSE(m_env.exists(std::string(kPath) + "/superblock"));
  ASSERT_TRUE(m_env.remove_file(std::string(kPath) + "/fsid").ok());
  ASSERT_EQ(0, mkfs());
  replace("fsid", "nonsense\n");
  EXPECT_EQ(-EINVAL, mount());
  replace("fsid", std::string(5000, 'x'));
  EXPECT_EQ(-EIO, mount());
  ASSERT_TRUE(m_env.remove_file(std::string(kPath) + "/fsid").ok());
  EXPECT_EQ(0, mount());  // the superblock knows it
}

TEST_F(MountTest, ADamagedSuperblockIsNotMadeAnew) {
  ASSERT_EQ(0, mkfs(m_fsid));
  replace("superblock", std::string(2 * Superblock::kCopyBytes, 'x'));
  EXPECT_EQ(-EIO, mkfs(m_fsid));
}

TEST_F(MountTest, AStoreOfSeveralCubesIsOfANewerVersion) {
  ASSERT_EQ(0, mkfs(m_fsid));
  Superblock superblock;
  ASSERT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
  superblock.cubes = 2;
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_superblock(superblock).ok());
  EXPECT_EQ(-EOPNOTSUPP, mount());
}

TEST_F(MountTest, OneFlushIsRefusedWhereItWasNotProven) {
  vtkv::SimEnv weak({.profile = vtkv::SimProfile::weakest, .record = false});
  ASSERT_TRUE(weak.create_directory(kPath).ok());
  SwimStore store(g_ceph_context, kPath, &weak);
  set("swimstore_allow_unproven_file_system", "false");
  EXPECT_EQ(-EOPNOTSUPP, store.mkfs());
  set("swimstore_allow_unproven_file_system", "true");
  set("swimstore_flush_mode", "single");
  EXPECT_EQ(-EINVAL, store.mkfs());
  set("swimstore_flush_mode", "auto");
  EXPECT_EQ(0, store.mkfs());
  EXPECT_EQ(0, store.mount());
  EXPECT_EQ(0, store.umount());
  set("swimstore_flush_mode", "single");
  EXPECT_EQ(-EINVAL, store.mount());
}

// By chown or chmod below a running OSD: a store that found no room would stop all clients of its pools.
TEST(TakenAwayStoreTest, AStoreWhoseDirectoryIsTakenAwayIsNotFull) {
  namespace fs = std::filesystem;
  std::string folder = "/tmp/taken_away_store.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  fs::create_directory(folder + "/osd");
  use_small_stores(g_ceph_context);
  SwimStore store(g_ceph_context, folder + "/osd");
  ASSERT_EQ(0, store.mkfs());
  ASSERT_EQ(0, store.mount());
  store_statfs_t before, after;
  ASSERT_EQ(0, store.statfs(&before));
  constexpr uid_t kNobody = 65534;
  const uid_t self = ::geteuid();
  fs::permissions(folder, fs::perms::none);
  EXPECT_EQ(0, ::seteuid(self == 0 ? kNobody : self));  // root may go everywhere
  EXPECT_EQ(0, store.statfs(&after));
  EXPECT_EQ(0, ::seteuid(self));
  fs::permissions(folder, fs::perms::owner_all);
  EXPECT_GT(after.available, before.available / 2);
  EXPECT_GT(after.total, before.total / 2);
  EXPECT_EQ(0, store.umount());
  fs::remove_all(folder);
}

// The n-th call of a kind fails, for n = 1, 2, …: mkfs says so, and can be done again; then the same of a mount.
// "perf dump" and the cluster's metrics read them without asking the store first.
TEST_F(MountTest, TheGaugesAreBroughtUpToDateWhenTheOsdAsksForSpace) {
  ASSERT_EQ(0, mkfs());
  SwimStore store(g_ceph_context, kPath, &m_env);
  ASSERT_EQ(0, store.mount());
  store_statfs_t statfs;
  ASSERT_EQ(0, store.statfs(&statfs, nullptr));
  EXPECT_LT(0u, store.get_perf_counters()->get(l_swimstore_log_file_bytes));
  EXPECT_EQ(0, store.umount());
}

// With a true here, 'ceph df' would print the omap of each pool as 0, instead of what scrubs have found.
TEST_F(MountTest, OmapIsNotSaidToBeCountedByPool) {
  ASSERT_EQ(0, mkfs());
  SwimStore store(g_ceph_context, kPath, &m_env);
  ASSERT_EQ(0, store.mount());
  store_statfs_t report;
  bool per_pool_omap = true;
  ASSERT_EQ(0, store.pool_statfs(1, &report, &per_pool_omap));
  EXPECT_FALSE(per_pool_omap);
  EXPECT_EQ(0, store.umount());
}

TEST_F(MountTest, EveryFailureOfTheHostIsToldAndCanBeOvercome) {
  using vtkv::SimCall;
  const uint64_t renames_before = m_env.calls(SimCall::rename);
  ASSERT_EQ(0, mkfs());
  const uint64_t renames_of_mkfs = m_env.calls(SimCall::rename) - renames_before;  // the last one is the superblock's
  for (const SimCall call : {SimCall::open, SimCall::read, SimCall::write, SimCall::sync, SimCall::truncate,
                             SimCall::rename, SimCall::remove, SimCall::create_directory, SimCall::sync_directory,
                             SimCall::size, SimCall::list_directory, SimCall::file_system_info}) {
    for (const bool mounting : {false, true}) {
      for (uint64_t n = 1;; ++n) {
        vtkv::SimEnv env({.seed = n, .record = false});
        ASSERT_TRUE(env.create_directory(kPath).ok());
        SwimStore store(g_ceph_context, kPath, &env);
        store.set_fatal_handler([](const vtkv::Status&) {});
        if (mounting) {
          ASSERT_EQ(0, store.mkfs());
        } else {  // what an earlier one had made so far is in its way
          env.fail_nth(SimCall::rename, renames_of_mkfs, vtkv::Status::from_errno(EIO, "injected"), true);
          ASSERT_EQ(-EIO, store.mkfs());
          env.clear_faults();
          ASSERT_TRUE(env.remove_file(std::string(kPath) + "/fsid").ok());
        }
        vtkv::NthFailure failure(&env, call, n);
        const int r = mounting ? store.mount() : store.mkfs();
        const bool reached = failure.end();
        EXPECT_LE(r, 0);
        EXPECT_TRUE(reached || r == 0) << static_cast<int>(call) << " " << n;
        if (r == 0 && mounting) {
          EXPECT_EQ(0, store.umount());
        }
        EXPECT_EQ(0, store.mkfs()) << static_cast<int>(call) << " " << n;
        EXPECT_EQ(0, store.mount()) << static_cast<int>(call) << " " << n;
        EXPECT_EQ(0, store.umount());
        if (!reached) {
          break;
        }
      }
    }
  }
}

// ---- small files

TEST_F(MountTest, SmallFilesHoldOneLine) {
  SwimStore store(g_ceph_context, kPath, &m_env);
  EXPECT_FALSE(store.test_mount_in_use());
  std::string value = "before";
  EXPECT_EQ(-ENOENT, store.read_meta("key", &value));
  EXPECT_EQ(0, store.write_meta("key", "value"));
  EXPECT_EQ(0, store.read_meta("key", &value));
  EXPECT_EQ("value", value);
  EXPECT_EQ(-EINVAL, store.write_meta("key", std::string(4096, 'x')));
  replace("key", "");
  EXPECT_EQ(0, store.read_meta("key", &value));
  EXPECT_EQ("", value);
  replace("key", std::string(4097, 'x'));
  EXPECT_EQ(-EIO, store.read_meta("key", &value));
}

TEST_F(MountTest, AFullHostWithoutASpareFileIsAnError) {
  StoreDirectory directory(&m_env, kPath);
  m_env.fail_nth(vtkv::SimCall::write, 1, vtkv::Status::from_errno(ENOSPC, "full"), true);
  EXPECT_TRUE(directory.write_meta("ready", "no").is_no_space());
  m_env.clear_faults();
  m_env.fail_nth(vtkv::SimCall::write, 2, vtkv::Status::from_errno(ENOSPC, "full"), true);  // of the spare
  EXPECT_TRUE(directory.write_meta("ready", "yes").ok());
  EXPECT_FALSE(m_env.exists(std::string(kPath) + "/spare"));
  m_env.clear_faults();
  EXPECT_TRUE(directory.write_meta("ready", "yes").ok());
  EXPECT_TRUE(m_env.exists(std::string(kPath) + "/spare"));
}

TEST_F(MountTest, TheSuperblockIsReplacedOnAFullHost) {
  ASSERT_EQ(0, mkfs(m_fsid));
  Superblock superblock;
  ASSERT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
  StoreDirectory directory(&m_env, kPath);
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_TRUE(directory.write_superblock(superblock).ok());

  m_env.set_capacity(uint64_t{1} << 40);
  replace("spare", std::string(4096, '\0'));  // an older program's
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_TRUE(directory.write_superblock(superblock).is_no_space());
  EXPECT_TRUE(directory.or_sync(directory.write_superblock(superblock)).ok());
  EXPECT_TRUE(directory.write_meta("fsid", m_fsid).ok());  // and the spare is made again of its block
  EXPECT_EQ(std::string(4096, '\0'), contents("spare"));
  EXPECT_TRUE(superblock.is_whole(&m_env, kPath));
}

// ---- checks around a mount

TEST_F(MountTest, FsckOnMountRefusesAStoreWithErrors) {
  set("swimstore_fsck_on_mount", "true");
  SwimStore store(g_ceph_context, kPath, &m_env);
  EXPECT_EQ(-ENOENT, store.mount());
  ASSERT_EQ(0, mkfs(m_fsid));
  EXPECT_EQ(0, mount());
  const std::string superblock = contents("superblock");
  replace("superblock", std::string(2 * Superblock::kCopyBytes, 'x'));
  const auto refusal = [&store] {
    testing::internal::CaptureStderr();
    EXPECT_EQ(-EIO, store.mount());
    return testing::internal::GetCapturedStderr();  // whatever is not flushed yet is not in it
  };
  EXPECT_THAT(refusal(), ::testing::HasSubstr(fmt::format("'ceph-swimstore-tool fsck {}' names them", kPath)));
  set("swimstore_fsck_on_mount_deep", "true");
  EXPECT_THAT(refusal(), ::testing::HasSubstr(fmt::format("'ceph-swimstore-tool fsck {} --deep' names them", kPath)));
  replace("superblock", superblock);
  EXPECT_EQ(0, mount());
}

TEST_F(MountTest, FsckOnUmountTellsOfErrors) {
  ASSERT_EQ(0, mkfs(m_fsid));
  set("swimstore_fsck_on_umount", "true");
  EXPECT_EQ(0, mount());
  const std::string superblock = contents("superblock");
  SwimStore store(g_ceph_context, kPath, &m_env);
  ASSERT_EQ(0, store.mount());
  replace("superblock", std::string(2 * Superblock::kCopyBytes, 'x'));
  EXPECT_EQ(-EIO, store.umount());
  replace("superblock", superblock);
  ASSERT_EQ(0, store.mount());
  ASSERT_TRUE(m_env.remove_file(std::string(kPath) + "/superblock").ok());
  EXPECT_EQ(-EIO, store.umount());
}

TEST_F(MountTest, CachesMayBalanceThemselves) {
  ASSERT_EQ(0, mkfs(m_fsid));
  set("swimstore_cache_autotune", "true");
  EXPECT_EQ(0, mount());
}

TEST_F(MountTest, AbsurdOptionsAreRefusedBeforeAnythingIsMade) {
  const std::pair<const char*, const char*> absurd[] = {
      {"swimstore_log_segment_size", "1"},
      {"swimstore_log_segments", "1"},
      {"swimstore_zone_size", "70000"},
      {"swimstore_chunk_size", "5242880"},
      {"swimstore_io_depth", "0"},
      {"swimstore_memtable_size", "10"},
      {"swimstore_reserve_size", "1000000000000"},
      {"swimstore_prime_slot_size_max", "8388608"},
  };
  for (const auto& [name, value] : absurd) {
    std::string before;
    g_ceph_context->_conf.get_val(name, &before);
    set(name, value);
    EXPECT_EQ(-EINVAL, mkfs(m_fsid)) << name;
    EXPECT_TRUE(m_env.files().empty()) << name;
    set(name, before);
  }
  ASSERT_EQ(0, mkfs(m_fsid));
  set("swimstore_io_depth", "0");
  EXPECT_EQ(-EINVAL, mount());
}

TEST_F(MountTest, TheOldNameOfAnOptionIsRefusedWithItsNewOne) {
  ASSERT_EQ(0, mkfs(m_fsid));
  for (const auto& [was, is] : kRenamedOptions) {
    set(was, "1");
    Settings settings;
    const vtkv::Status status = Settings::read(g_ceph_context, &settings);
    EXPECT_EQ(fmt::format("option {} is called {} now: remove it and set that one", was, is), status.message());
    EXPECT_EQ(-EINVAL, mkfs(m_fsid)) << was;
    EXPECT_EQ(-EINVAL, mount()) << was;
    set(was, "");
  }
  EXPECT_EQ(0, mount());
}

TEST_F(MountTest, ASmallFileCanBeReplacedOnAFullHost) {
  StoreDirectory directory(&m_env, kPath);
  ASSERT_TRUE(directory.write_meta("ready", "no").ok());
  m_env.fail_nth(vtkv::SimCall::write, 1, vtkv::Status::from_errno(ENOSPC, "full"), false);
  EXPECT_TRUE(directory.write_meta("ready", "yes").ok());
  std::string value;
  EXPECT_TRUE(directory.read_meta("ready", &value).ok());
  EXPECT_EQ("yes", value);
}

// They would keep a store from its first mount.
TEST_F(MountTest, MkfsForgetsWhatARepairAndAnImportBeforeItLeft) {
  for (const char* mark : {"repair_unfinished", "import_unfinished"}) {
    ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_meta(mark, "left").ok());
  }
  ASSERT_EQ(0, mkfs());
  EXPECT_EQ(0, mount());
}

// The mark of an import has a line for each: these would be read as other names.
TEST_F(MountTest, AnArchiveWhoseNameNoLineHoldsIsRefused) {
  ASSERT_EQ(0, mkfs());
  for (const char* archive : {"/an\narchive", "/archive "}) {
    SwimStore store(g_ceph_context, kPath, &m_env);
    bool again = false;
    EXPECT_EQ(vtkv::Status::Code::invalid_argument, store.begin_import(archive, &again).code());
    store.umount();
  }
  EXPECT_EQ(0, mount());
}

// What is missing of a PG would pass for removed.
TEST_F(MountTest, AStoreIntoWhichAnImportWasCutShortIsLeftToImport) {
  ASSERT_EQ(0, mkfs());
  bool again = true;
  std::vector<std::string> left;
  for (const std::string archive : {"/archive", "/second"}) {
    SwimStore store(g_ceph_context, kPath, &m_env);
    ASSERT_TRUE(store.begin_import(archive, &again).ok());
    EXPECT_FALSE(again);
    store.umount();
  }
  EXPECT_LT(mount(), 0);
  {
    SwimStore store(g_ceph_context, kPath, &m_env);
    const vtkv::Status status = store.try_mount();
    EXPECT_NE(std::string::npos,
              status.message().find("ceph-swimstore-tool import /osd --in /archive', and with --in '/second' again"))
        << status.to_string();
    CheckResult result;
    ASSERT_TRUE(store.check({}, &result).ok());
    EXPECT_EQ(2u, result.errors);
  }
  const std::vector<std::string> both{"/archive", "/second"};
  for (const auto& [archive, others] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"/another", both}, {"/archive", {"/second"}}, {"/second", {}}}) {
    SwimStore store(g_ceph_context, kPath, &m_env);
    ASSERT_FALSE(store.try_mount().ok());
    ASSERT_TRUE(store.begin_import(archive, &again).ok());
    EXPECT_EQ(archive != "/another", again);
    ASSERT_TRUE(store.end_import(archive, &left).ok());
    EXPECT_EQ(others, left);
    store.umount();
  }
  EXPECT_EQ(0, mount());
}

}  // namespace swimstore
