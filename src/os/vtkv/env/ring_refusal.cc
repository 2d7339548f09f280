// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/ring_refusal.h"

#include <cerrno>

#include "vtkv/util/mutex.h"

namespace vtkv {

namespace {

Mutex lock;
std::string first_refusal GUARDED_BY(lock);

const char* remedy(const Status& refusal) {
  switch (refusal.error_number()) {
    case EPERM:
    case EACCES:
      return "allow io_uring to this process: 'sysctl kernel.io_uring_disabled=0', and in a container a seccomp "
             "profile with io_uring_setup, io_uring_enter and io_uring_register; then start it again";
    case EMFILE:
      return "raise its limit of descriptors (LimitNOFILE of its unit, ulimit -n), and start it again";
    case ENFILE:
      return "raise fs.file-max (sysctl), and start it again";
    case ENOMEM:
      return "raise its limit of locked memory (LimitMEMLOCK of its unit, ulimit -l), and start it again";
    default:
      return "use a kernel that has it, Linux 5.11 or newer";
  }
}

}  // namespace

std::string describe_ring_refusal(const Status& refusal) {
  return "the host refuses io_uring (" + std::string(refusal.message()) +
         "), so that I/O goes on with blocking system calls, slower: " + remedy(refusal);
}

bool note_ring_refusal(const Status& refusal) {
  MutexLock guard(lock);
  const bool is_first = first_refusal.empty();
  if (is_first) {
    first_refusal = describe_ring_refusal(refusal);
  }
  return is_first;
}

std::string ring_refusal() {
  MutexLock guard(lock);
  return first_refusal;
}

}  // namespace vtkv
