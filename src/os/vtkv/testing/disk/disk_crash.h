// SPDX-License-Identifier: LGPL-2.1-or-later
// The contents that a loss of power could leave on a recorded disk, as the block layer promises them: a completed
// flush makes durable every write that had completed when the flush was submitted; of every other write any set of
// its blocks may be there.
//
// Crashes are taken where most is in doubt: just before a flush completes, and at the end of the record. Of the
// writes in doubt there: none, all, those up to some moment, all but one, one alone, any half; and any half of them
// with any half of their blocks.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "vtkv/testing/disk/recorded_disk.h"

namespace vtkv {

struct DiskCrash {
  uint64_t time = 0;                 // of the disk
  DiskImage image;
  std::vector<uint64_t> marks;       // set before it
  std::string story;                 // how it was chosen
};

class DiskCrashes {
 public:
  // `from`: no crash before that time of the disk.
  explicit DiskCrashes(DiskTrace trace, uint64_t from = 0);

  size_t moments() const { return m_moments.size(); }
  // All kinds come by turns.
  DiskCrash next(std::mt19937_64& random);
  // Everything in doubt lost, at the end of the record.
  DiskCrash nothing_landed();

 private:
  std::vector<const DiskEvent*> in_doubt(uint64_t time, DiskImage* durable) const;
  DiskCrash crash(uint64_t time, unsigned kind, std::mt19937_64& random) const;

  const DiskTrace m_trace;
  std::vector<uint64_t> m_moments;
  unsigned m_next_kind = 0;
};

}  // namespace vtkv
