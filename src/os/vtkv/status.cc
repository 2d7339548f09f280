// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/status.h"

#include <cstring>

namespace vtkv {

namespace {

Status::Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
      return Status::Code::not_found;
    case ENOSPC:
    case EDQUOT:
      return Status::Code::no_space;
    case EOPNOTSUPP:
    case ENOSYS:
      return Status::Code::unsupported;
    default:
      return Status::Code::io_error;
  }
}

std::string_view name_of(Status::Code code) {
  switch (code) {
    case Status::Code::ok:
      return "ok";
    case Status::Code::not_found:
      return "not found";
    case Status::Code::corruption:
      return "corruption";
    case Status::Code::io_error:
      return "I/O error";
    case Status::Code::no_space:
      return "no space";
    case Status::Code::invalid_argument:
      return "invalid argument";
    case Status::Code::busy:
      return "busy";
    case Status::Code::unsupported:
      return "unsupported";
    case Status::Code::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace

Status Status::from_errno(int error_number, std::string message) {
  char buffer[128];
  // The GNU strerror_r: returns the text, which need not be in the buffer.
  message += ": ";
  message += strerror_r(error_number, buffer, sizeof buffer);
  return make(code_of_errno(error_number), std::move(message), error_number);
}

std::string Status::to_string() const {
  if (ok()) {
    return "ok";
  }
  std::string text(name_of(code()));
  text += ": ";
  text += message();
  return text;
}

}  // namespace vtkv
