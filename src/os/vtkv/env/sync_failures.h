// SPDX-License-Identifier: LGPL-2.1-or-later
// Knows whether a sync of this process has failed: then no later one can be believed, of whatever file.
//
// A device that fails a flush may have dropped what was in its cache, and the kernel tells of it once, to the caller
// of that sync. Where one flush covers all files, or one file has several writers, the writes that are lost may be
// those that somebody else is about to sync: that sync then succeeds and means nothing. So who promises durability
// looks here after a sync and before the promise. A failure for want of space is one like any other: what it did not
// write is dropped as well.
//
// Thread-safe. Of the whole process: a second store on a sound disk ends as well.
#pragma once

#include <cstdint>

#include "vtkv/status.h"

namespace vtkv {

// Every back end passes the outcome of every sync, of files and directories, through here. What comes back is never
// Code::no_space, which stands for what may be tried again.
Status note_sync(Status status);

class SyncWatch {
 public:
  SyncWatch();
  // Ok: none has failed since this was made.
  Status check() const;

 private:
  const uint64_t m_failures_before;
};

}  // namespace vtkv
