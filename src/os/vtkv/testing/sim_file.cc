// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_file.h"

#include <algorithm>
#include <cstring>

namespace vtkv {

SimFile::SimFile(SimEnv* env, std::string path, uint64_t inode, const OpenOptions& options)
    : m_env(env),
      m_path(std::move(path)),
      m_inode(inode),
      m_is_on_other(is_on_other_file_system(m_path)),
      m_options(options) {
  m_env->m_open_files.insert(inode);
}

SimFile::~SimFile() { m_env->m_open_files.erase(m_env->m_open_files.find(m_inode)); }

const SimInode& SimFile::content() const { return m_env->m_image.inode(m_inode); }

Status SimFile::check_alignment(uint64_t offset, const std::vector<iovec>& buffers) const {
  if (!m_options.direct) {
    return {};
  }
  bool aligned = offset % kIoAlignment == 0;
  for (const iovec& buffer : buffers) {
    aligned = aligned && buffer.iov_len % kIoAlignment == 0 &&
              reinterpret_cast<uintptr_t>(buffer.iov_base) % kIoAlignment == 0;
  }
  return aligned ? Status() : Status::from_errno(EINVAL, "unaligned direct I/O on " + m_path);
}

Status SimFile::check_write(uint64_t offset, const std::vector<iovec>& buffers) const {
  if (m_options.read_only) {
    return Status::from_errno(EBADF, "cannot write " + m_path + ", which is open for reading only");
  }
  return check_alignment(offset, buffers);
}

SimOp SimFile::write_op(uint64_t offset, const std::vector<iovec>& buffers) const {
  SimOp op;
  op.kind = SimOp::Kind::write;
  op.is_on_other = m_is_on_other;
  op.inode = m_inode;
  op.offset = offset;
  op.data = SimData(offset, buffers);
  op.length = op.data.length();
  op.primed = content().is_primed(op.offset, op.length);
  return op;
}

Status SimFile::read_vector(uint64_t offset, const std::vector<iovec>& buffers) {
  VTKV_RETURN_IF_ERROR(check_alignment(offset, buffers));
  VTKV_RETURN_IF_ERROR(m_env->strike(SimCall::read));
  const auto misread = m_env->m_misreads.find(m_env->calls(SimCall::read));
  for (const iovec& buffer : buffers) {
    VTKV_RETURN_IF_ERROR(m_env->strike_bad(SimBad::reads, m_inode, offset, buffer.iov_len));
    if (offset + buffer.iov_len > content().size()) {
      return Status::corruption(m_path + " ends before " + std::to_string(offset + buffer.iov_len) +
                                ", where more was expected");
    }
    char* const bytes = static_cast<char*>(buffer.iov_base);
    content().read(offset, buffer.iov_len, bytes);
    for (size_t at = 0; misread != m_env->m_misreads.end() && at < buffer.iov_len; at += kSimSector) {
      bytes[at] ^= 1;
      if (misread->second == SimMisread::zeros) {
        std::memset(bytes + at, 0, std::min(kSimSector, buffer.iov_len - at));
      }
    }
    offset += buffer.iov_len;
  }
  return {};
}

Status SimFile::read(uint64_t offset, size_t length, char* destination) {
  m_env->split();
  return read_vector(offset, {{destination, length}});
}

Status SimFile::write(uint64_t offset, const char* source, size_t length) {
  const std::vector<iovec> buffers{{const_cast<char*>(source), length}};
  VTKV_RETURN_IF_ERROR(check_write(offset, buffers));
  return m_env->perform(write_op(offset, buffers));
}

Status SimFile::sync() { return m_env->perform_sync(m_inode, {}); }

Status SimFile::size(uint64_t* bytes) {
  VTKV_RETURN_IF_ERROR(m_env->strike(SimCall::size));
  *bytes = content().size();
  return {};
}

Status SimFile::change_space(SimOp::Kind kind, SimCall call, uint64_t offset, uint64_t length) {
  if (m_options.read_only) {
    return Status::from_errno(EBADF, "cannot change " + m_path + ", which is open for reading only");
  }
  m_env->split();
  VTKV_RETURN_IF_ERROR(m_env->strike(call));
  if (kind == SimOp::Kind::zeros) {
    VTKV_RETURN_IF_ERROR(m_env->strike_bad(SimBad::writes, m_inode, offset, length));
  }
  SimOp op;
  op.kind = kind;
  op.is_on_other = m_is_on_other;
  op.inode = m_inode;
  op.offset = offset;
  op.length = length;
  op.primed = kind == SimOp::Kind::zeros && content().is_primed(offset, length);
  return m_env->perform(std::move(op));
}

Status SimFile::truncate(uint64_t bytes) { return change_space(SimOp::Kind::truncate, SimCall::truncate, 0, bytes); }

Status SimFile::allocate(uint64_t offset, uint64_t length) {
  return change_space(SimOp::Kind::allocate, SimCall::allocate, offset, length);
}

Status SimFile::write_zeros(uint64_t offset, uint64_t length) {
  return change_space(SimOp::Kind::zeros, SimCall::allocate, offset, length);
}

Status SimFile::punch_hole(uint64_t offset, uint64_t length) {
  const uint64_t bad = m_env->first_bad(SimBad::punches, m_inode, offset, length);
  VTKV_RETURN_IF_ERROR(
      change_space(SimOp::Kind::punch_hole, SimCall::punch_hole, offset, std::min(length, bad - offset)));
  return m_env->strike_bad(SimBad::punches, m_inode, offset, length);
}

Status SimFile::map_space(FileSpace* space) {
  VTKV_RETURN_IF_ERROR(m_env->strike(SimCall::size));
  *space = {};
  const std::vector<SimBlock>& blocks = content().blocks();
  for (uint64_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].space != SimSpace::hole && blocks[i].space != SimSpace::reserved) {
      continue;
    }
    std::vector<FileRange>& ranges = blocks[i].space == SimSpace::hole ? space->holes : space->unwritten;
    if (!ranges.empty() && ranges.back().offset + ranges.back().length == i * kSimBlock) {
      ranges.back().length += kSimBlock;
    } else {
      ranges.push_back({i * kSimBlock, kSimBlock});
    }
  }
  return {};
}

}  // namespace vtkv
