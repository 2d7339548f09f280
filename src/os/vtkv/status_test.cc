// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/status.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_number(), 0);
  EXPECT_EQ(status.to_string(), "ok");
}

TEST(Status, ErrnosWithTheirOwnCodes) {
  EXPECT_TRUE(Status::from_errno(ENOENT, "x").is_not_found());
  EXPECT_TRUE(Status::from_errno(ENOSPC, "x").is_no_space());
  EXPECT_TRUE(Status::from_errno(EDQUOT, "x").is_no_space());
  EXPECT_EQ(Status::from_errno(EOPNOTSUPP, "x").code(), Status::Code::unsupported);
  EXPECT_EQ(Status::from_errno(EIO, "x").code(), Status::Code::io_error);
}

TEST(Status, KeepsTheErrnoAndNamesTheThing) {
  const Status status = Status::from_errno(EACCES, "cannot open /store/log");
  EXPECT_EQ(status.error_number(), EACCES);
  EXPECT_EQ(status.to_string(), "I/O error: cannot open /store/log: Permission denied");
}

Status forward(const Status& status) {
  VTKV_RETURN_IF_ERROR(status);
  return Status::failed("went on");
}

TEST(Status, ReturnIfErrorLeavesWithTheError) {
  EXPECT_TRUE(forward(Status::corruption("torn")).is_corruption());
  EXPECT_EQ(forward(Status()).message(), "went on");
}

}  // namespace
}  // namespace vtkv
