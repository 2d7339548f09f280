// SPDX-License-Identifier: LGPL-2.1-or-later
// A disk of 4 KiB blocks in memory, and everything that was ever asked of it.
//
// The memory is shared with a forked process: one of them serves the disk to the kernel (fuse_disk.h), the other
// sets marks, takes the record and puts other contents on the disk. Content is copied once and never changed: an
// image is a table of copies, so that making, keeping and showing one costs little.
//
// A block is written whole or not at all; so a loop device over it must have logical blocks of this size.
//
// Thread-safe, over both processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vtkv {

inline constexpr uint32_t kDiskBlockBytes = 4096;
inline constexpr uint64_t kDiskNever = UINT64_MAX;

struct DiskEvent {
  enum class Kind : uint32_t {
    write,
    zeros,  // a discard too: it may read as zeros or as before until a flush, and as zeros then
    flush,
    mark,
  };
  Kind kind = Kind::mark;
  uint32_t block = 0;               // write, zeros: the first
  uint32_t count = 0;               // of blocks
  uint32_t copy = 0;                // write: content of the first; those of the others follow
  uint64_t mark = 0;
  uint64_t submitted = 0;           // in the disk's own time, which counts what happens
  uint64_t completed = kDiskNever;  // when the kernel was told
};

// Of each block, which copy it holds; 0: zeros.
using DiskImage = std::vector<uint32_t>;

struct DiskTrace {
  DiskImage before;
  std::vector<DiskEvent> events;  // by submission
};

class RecordedDisk {
 public:
  // Aborts when there is no memory for the tables. `copies_max`: blocks written until a rewind, at most.
  RecordedDisk(uint64_t bytes, uint32_t copies_max);
  ~RecordedDisk();
  RecordedDisk(const RecordedDisk&) = delete;
  RecordedDisk& operator=(const RecordedDisk&) = delete;

  uint64_t bytes() const { return uint64_t{m_blocks} * kDiskBlockBytes; }

  // Serving. begin_* return the event's index, for complete(). False, or kDiskNever: the request leaves the disk, is
  // not in whole blocks, or finds the tables full.
  bool read(uint64_t offset, size_t length, char* data) const;
  uint64_t begin_write(uint64_t offset, size_t length, const char* data);
  uint64_t begin_zeros(uint64_t offset, uint64_t length);
  uint64_t begin_flush();
  void complete(uint64_t event);

  // Recording. An acknowledgement is marked when it is given.
  void mark(uint64_t id);
  uint64_t time() const;
  DiskTrace trace() const;
  DiskImage image() const;
  // The disk holds this from now on, and forgets what was asked of it. Nothing may be in flight.
  void show(const DiskImage& image);
  // What was copied since the position was asked for is overwritten by what comes: no image and no trace made
  // since then may be used any more.
  uint32_t position() const;
  void rewind(uint32_t position);
  const char* content(uint32_t copy) const { return m_copies + size_t{copy} * kDiskBlockBytes; }

 private:
  struct Shared;
  bool is_inside(uint64_t offset, uint64_t length) const;
  uint64_t add(DiskEvent event);

  const uint32_t m_blocks;
  const uint32_t m_copies_max;
  DiskImage m_before;    // what was shown last; in the process that tests
  Shared* m_shared;      // these four: memory that both processes see
  uint32_t* m_table;     // of each block, its copy
  DiskEvent* m_events;
  char* m_copies;
};

}  // namespace vtkv
