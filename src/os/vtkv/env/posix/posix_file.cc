// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/posix_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/sync_failures.h"

#ifndef FALLOC_FL_WRITE_ZEROES
#define FALLOC_FL_WRITE_ZEROES 0x80  // Linux 6.17
#endif

namespace vtkv {

namespace {

constexpr size_t kZeroSlice = 1 << 20;
constexpr uint32_t kExtentsAtOnce = 512;

// What of [begin, end) lies before `bytes`, behind the ranges that are there.
void add_range(uint64_t begin, uint64_t end, uint64_t bytes, std::vector<FileRange>* ranges) {
  end = std::min(end, bytes);
  if (begin >= end) {
    return;
  }
  if (!ranges->empty() && ranges->back().offset + ranges->back().length == begin) {
    ranges->back().length += end - begin;
  } else {
    ranges->push_back({begin, end - begin});
  }
}

const char* zero_slice() {
  // Never freed: files may be written while the process exits.
  static const AlignedBuffer& zeros = *[] {
    auto* const buffer = new AlignedBuffer;
    buffer->append(std::string(kZeroSlice, '\0'));
    return buffer;
  }();
  return zeros.data();
}

}  // namespace

// Creation is a step of its own, so that what others put there meanwhile is never taken for ours.
int PosixFile::open_descriptor(const std::string& path, int flags, Creation creation) {
  flags |= O_NOFOLLOW;
  for (;;) {
    int descriptor = -1;
    errno = ENOENT;
    if (creation != Creation::always) {
      descriptor = ::open(path.c_str(), flags);
    }
    if (descriptor < 0 && errno == ENOENT && creation != Creation::never) {
      descriptor = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
      if (descriptor >= 0) {
        ::fchmod(descriptor, 0600);  // whatever the umask
        give_to_owner_of_directory(descriptor, path);
      } else if (errno == EEXIST && creation == Creation::when_missing) {
        continue;  // somebody was faster
      }
    }
    if (descriptor >= 0 || errno != EINTR) {
      return descriptor;
    }
  }
}

Status PosixFile::open_failed(int error_number, const std::string& path) {
  if (error_number == ELOOP) {
    return Status::from_errno(ELOOP,
                              path + " is a symbolic link, and none is followed here: put the file itself there");
  }
  return Status::from_errno(error_number, "cannot open " + path);
}

// Where that is refused it stays root's; who cannot open it then says so.
void PosixFile::give_to_owner_of_directory(int descriptor, const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  struct stat directory{};
  if (::geteuid() == 0 && ::stat(parent.empty() ? "." : parent.c_str(), &directory) == 0) {
    (void)!::fchown(descriptor, directory.st_uid, directory.st_gid);
  }
}

Status PosixFile::open(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) {
  const int flags = O_CLOEXEC | (options.read_only ? O_RDONLY : O_RDWR) | (options.direct ? O_DIRECT : 0);
  const Creation creation = !options.create     ? Creation::never
                            : options.exclusive ? Creation::always
                                                : Creation::when_missing;
  const int descriptor = open_descriptor(path, flags, creation);
  if (descriptor >= 0) {
    file->reset(new PosixFile(descriptor, path));
    return {};
  }
  const int error_number = errno;
  if (error_number == EINVAL && options.direct) {
    return Status::unsupported("cannot open " + path +
                               ": its file system has no direct I/O; use ext4, xfs or btrfs on a disk");
  }
  return open_failed(error_number, path);
}

PosixFile::~PosixFile() { ::close(m_descriptor); }

Status PosixFile::error(int error_number, const char* action, uint64_t offset) const {
  return Status::from_errno(error_number,
                            std::string("cannot ") + action + " " + m_path + " at " + std::to_string(offset));
}

Status PosixFile::past_end(uint64_t offset) const {
  return Status::corruption(m_path + " ends before " + std::to_string(offset) + ", where more was expected");
}

Status PosixFile::read(uint64_t offset, size_t length, char* destination) {
  size_t done = 0;
  while (done < length) {
    const ssize_t got = ::pread(m_descriptor, destination + done, length - done, static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      // Direct I/O refuses to go on where an unaligned file ended.
      if (errno == EINVAL && done % kIoAlignment != 0) {
        return past_end(offset + length);
      }
      return error(errno, "read", offset + done);
    }
    if (got == 0) {
      return past_end(offset + length);
    }
    done += static_cast<size_t>(got);
  }
  return {};
}

Status PosixFile::write(uint64_t offset, const char* source, size_t length) {
  size_t done = 0;
  while (done < length) {
    const ssize_t put = ::pwrite(m_descriptor, source + done, length - done, static_cast<off_t>(offset + done));
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      return error(errno, "write", offset + done);
    }
    if (put == 0) {
      return error(EIO, "write", offset + done);
    }
    done += static_cast<size_t>(put);
  }
  return {};
}

Status PosixFile::sync() {
  // Not retried on any error: the kernel may have dropped the pages.
  if (::fdatasync(m_descriptor) != 0) {
    return note_sync(Status::from_errno(errno, "cannot sync " + m_path));
  }
  return {};
}

Status PosixFile::size(uint64_t* bytes) {
  struct stat status{};
  if (::fstat(m_descriptor, &status) != 0) {
    return Status::from_errno(errno, "cannot stat " + m_path);
  }
  *bytes = static_cast<uint64_t>(status.st_size);
  return {};
}

Status PosixFile::truncate(uint64_t bytes) {
  int result = 0;
  do {
    result = ::ftruncate(m_descriptor, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Status() : error(errno, "truncate", bytes);
}

Status PosixFile::change_allocation(int mode, uint64_t offset, uint64_t length, const char* action) {
  if (length == 0) {
    return {};
  }
  int result = 0;
  do {
    result = ::fallocate(m_descriptor, mode, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Status() : error(errno, action, offset);
}

Status PosixFile::allocate(uint64_t offset, uint64_t length) {
  return change_allocation(0, offset, length, "reserve space in");
}

Status PosixFile::punch_hole(uint64_t offset, uint64_t length) {
  return change_allocation(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length, "punch a hole in");
}

Status PosixFile::write_zeros(uint64_t offset, uint64_t length) {
  const Status zeroed = change_allocation(FALLOC_FL_WRITE_ZEROES, offset, length, "write zeros to");
  if (zeroed.ok() || zeroed.is_no_space()) {
    return zeroed;
  }
  // The kernel, the file system or the device cannot: write them. Reserving first asks for one extent.
  const Status reserved = allocate(offset, length);
  if (!reserved.ok() && reserved.code() != Status::Code::unsupported) {
    return reserved;
  }
  for (uint64_t done = 0; done < length;) {
    const size_t slice = std::min<uint64_t>(kZeroSlice, length - done);
    VTKV_RETURN_IF_ERROR(write(offset + done, zero_slice(), slice));
    done += slice;
  }
  return {};
}

// SEEK_HOLE takes space that was reserved and never written for a hole; the map of extents tells them apart.
Status PosixFile::map_space(FileSpace* space) {
  *space = {};
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(size(&bytes));
  std::vector<uint64_t> memory((sizeof(fiemap) + kExtentsAtOnce * sizeof(fiemap_extent)) / sizeof(uint64_t));
  auto* const map = reinterpret_cast<fiemap*>(memory.data());
  for (uint64_t at = 0; at < bytes;) {
    std::fill(memory.begin(), memory.end(), 0);
    map->fm_start = at;
    map->fm_length = bytes - at;
    map->fm_extent_count = kExtentsAtOnce;
    if (::ioctl(m_descriptor, FS_IOC_FIEMAP, map) != 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno == ENOTTY || errno == EOPNOTSUPP ? Status::unsupported("no map of the extents of " + m_path)
                                                    : error(errno, "map the extents of", at);
    }
    for (uint32_t i = 0; i < map->fm_mapped_extents; i++) {
      const fiemap_extent& extent = map->fm_extents[i];
      const uint64_t end = extent.fe_logical + extent.fe_length;
      add_range(at, extent.fe_logical, bytes, &space->holes);
      if ((extent.fe_flags & FIEMAP_EXTENT_UNWRITTEN) != 0) {
        add_range(extent.fe_logical, end, bytes, &space->unwritten);
      }
      at = std::max<uint64_t>(at, end);
    }
    if (map->fm_mapped_extents < kExtentsAtOnce) {
      add_range(at, bytes, bytes, &space->holes);
      at = bytes;
    }
  }
  return {};
}

}  // namespace vtkv
