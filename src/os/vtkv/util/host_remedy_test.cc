// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/host_remedy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace vtkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HostRemedy, EachKindOfErrorHasItsOwn) {
  EXPECT_THAT(host_remedy(EMFILE, "/osd"), HasSubstr("LimitNOFILE"));
  EXPECT_THAT(host_remedy(ENFILE, "/osd"), HasSubstr("fs.file-max"));
  EXPECT_THAT(host_remedy(EPERM, "/osd"), AllOf(HasSubstr("'lsattr -R /osd'"), HasSubstr("'chattr -R -ia /osd'")));
  EXPECT_THAT(host_remedy(EROFS, "/osd"), AllOf(HasSubstr("remount,rw"), HasSubstr("-T /osd)")));
  EXPECT_THAT(host_remedy(EDQUOT, "/osd"), HasSubstr("quota"));
  EXPECT_THAT(host_remedy(ENOSPC, "/osd"), HasSubstr("free space"));
  EXPECT_THAT(host_remedy(EFBIG, "/osd"), HasSubstr("LimitFSIZE"));
  EXPECT_THAT(host_remedy(ENOMEM, "/osd"), HasSubstr("memory"));
}

TEST(HostRemedy, OnlyTheDiskHasNone) {
  EXPECT_EQ(host_remedy(EIO, "/osd"), "");
  EXPECT_EQ(host_remedy(0, "/osd"), "");
  for (const int error_number : {EMFILE, ENFILE, EPERM, EACCES, EROFS, EDQUOT, ENOSPC, EFBIG, ENOMEM}) {
    EXPECT_THAT(host_remedy(error_number, "/osd"), AllOf(Not(""), Not(HasSubstr("disk")))) << error_number;
  }
}

// The command gives the files to the user that the process runs as.
TEST(HostRemedy, OfAnOwnerItNamesTheUserOfTheProcess) {
  const uid_t self = ::geteuid();
  constexpr uid_t kUser = 64045;
  ASSERT_EQ(::seteuid(self == 0 ? kUser : self), 0);
  const std::string text = host_remedy(EACCES, "/osd");
  const std::string chown = "'chown -R " + std::to_string(::geteuid()) + ":" + std::to_string(::getegid()) + " /osd'";
  ASSERT_EQ(::seteuid(self), 0);
  EXPECT_THAT(text, HasSubstr(chown));
  if (self == 0) {
    EXPECT_THAT(host_remedy(EACCES, "/osd"), HasSubstr("security module"));
  }
}

TEST(HostRemedy, IsAddedToWhatTheHostRefused) {
  const auto text = [](int error_number, const std::string& what) {
    return std::string(with_host_remedy(Status::from_errno(error_number, what), "/osd").message());
  };
  EXPECT_THAT(text(EMFILE, "cannot open /fast/log"), HasSubstr("Too many open files; this process has"));
  EXPECT_THAT(text(EDQUOT, "cannot write /osd/tree"), HasSubstr("exceeded; a quota"));
  EXPECT_THAT(text(EPERM, "cannot open /osd/log"), HasSubstr("lsattr"));
  EXPECT_THAT(text(EPERM, "cannot open /archive"), Not(HasSubstr("lsattr")));
  EXPECT_EQ(text(EIO, "cannot read /osd/log"), "cannot read /osd/log: Input/output error");
  EXPECT_EQ(text(ENOSPC, "no room; enlarge it"), "no room; enlarge it: No space left on device");  // says it itself
  EXPECT_TRUE(with_host_remedy(Status(), "/osd").ok());
}

}  // namespace
}  // namespace vtkv
