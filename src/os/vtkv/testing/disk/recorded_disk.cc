// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/recorded_disk.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vtkv {

namespace {

constexpr uint32_t kEventsMax = 1u << 20;

template <class T>
T* share(size_t count) {
  // Pages that nobody touches take no memory.
  void* const memory =
      ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("a recorded disk: no memory");
    std::abort();
  }
  return static_cast<T*>(memory);
}

}  // namespace

struct RecordedDisk::Shared {
  pthread_mutex_t mutex;
  uint64_t time = 0;
  uint32_t events = 0;
  uint32_t copies = 1;  // the first is of zeros

  Shared() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
};

namespace {

class Guard {
 public:
  // A tester killed while it holds the mutex must not hang the server, and with it the kernel's unmount. What the
  // tester was about to put on the disk may then be there in part; nobody is left to judge it.
  explicit Guard(pthread_mutex_t* mutex) : m_mutex(mutex) {
    if (pthread_mutex_lock(m_mutex) == EOWNERDEAD) {
      pthread_mutex_consistent(m_mutex);
    }
  }
  ~Guard() { pthread_mutex_unlock(m_mutex); }

 private:
  pthread_mutex_t* const m_mutex;
};

}  // namespace

RecordedDisk::RecordedDisk(uint64_t bytes, uint32_t copies_max)
    : m_blocks(static_cast<uint32_t>(bytes / kDiskBlockBytes)),
      m_copies_max(copies_max),
      m_before(m_blocks),
      m_shared(new(share<Shared>(1)) Shared),
      m_table(share<uint32_t>(m_blocks)),
      m_events(share<DiskEvent>(kEventsMax)),
      m_copies(share<char>(size_t{copies_max} * kDiskBlockBytes)) {}

RecordedDisk::~RecordedDisk() {
  ::munmap(m_copies, size_t{m_copies_max} * kDiskBlockBytes);
  ::munmap(m_events, kEventsMax * sizeof(DiskEvent));
  ::munmap(m_table, m_blocks * sizeof(uint32_t));
  ::munmap(m_shared, sizeof(Shared));
}

bool RecordedDisk::is_inside(uint64_t offset, uint64_t length) const {
  return offset % kDiskBlockBytes == 0 && length % kDiskBlockBytes == 0 && offset <= bytes() &&
         length <= bytes() - offset;
}

bool RecordedDisk::read(uint64_t offset, size_t length, char* data) const {
  if (!is_inside(offset, length)) {
    return false;
  }
  Guard guard(&m_shared->mutex);
  for (size_t done = 0; done < length; done += kDiskBlockBytes) {
    std::memcpy(data + done, content(m_table[(offset + done) / kDiskBlockBytes]), kDiskBlockBytes);
  }
  return true;
}

uint64_t RecordedDisk::add(DiskEvent event) {
  if (m_shared->events == kEventsMax) {
    return kDiskNever;
  }
  event.submitted = ++m_shared->time;
  m_events[m_shared->events] = event;
  return m_shared->events++;
}

uint64_t RecordedDisk::begin_write(uint64_t offset, size_t length, const char* data) {
  Guard guard(&m_shared->mutex);
  DiskEvent event{.kind = DiskEvent::Kind::write,
                  .block = static_cast<uint32_t>(offset / kDiskBlockBytes),
                  .count = static_cast<uint32_t>(length / kDiskBlockBytes),
                  .copy = m_shared->copies};
  if (!is_inside(offset, length) || m_copies_max - m_shared->copies < event.count || m_shared->events == kEventsMax) {
    return kDiskNever;
  }
  m_shared->copies += event.count;
  std::memcpy(m_copies + size_t{event.copy} * kDiskBlockBytes, data, length);
  for (uint32_t i = 0; i < event.count; ++i) {
    m_table[event.block + i] = event.copy + i;
  }
  return add(event);
}

uint64_t RecordedDisk::begin_zeros(uint64_t offset, uint64_t length) {
  if (!is_inside(offset, length)) {
    return kDiskNever;
  }
  Guard guard(&m_shared->mutex);
  const DiskEvent event{.kind = DiskEvent::Kind::zeros,
                        .block = static_cast<uint32_t>(offset / kDiskBlockBytes),
                        .count = static_cast<uint32_t>(length / kDiskBlockBytes)};
  std::fill_n(m_table + event.block, event.count, 0);
  return add(event);
}

uint64_t RecordedDisk::begin_flush() {
  Guard guard(&m_shared->mutex);
  return add({.kind = DiskEvent::Kind::flush});
}

void RecordedDisk::complete(uint64_t event) {
  Guard guard(&m_shared->mutex);
  m_events[event].completed = ++m_shared->time;
}

void RecordedDisk::mark(uint64_t id) {
  Guard guard(&m_shared->mutex);
  const uint64_t event = add({.kind = DiskEvent::Kind::mark, .mark = id});
  if (event == kDiskNever) {
    std::fprintf(stderr, "a recorded disk: more than %u events\n", kEventsMax);
    std::abort();
  }
  m_events[event].completed = m_shared->time;
}

uint64_t RecordedDisk::time() const {
  Guard guard(&m_shared->mutex);
  return m_shared->time;
}

DiskTrace RecordedDisk::trace() const {
  Guard guard(&m_shared->mutex);
  return {m_before, {m_events, m_events + m_shared->events}};
}

DiskImage RecordedDisk::image() const {
  Guard guard(&m_shared->mutex);
  return DiskImage(m_table, m_table + m_blocks);
}

void RecordedDisk::show(const DiskImage& image) {
  Guard guard(&m_shared->mutex);
  std::copy(image.begin(), image.end(), m_table);
  m_before = image;
  m_shared->events = 0;
}

uint32_t RecordedDisk::position() const {
  Guard guard(&m_shared->mutex);
  return m_shared->copies;
}

void RecordedDisk::rewind(uint32_t position) {
  Guard guard(&m_shared->mutex);
  m_shared->copies = position;
}

}  // namespace vtkv
