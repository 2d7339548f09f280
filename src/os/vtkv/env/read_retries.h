// SPDX-License-Identifier: LGPL-2.1-or-later
// One read decides nothing: what fails, or does not match its checksum, may be right when it is read again.
#pragma once

#include "vtkv/env.h"

namespace vtkv {

// Calls `read` until it is ok, kReadTries times at most, and returns what it said last. It reads, and looks at what it
// has read. Code::unsupported and Code::not_found end it at once: what a newer program wrote, or nobody, is no misread.
template <typename Read>
Status read_with_retries(const Read& read) {
  Status status;
  for (int tries = 0; tries < kReadTries; ++tries) {
    status = read();
    if (status.ok() || status.is_not_found() || status.code() == Status::Code::unsupported) {
      break;
    }
  }
  return status;
}

}  // namespace vtkv
