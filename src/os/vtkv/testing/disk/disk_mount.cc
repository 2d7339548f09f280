// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/disk_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "vtkv/testing/disk/recorded_disk.h"

namespace vtkv {

namespace {

constexpr int kAttempts = 200;
constexpr std::chrono::milliseconds kPause{20};

// Others may take the number that was free: EBUSY.
int open_loop_device(int control, int file, std::string* path) {
  loop_config config{};
  config.fd = static_cast<uint32_t>(file);
  config.block_size = kDiskBlockBytes;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    *path = fmt::format("/dev/loop{}", number);
    const int device = number < 0 ? -1 : ::open(path->c_str(), O_RDWR | O_CLOEXEC);
    if (device < 0 || ::ioctl(device, LOOP_CONFIGURE, &config) == 0) {
      return device;
    }
    const int error_number = errno;
    ::close(device);
    errno = error_number;
    if (error_number != EBUSY) {
      return -1;
    }
  }
  return -1;
}

const char* make_command(FileSystemKind kind) {
  switch (kind) {
    case FileSystemKind::ext4:
      // Nothing is left to the kernel to do later.
      return "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0";
    case FileSystemKind::xfs:
      return "mkfs.xfs -q -f";
    case FileSystemKind::btrfs:
      return "mkfs.btrfs -q -f";
    case FileSystemKind::other:
      break;
  }
  return nullptr;
}

}  // namespace

Status LoopDevice::attach(const std::string& file, std::unique_ptr<LoopDevice>* device) {
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) {
    return Status::from_errno(errno, "cannot open /dev/loop-control (load the kernel's module loop, and be root)");
  }
  const int backing = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
  std::string path = file;
  const int opened = backing < 0 ? -1 : open_loop_device(control, backing, &path);
  const Status status = opened < 0 ? Status::from_errno(errno, "cannot attach " + file + " to " + path) : Status();
  if (backing >= 0) {
    ::close(backing);
  }
  ::close(control);
  if (status.ok()) {
    device->reset(new LoopDevice(opened, path));
  }
  return status;
}

LoopDevice::~LoopDevice() { ::close(m_descriptor); }  // the last one detaches it

Status LoopDevice::invalidate() {
  return ::ioctl(m_descriptor, BLKFLSBUF) == 0 ? Status()
                                               : Status::from_errno(errno, "cannot forget what is cached of " + m_path);
}

Status LoopDevice::make_file_system(FileSystemKind kind, const std::string& options) {
  const char* const command = make_command(kind);
  const int status =
      command == nullptr ? -1 : std::system(fmt::format("{} {} {} >/dev/null", command, options, m_path).c_str());
  if (status != 0) {
    return Status::unsupported(fmt::format("cannot make {0} on {1}: install mkfs.{0}, or correct its options '{2}'",
                                           to_string(kind), m_path, options));
  }
  return invalidate();
}

Status DiskMount::mount(const LoopDevice& device, FileSystemKind kind, const std::string& directory,
                        std::unique_ptr<DiskMount>* mount) {
  const std::string type(to_string(kind));
  if (::mount(device.path().c_str(), directory.c_str(), type.c_str(), MS_NOATIME, nullptr) != 0) {
    return Status::from_errno(errno, fmt::format("cannot mount {} as {}", device.path(), type));
  }
  mount->reset(new DiskMount(directory));
  return {};
}

Status DiskMount::unmount() {
  for (int attempt = 1; ::umount2(m_directory.c_str(), 0) != 0; ++attempt) {
    if (errno != EBUSY || attempt == kAttempts) {
      return Status::from_errno(errno, "cannot unmount " + m_directory);
    }
    std::this_thread::sleep_for(kPause);
  }
  m_is_mounted = false;
  return {};
}

DiskMount::~DiskMount() {
  if (m_is_mounted) {
    ::umount2(m_directory.c_str(), MNT_DETACH);
  }
}

}  // namespace vtkv
