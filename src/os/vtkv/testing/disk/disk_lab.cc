// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/disk_lab.h"

#include <filesystem>
#include <fstream>

namespace vtkv {

namespace {

constexpr uint64_t kDiskBytes = 512u << 20;  // mkfs.xfs refuses less than 300 MiB
constexpr uint32_t kCopiesMax = 1u << 20;    // 4 GiB, of which only what is used takes memory

}  // namespace

DiskLab::DiskLab(FileSystemKind kind, const std::string& scratch)
    : m_kind(kind), m_file(scratch + "/disk"), m_directory(scratch + "/mounted"), m_disk(kDiskBytes, kCopiesMax) {}

Status DiskLab::open(FileSystemKind kind, const std::string& mkfs_options, const std::string& scratch,
                     std::unique_ptr<DiskLab>* lab) {
  std::unique_ptr<DiskLab> opened(new DiskLab(kind, scratch));
  std::ofstream(opened->m_file).flush();
  std::error_code error;
  std::filesystem::create_directory(opened->m_directory, error);
  VTKV_RETURN_IF_ERROR(FuseDisk::start(&opened->m_disk, opened->m_file, opened->m_directory, &opened->m_server));
  VTKV_RETURN_IF_ERROR(LoopDevice::attach(opened->m_file, &opened->m_device));
  VTKV_RETURN_IF_ERROR(opened->m_device->make_file_system(kind, mkfs_options));
  opened->m_empty = opened->m_disk.image();
  *lab = std::move(opened);
  return {};
}

Status DiskLab::mount(const DiskImage& image) {
  m_disk.show(image);
  VTKV_RETURN_IF_ERROR(m_device->invalidate());
  return DiskMount::mount(*m_device, m_kind, m_directory, &m_mount);
}

Status DiskLab::unmount() {
  const Status status = m_mount ? m_mount->unmount() : Status();
  m_mount.reset();
  return status;
}

Status DiskLab::save(const DiskImage& image, const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (size_t block = 0; block < image.size(); ++block) {
    if (image[block] != 0) {
      file.seekp(static_cast<std::streamoff>(block * kDiskBlockBytes));
      file.write(m_disk.content(image[block]), kDiskBlockBytes);
    }
  }
  file.close();
  std::error_code error;
  std::filesystem::resize_file(path, m_disk.bytes(), error);
  return file && !error ? Status() : Status::from_errno(EIO, "cannot write " + path);
}

}  // namespace vtkv
