// SPDX-License-Identifier: LGPL-2.1-or-later
// The result of an operation that can fail for a reason the caller did not create.
//
// A Status is cheap when it is ok (one null pointer). A failed one carries a code, an errno where the
// host gave one, and one sentence that names the thing that failed. Thread-safety: immutable after
// construction; copies share nothing mutable.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace vtkv {

class [[nodiscard]] Status {
 public:
  enum class Code {
    ok,
    not_found,         // the key, file or database does not exist
    corruption,        // bytes on disk contradict their checksum or each other
    io_error,          // the host refused or failed an operation
    no_space,          // the host has no room
    invalid_argument,  // the caller asked for something that can never work
    busy,              // somebody else holds it
    unsupported,       // written by another version, or by a host feature that is missing
    failed,            // the database stopped after an earlier fatal error
  };

  Status() = default;
  static Status make(Code code, std::string message, int error_number = 0) {
    Status status;
    status.m_rep = std::make_shared<const Rep>(Rep{code, error_number, std::move(message)});
    return status;
  }
  static Status not_found(std::string message) { return make(Code::not_found, std::move(message), ENOENT); }
  static Status corruption(std::string message) { return make(Code::corruption, std::move(message), EIO); }
  static Status invalid_argument(std::string message) {
    return make(Code::invalid_argument, std::move(message), EINVAL);
  }
  static Status busy(std::string message) { return make(Code::busy, std::move(message), EBUSY); }
  static Status unsupported(std::string message) { return make(Code::unsupported, std::move(message), EOPNOTSUPP); }
  static Status failed(std::string message) { return make(Code::failed, std::move(message), EIO); }
  // From a host errno (positive); ENOSPC and ENOENT map to their own codes.
  static Status from_errno(int error_number, std::string message);

  // The same, in other words. REQUIRES: not ok.
  Status with_message(std::string message) const { return make(code(), std::move(message), error_number()); }

  bool ok() const { return m_rep == nullptr; }
  Code code() const { return m_rep ? m_rep->code : Code::ok; }
  bool is_not_found() const { return code() == Code::not_found; }
  bool is_corruption() const { return code() == Code::corruption; }
  bool is_no_space() const { return code() == Code::no_space; }
  // A positive errno for interfaces that speak errno; 0 when ok.
  int error_number() const { return m_rep ? m_rep->error_number : 0; }
  std::string_view message() const { return m_rep ? std::string_view(m_rep->message) : std::string_view("ok"); }
  std::string to_string() const;

 private:
  struct Rep {
    Code code;
    int error_number;
    std::string message;
  };
  std::shared_ptr<const Rep> m_rep;
};

}  // namespace vtkv

// Leaves the calling function with the status of `expression` unless it is ok.
#define VTKV_RETURN_IF_ERROR(expression)                                \
  do {                                                                  \
    if (::vtkv::Status vtkv_status = (expression); !vtkv_status.ok()) { \
      return vtkv_status;                                               \
    }                                                                   \
  } while (false)
