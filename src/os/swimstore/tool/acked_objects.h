// SPDX-License-Identifier: LGPL-2.1-or-later
// Which objects of a bench's store are acknowledged, and their size. In a file they outlive the process, however
// it ends: the next one knows what the store must hold (all but what was being deleted).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace swimstore {

class AckedObjects {
 public:
  // Of one PG: numbers from `first` to before `end`. Changed by whoever is told of a commit.
  struct Entry {
    std::atomic<uint64_t> first{0}, end{0};

    uint64_t count() const { return end - first; }
  };

  AckedObjects() = default;
  ~AckedObjects();
  AckedObjects(const AckedObjects&) = delete;
  AckedObjects& operator=(const AckedObjects&) = delete;

  // Once, one of the two. No objects yet, which will be of so many bytes; `file` empty: in memory. Returns 0 or a
  // negative errno; -EINVAL: too many PGs.
  int create(const std::string& file, unsigned pgs, uint64_t object_bytes);
  // -EINVAL: that is no such file.
  int open(const std::string& file);

  unsigned pgs() const { return m_pgs; }
  uint64_t object_bytes() const { return m_object_bytes; }
  Entry& pg(unsigned number) { return m_entries[number]; }

 private:
  int map(int fd);

  unsigned m_pgs = 0;
  uint64_t m_object_bytes = 0;
  void* m_mapped = nullptr;
  Entry* m_entries = nullptr;
  std::vector<Entry> m_in_memory;
};

}  // namespace swimstore
