// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/host_remedy.h"

#include <unistd.h>

#include <cerrno>

namespace vtkv {

namespace {

// Root is refused by no owner and no mode.
std::string access_remedy(const std::string& path) {
  if (::geteuid() == 0) {
    return "a security module of the host refuses it to root: look for its denial in the kernel's log";
  }
  const std::string user = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
  return "an owner or a mode refuses it to this process: 'namei -l " + path + "' shows the way there, 'chown -R " +
         user + " " + path + "' and 'chmod -R u+rwX " + path + "' open it";
}

}  // namespace

std::string host_remedy(int error_number, const std::string& path) {
  switch (error_number) {
    case EMFILE:
      return "this process has as many files open as it may: raise its limit of descriptors (LimitNOFILE of its unit, "
             "ulimit -n), and start it again";
    case ENFILE:
      return "all processes of the host together have as many files open as they may: raise fs.file-max (sysctl)";
    case EPERM:
      return "an attribute keeps the file as it is: 'lsattr -R " + path + "' shows the letter i or a, 'chattr -R -ia " +
             path + "' takes it away";
    case EACCES:
      return access_remedy(path);
    case EROFS:
      return "the file system is read-only: the kernel's log says so where the kernel made it so, and then it is to be "
             "unmounted and checked; where somebody mounted it so, run 'mount -o remount,rw \"$(findmnt -no TARGET "
             "-T " +
             path + ")\"'";
    case EDQUOT:
      return "a quota of the file system is used up: 'quota -v' or 'xfs_quota -x -c report' shows it; raise it, or "
             "turn "
             "it off for this user";
    case ENOSPC:
      return "the file system is full: free space on it, or enlarge it";
    case EFBIG:
      return "a file may not be that large: take the limit of the process away (LimitFSIZE of its unit, ulimit -f); "
             "where there is none, the file system has one";
    case ENOMEM:
      return "the host has no memory left: free some";
    default:
      return {};
  }
}

Status with_host_remedy(const Status& status, const std::string& path) {
  const int error_number = status.error_number();
  const bool is_of_files = error_number == EPERM || error_number == EACCES || error_number == EROFS;
  const bool is_of_host = status.code() == Status::Code::io_error || error_number == EDQUOT;
  if (!is_of_host || (is_of_files && status.message().find(path) == std::string_view::npos)) {
    return status;
  }
  const std::string remedy = host_remedy(error_number, path);
  return remedy.empty() ? status : status.with_message(std::string(status.message()) + "; " + remedy);
}

}  // namespace vtkv
