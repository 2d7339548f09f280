// SPDX-License-Identifier: LGPL-2.1-or-later
// The single-flush rule, asked of a file system itself, with no store in between: does a sync of one file make
// durable the direct writes to another?
//
// A file is made durable, then written to directly; another one is written to and synced; then the power fails, and
// everything is lost that no flush covers. What is left of the first file is the answer.
#pragma once

#include <string>
#include <vector>

#include "vtkv/testing/disk/disk_lab.h"

namespace vtkv {

struct FlushQuestion {
  bool written_before = false;  // else its space is only reserved (fallocate)
  enum class Synced { nothing, other_file, own_file } synced = Synced::nothing;

  std::string to_string() const;
};

struct FlushAnswer {
  FlushQuestion question;
  unsigned kept = 0;    // of the blocks written
  unsigned blocks = 0;
};

// Each question once, on a file system of its own.
Status ask_flush_rule(DiskLab& lab, std::vector<FlushAnswer>* answers);

}  // namespace vtkv
