// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/leveldb_env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "vtkv/tool/bench/peer_options.h"

namespace vtkv::bench {

namespace {

constexpr uint64_t kAlignment = 4096;
constexpr size_t kBufferBytes = 64 << 10;

leveldb::Status error_of(const std::string& path) { return leveldb::Status::IOError(path, std::strerror(errno)); }

class DirectTable final : public leveldb::RandomAccessFile {
 public:
  DirectTable(std::string path, int fd) : m_path(std::move(path)), m_fd(fd) {}
  ~DirectTable() override { ::close(m_fd); }

  leveldb::Status Read(uint64_t offset, size_t bytes, leveldb::Slice* result, char* scratch) const override {
    const uint64_t start = offset & ~(kAlignment - 1);
    const size_t length = (offset + bytes + kAlignment - 1 - start) & ~(kAlignment - 1);
    // One buffer per thread: reads of a block are about as long as one another.
    thread_local struct Buffer {
      char* data = nullptr;
      size_t bytes = 0;
      ~Buffer() { std::free(data); }
    } buffer;
    if (buffer.bytes < length) {
      std::free(buffer.data);
      buffer.data = static_cast<char*>(std::aligned_alloc(kAlignment, length));
      buffer.bytes = length;
    }
    const ssize_t got = ::pread(m_fd, buffer.data, length, static_cast<off_t>(start));
    if (got < 0) {
      return error_of(m_path);
    }
    const size_t skip = offset - start;
    const size_t usable = static_cast<size_t>(got) > skip ? std::min(bytes, static_cast<size_t>(got) - skip) : 0;
    std::memcpy(scratch, buffer.data + skip, usable);
    *result = leveldb::Slice(scratch, usable);
    return leveldb::Status::OK();
  }

 private:
  const std::string m_path;
  const int m_fd;
};

class SteadyFile final : public leveldb::WritableFile {
 public:
  SteadyFile(std::string path, int fd) : m_path(std::move(path)), m_fd(fd) { m_buffer.reserve(kBufferBytes); }
  ~SteadyFile() override {
    if (m_fd >= 0) {
      Close();
    }
  }

  leveldb::Status Append(const leveldb::Slice& data) override {
    m_buffer.append(data.data(), data.size());
    return m_buffer.size() < kBufferBytes ? leveldb::Status::OK() : Flush();
  }
  leveldb::Status Flush() override {
    for (size_t at = 0; at < m_buffer.size();) {
      const ssize_t put = ::write(m_fd, m_buffer.data() + at, m_buffer.size() - at);
      if (put < 0) {
        return error_of(m_path);
      }
      at += static_cast<size_t>(put);
    }
    m_written += m_buffer.size();
    m_buffer.clear();
    if (m_written - m_started >= peer::kBytesPerSync) {
      ::sync_file_range(m_fd, static_cast<off_t>(m_started), static_cast<off_t>(m_written - m_started),
                        SYNC_FILE_RANGE_WRITE);
      m_started = m_written;
    }
    return leveldb::Status::OK();
  }
  leveldb::Status Sync() override {
    const leveldb::Status flushed = Flush();
    if (!flushed.ok()) {
      return flushed;
    }
    return ::fdatasync(m_fd) == 0 ? leveldb::Status::OK() : error_of(m_path);
  }
  leveldb::Status Close() override {
    const leveldb::Status flushed = Flush();
    ::posix_fadvise(m_fd, 0, 0, POSIX_FADV_DONTNEED);
    const bool closed = ::close(m_fd) == 0;
    m_fd = -1;
    return flushed.ok() && !closed ? error_of(m_path) : flushed;
  }

 private:
  const std::string m_path;
  int m_fd;
  std::string m_buffer;
  uint64_t m_written = 0, m_started = 0;  // bytes of the file; handed to the device so far
};

class DirectEnv final : public leveldb::EnvWrapper {
 public:
  DirectEnv() : EnvWrapper(leveldb::Env::Default()) {}

  leveldb::Status NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** file) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) {
      return errno == ENOENT ? leveldb::Status::NotFound(path, std::strerror(errno)) : error_of(path);
    }
    *file = new DirectTable(path, fd);
    return leveldb::Status::OK();
  }
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** file) override {
    // The manifest and CURRENT need the directory's sync that LevelDB's own file does.
    if (!path.ends_with(".log") && !path.ends_with(".ldb")) {
      return target()->NewWritableFile(path, file);
    }
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
      return error_of(path);
    }
    *file = new SteadyFile(path, fd);
    return leveldb::Status::OK();
  }
};

}  // namespace

leveldb::Env* direct_leveldb_env() {
  static leveldb::Env* const env = new DirectEnv;
  return env;
}

}  // namespace vtkv::bench
