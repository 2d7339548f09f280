// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/sync_loss.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <filesystem>
#include <fstream>

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNotFlushed = "write through";
constexpr std::string_view kFlushed = "write back";

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The driver's word on the cache of a disk.
std::string read_cache_type(const fs::path& block) {
  std::error_code error;
  for (fs::directory_iterator disk(block / "device" / "scsi_disk", error), end; !error && disk != end;
       disk.increment(error)) {
    return first_line(disk->path() / "cache_type");
  }
  return first_line(block / "cache_type");
}

CacheFacts read_cache_facts(const fs::path& block) {
  std::error_code error;
  return {first_line(block / "queue" / "write_cache"), first_line(block / "queue" / "fua"), read_cache_type(block),
          fs::exists(block / "loop" / "backing_file", error)};
}

// A partition has no queue of its own, and a mapped or striped device lies on others.
std::string find_unflushed(fs::path block) {
  std::error_code error;
  if (fs::exists(block / "partition", error)) {
    block = block.parent_path();
  }
  if (is_unflushed(read_cache_facts(block))) {
    return block.filename().string();
  }
  for (fs::directory_iterator slave(block / "slaves", error), end; !error && slave != end; slave.increment(error)) {
    const fs::path below = fs::canonical(slave->path(), error);
    const std::string found = error ? "" : find_unflushed(below);
    if (!found.empty()) {
      return found;
    }
  }
  return {};
}

Mount mount_of(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  std::ifstream mountinfo("/proc/self/mountinfo");
  return find_mount(mountinfo, error ? path : resolved.string());
}

}  // namespace

std::string describe_sync_loss(const SyncFacts& facts) {
  if (facts.has_magic_of_ext4 && (facts.type == "ext2" || facts.type == "ext3")) {
    return "an " + facts.type +
           ", on which nobody has proven that a sync outlives a loss of power: make an ext4 or an xfs in its place, "
           "and the store on that";
  }
  if (facts.journal_task == "<none>") {
    return "an ext4 without a journal, which loses what was synced when the power fails: unmount it, give it one with "
           "'tune2fs -O has_journal /dev/" +
           facts.device + "', and mount it again";
  }
  if (has_option(facts.options, "nobarrier") || has_option(facts.options, "barrier=0")) {
    return "a file system that is mounted with 'nobarrier', so that a sync does not flush the disk's cache: take the "
           "word out of its line in /etc/fstab, and run 'mount -o remount,barrier " +
           facts.mount_point + "'";
  }
  return {};
}

std::string find_sync_loss(const std::string& path) {
  struct statfs magic{};
  struct stat status{};
  if (::statfs(path.c_str(), &magic) != 0 || ::stat(path.c_str(), &status) != 0) {
    return {};
  }
  const Mount mount = mount_of(path);
  SyncFacts facts;
  facts.has_magic_of_ext4 = magic.f_type == EXT4_SUPER_MAGIC;
  facts.type = mount.type;
  facts.mount_point = mount.point;
  facts.options = mount.options;
  if (facts.has_magic_of_ext4) {
    facts.device = block_device_name(status.st_dev);
    facts.options += "\n" + read_ext4_file(status.st_dev, "options");
    facts.journal_task = first_line("/sys/fs/ext4/" + facts.device + "/journal_task");
  }
  return describe_sync_loss(facts);
}

bool is_unflushed(const CacheFacts& facts) {
  return facts.write_cache == kNotFlushed && (facts.fua == "1" || facts.cache_type == kFlushed || facts.is_loop);
}

std::string find_unflushed_cache(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return {};
  }
  uint64_t device = status.st_dev;
  // btrfs numbers its subvolumes itself: ask the device that is mounted.
  struct stat source{};
  if (major(device) == 0 && ::stat(mount_of(path).source.c_str(), &source) == 0 && S_ISBLK(source.st_mode)) {
    device = source.st_rdev;
  }
  std::error_code error;
  const fs::path block =
      fs::canonical("/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)), error);
  const std::string found = error ? "" : find_unflushed(block);
  return found.empty() ? ""
                       : path + " lies on the disk " + found +
                             ", whose cache is volatile by its driver, and /sys/block/" + found +
                             "/queue/write_cache was set to 'write through' by hand: no sync flushes it. Unless it "
                             "keeps its content without power, write 'write back' into that file, and take out the "
                             "udev rule or the script that sets it";
}

}  // namespace vtkv
