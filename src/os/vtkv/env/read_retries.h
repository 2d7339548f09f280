// SPDX-License-Identifier: LGPL-2.1-or-later
// One read decides nothing: what fails, or does not match its checksum, may be right when it is read again.
#pragma once

#include "vtkv/env.h"

namespace vtkv {

// Calls `read` until it is ok, kReadTries times at most, and returns what it said last. It reads, and looks at what it
// has read. Code::unsupported ends it at once: behind a checksum, what a newer program wrote is no misread. That
// nothing was ever written there, Code::not_found, is believed the second time: a device may give zeros once.
template <typename Read>
Status read_with_retries(const Read& read) {
  Status status;
  int blanks = 0;
  for (int tries = 0; tries < kReadTries; ++tries) {
    status = read();
    blanks += status.is_not_found() ? 1 : 0;
    if (status.ok() || status.code() == Status::Code::unsupported || (status.is_not_found() && blanks == 2)) {
      break;
    }
  }
  return status;
}

}  // namespace vtkv
