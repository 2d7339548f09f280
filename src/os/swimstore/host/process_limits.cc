// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/process_limits.h"

#include <signal.h>
#include <sys/resource.h>

#include <fmt/format.h>

namespace swimstore {

namespace {
// Some runtimes write "unlimited" as the greatest number of a file's size. No file system has such files.
constexpr rlim_t kNoLimit = rlim_t{1} << 60;
}  // namespace

vtkv::Status check_file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kNoLimit) {
    return {};
  }
  return vtkv::Status::invalid_argument(
      fmt::format("this process may write files of at most {} bytes (RLIMIT_FSIZE), and those of a store grow beyond "
                  "any limit: take LimitFSIZE out of its unit ('systemctl edit', or LimitFSIZE=infinity), or run "
                  "'ulimit -f unlimited' before",
                  limit.rlim_cur));
}

void ignore_file_size_signal() { ::signal(SIGXFSZ, SIG_IGN); }

}  // namespace swimstore
