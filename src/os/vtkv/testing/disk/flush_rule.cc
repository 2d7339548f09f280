// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/flush_rule.h"

#include <fcntl.h>
#include <unistd.h>

#include "vtkv/env/aligned_buffer.h"

namespace vtkv {

namespace {

using Synced = FlushQuestion::Synced;

constexpr unsigned kBlocks = 64;
constexpr unsigned kApart = 4;  // blocks of one extent, not side by side: one request each
constexpr FlushQuestion kQuestions[] = {{true, Synced::nothing},     {true, Synced::other_file},
                                        {true, Synced::own_file},    {false, Synced::nothing},
                                        {false, Synced::other_file}, {false, Synced::own_file}};

AlignedBuffer block_of(char byte) {
  AlignedBuffer block;
  block.append(std::string(kDiskBlockBytes, byte));
  return block;
}

Status make_file(const std::string& path, bool written, std::unique_ptr<File>* file) {
  constexpr uint64_t kBytes = uint64_t{kBlocks} * kApart * kDiskBlockBytes;
  VTKV_RETURN_IF_ERROR(posix_env()->open_file(path, {.create = true}, file));
  VTKV_RETURN_IF_ERROR(written ? (*file)->write_zeros(0, kBytes) : (*file)->allocate(0, kBytes));
  return (*file)->sync();
}

// Whatever the file system has begun is done.
Status settle(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int result = descriptor < 0 ? -1 : ::syncfs(descriptor);
  const Status status = result == 0 ? Status() : Status::from_errno(errno, "cannot sync " + directory);
  ::close(descriptor);
  return status;
}

Status write_and_sync(const std::string& directory, const FlushQuestion& question) {
  std::unique_ptr<File> data;
  std::unique_ptr<File> log;
  VTKV_RETURN_IF_ERROR(make_file(directory + "/data", question.written_before, &data));
  VTKV_RETURN_IF_ERROR(make_file(directory + "/log", true, &log));
  VTKV_RETURN_IF_ERROR(settle(directory));
  // The log is in use: the first sync of a file that is new makes btrfs commit everything.
  const AlignedBuffer block = block_of('x');
  VTKV_RETURN_IF_ERROR(log->write(0, block.data(), block.size()));
  VTKV_RETURN_IF_ERROR(settle(directory));
  for (unsigned i = 0; i < kBlocks; ++i) {
    VTKV_RETURN_IF_ERROR(data->write(uint64_t{i} * kApart * kDiskBlockBytes, block.data(), block.size()));
  }
  VTKV_RETURN_IF_ERROR(log->write(0, block.data(), block.size()));
  if (question.synced != Synced::nothing) {
    VTKV_RETURN_IF_ERROR((question.synced == Synced::own_file ? data : log)->sync());
  }
  return {};
}

Status count_kept(const std::string& directory, unsigned* kept) {
  std::unique_ptr<File> data;
  VTKV_RETURN_IF_ERROR(posix_env()->open_file(directory + "/data", {.read_only = true}, &data));
  const AlignedBuffer expected = block_of('x');
  AlignedBuffer found = block_of('?');
  for (unsigned i = 0; i < kBlocks; ++i) {
    VTKV_RETURN_IF_ERROR(data->read(uint64_t{i} * kApart * kDiskBlockBytes, found.size(), found.data()));
    *kept += found.view() == expected.view();
  }
  return {};
}

Status ask(DiskLab& lab, FlushAnswer* answer) {
  VTKV_RETURN_IF_ERROR(lab.mount(lab.empty()));
  const Status written = write_and_sync(lab.directory(), answer->question);
  const DiskImage crashed = DiskCrashes(lab.disk().trace()).nothing_landed().image;
  VTKV_RETURN_IF_ERROR(lab.unmount());
  VTKV_RETURN_IF_ERROR(written);
  VTKV_RETURN_IF_ERROR(lab.mount(crashed));
  const Status counted = count_kept(lab.directory(), &answer->kept);
  VTKV_RETURN_IF_ERROR(lab.unmount());
  return counted;
}

}  // namespace

std::string FlushQuestion::to_string() const {
  constexpr const char* kSynced[] = {"nothing synced", "another file synced", "synced itself"};
  return std::string(written_before ? "written before, " : "only reserved, ") + kSynced[static_cast<int>(synced)];
}

Status ask_flush_rule(DiskLab& lab, std::vector<FlushAnswer>* answers) {
  for (const FlushQuestion& question : kQuestions) {
    const uint32_t position = lab.disk().position();
    FlushAnswer answer{.question = question, .blocks = kBlocks};
    VTKV_RETURN_IF_ERROR(ask(lab, &answer));
    answers->push_back(answer);
    lab.disk().rewind(position);
  }
  return {};
}

}  // namespace vtkv
