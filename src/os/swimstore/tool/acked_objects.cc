// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/acked_objects.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace swimstore {

namespace {

// The file: this, and an entry for each PG, as they lie in memory, to be read again on the same machine.
struct Header {
  uint64_t pgs = 0, object_bytes = 0;
};

constexpr unsigned kPgsMax = 256;
static_assert(sizeof(AckedObjects::Entry) == 16 && std::atomic<uint64_t>::is_always_lock_free);

size_t file_bytes(uint64_t pgs) { return sizeof(Header) + pgs * sizeof(AckedObjects::Entry); }

}  // namespace

AckedObjects::~AckedObjects() {
  if (m_mapped != nullptr) {
    ::munmap(m_mapped, file_bytes(m_pgs));
  }
}

int AckedObjects::create(const std::string& file, unsigned pgs, uint64_t object_bytes) {
  m_pgs = pgs;
  m_object_bytes = object_bytes;
  if (file.empty()) {
    m_in_memory = std::vector<Entry>(pgs);
    m_entries = m_in_memory.data();
    return 0;
  }
  if (pgs > kPgsMax) {
    return -EINVAL;
  }
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return -errno;
  }
  const Header header{pgs, object_bytes};
  // Zeros behind it: no objects.
  if (::write(fd, &header, sizeof header) != sizeof header ||
      ::ftruncate(fd, static_cast<off_t>(file_bytes(pgs))) != 0) {
    const int r = -errno;
    ::close(fd);
    return r;
  }
  return map(fd);
}

int AckedObjects::open(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  struct stat st = {};
  Header header;
  if (::fstat(fd, &st) != 0 || ::read(fd, &header, sizeof header) != sizeof header || header.pgs == 0 ||
      header.pgs > kPgsMax || header.object_bytes == 0 || static_cast<size_t>(st.st_size) != file_bytes(header.pgs)) {
    ::close(fd);
    return -EINVAL;
  }
  m_pgs = static_cast<unsigned>(header.pgs);
  m_object_bytes = header.object_bytes;
  return map(fd);
}

// Closes it.
int AckedObjects::map(int fd) {
  void* const where = ::mmap(nullptr, file_bytes(m_pgs), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int r = where == MAP_FAILED ? -errno : 0;
  ::close(fd);
  if (r < 0) {
    return r;
  }
  m_mapped = where;
  m_entries = reinterpret_cast<Entry*>(static_cast<char*>(where) + sizeof(Header));
  for (unsigned i = 0; i < m_pgs; ++i) {
    if (m_entries[i].end < m_entries[i].first) {
      return -EINVAL;
    }
  }
  return 0;
}

}  // namespace swimstore
